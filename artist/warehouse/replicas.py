"""Replicas beside homes (MAST, section 3.5).

In the paper's order, each as long as a region has room:

1. One replica of every table outside its home, for disaster recovery: in the region with the most
   free storage. The paper's policy also looks at correlated failures, about which a warehouse says
   nothing.
2. Jobs that no region can run: their tables, in the region with the highest supply of their kind
   that has room. High priorities first, then most GPU hours.
3. Hot tables: each region gives every kind a part of `hot_share` of its free storage, by supply.
   Tables of jobs of this kind are replicated by the number of these jobs until that is full.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from artist.warehouse.columns import Replicas
from artist.warehouse.instance import Bools, Instance, Ints
from artist.warehouse.state import State


class Held:
    """Which regions hold which tables."""

    def __init__(self, instance: Instance, home: Ints) -> None:
        self.instance = instance
        self.bits: npt.NDArray[np.int64] = np.int64(1) << home
        """[T] a bit per region."""
        self.free = instance.storage.copy()
        np.subtract.at(self.free, home, instance.size)

    def add(self, table: int, region: int) -> None:
        """A replica."""
        self.bits[table] |= np.int64(1) << region
        self.free[region] -= self.instance.size[table]

    def mask(self) -> Bools:
        """[T, R] which regions hold a table."""
        mask: Bools = (self.bits[:, None] >> np.arange(len(self.free)) & 1).astype(np.bool_)
        return mask

    def collocated(self) -> Bools:
        """[J] whether a region holds all of a job's tables and has GPUs of its kind."""
        x = self.instance
        bits = np.bitwise_and.reduceat(self.bits[x.reads.items], x.reads.starts[:-1])
        able = (x.supply > 0) * (np.int64(1) << np.arange(len(self.free)))[:, None]
        result: Bools = (x.kind >= 0) & ((bits & able.sum(axis=0)[x.kind]) != 0)
        return result


def add_replicas(state: State) -> Held:
    """Homes and the replicas that the options ask for."""
    held = Held(state.instance, state.home)
    wanted = state.objective.options.replicas
    if wanted is Replicas.NONE:
        return held
    if wanted is Replicas.ALL:
        _disaster_recovery(held, state.home)
    _needed(held, state)
    if wanted is Replicas.ALL:
        _hot(held, state.objective.options.hot_share)
    return held


def _disaster_recovery(held: Held, home: Ints) -> None:
    free = held.free.tolist()
    sizes, homes = held.instance.size.tolist(), home.tolist()
    chosen = []
    for size, own in zip(sizes, homes, strict=True):
        mine, free[own] = free[own], -1
        room = max(free)
        region = free.index(room)
        free[own] = mine
        if room >= size:
            free[region] -= size
            chosen.append(region)
        else:
            chosen.append(own)
    held.bits |= np.int64(1) << np.array(chosen, np.int64)
    held.free = np.array(free, np.int64)


def _needed(held: Held, state: State) -> None:
    x = held.instance
    stuck = np.flatnonzero((x.kind >= 0) & ~held.collocated())
    order = np.lexsort((-x.gpu_h[stuck], ~state.urgent[stuck]))
    for job in stuck[order].tolist():
        kind, tables = int(x.kind[job]), x.reads.of(job)
        for region in np.argsort(-x.supply[:, kind], kind="stable").tolist():
            if x.supply[region, kind] <= 0:
                break
            missing = tables[(held.bits[tables] >> region & 1) == 0]
            if x.size[missing].sum() <= held.free[region]:
                for table in missing.tolist():
                    held.add(table, region)
                break


def _hot(held: Held, share: float) -> None:
    x = held.instance
    budgets = held.free * share
    for kind in range(len(x.kinds)):
        jobs = x.kind[x.reads.owners] == kind
        readers = np.bincount(x.reads.items[jobs], minlength=len(x.size))
        hottest = np.argsort(-readers, kind="stable")[: int((readers > 0).sum())]
        supply = x.supply.sum(axis=1)
        quota = (budgets * x.supply[:, kind] / np.where(supply > 0, supply, 1)).astype(np.int64)
        for region in range(len(x.regions)):
            absent = hottest[(held.bits[hottest] >> region & 1) == 0]
            total = np.cumsum(x.size[absent])
            fit = absent[: int(np.searchsorted(total, quota[region], side="right"))]
            held.bits[fit] |= np.int64(1) << region
            held.free[region] -= x.size[fit].sum()
