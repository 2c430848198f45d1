"""A plan: homes, replicas, and what they change.

Replicas (MAST, section 3.5) are added in the paper's order, each as long as a region has room:

1. One replica of every table outside its home, for disaster recovery: in the region with the most
   free storage. The paper's policy also considers correlated failures, which a warehouse does not
   record.
2. Jobs that no region can run: their tables, in the region with the highest supply of their kind
   that has room. High priorities first, then most GPU hours.
3. Hot tables: each region gives every kind a part of `hot_share` of its free storage, by supply.
   Tables of jobs of this kind are replicated by the number of these jobs until that is full.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.warehouse.climb import Climb, Show, climb, show_nothing
from artist.warehouse.instance import Bools, Floats, Instance, Ints
from artist.warehouse.objective import WarehouseObjective
from artist.warehouse.optimum import solve
from artist.warehouse.state import State
from artist.warehouse.warehouse_schema import PlanOptions, Replicas, Solver


@dataclass(frozen=True)
class Picture:
    """The homes of tables before or after planning, and what they lead to."""

    home: Ints
    terms: dict[str, float]
    ratios: Floats
    """[R] GPU hours of high priority in a region over its supply."""
    demand: Floats
    """[R, K] GPU hours of high priority."""
    all_demand: Floats
    """[R, K] GPU hours of all priorities."""
    at_home: float
    """Share of high-priority GPU hours trained at home."""
    collocated: float
    """Share of high-priority GPU hours for which a region has data and GPUs."""


@dataclass(frozen=True)
class WarehousePlan:
    """The outcome of planning one warehouse."""

    instance: Instance
    options: PlanOptions
    before: Picture
    after: Picture
    climb: Climb
    held: Held

    def facts(self) -> dict[str, float]:
        """The chief numbers, by the names of `artist place-data --format json`."""
        before, after = self.before, self.after
        return {
            "ratio_max_before": float(before.ratios.max()),
            "ratio_max_after": float(after.ratios.max()),
            "ratio_sd_before": float(before.ratios.std()),
            "ratio_sd_after": float(after.ratios.std()),
            "moved_bytes_share": sum(self.climb.day_bytes) / int(self.instance.size.sum()),
            "collocation_before": before.collocated,
            "collocation_after": after.collocated,
            "objective_before": sum(before.terms.values()),
            "objective_after": sum(after.terms.values()),
        }

    def replica_share(self) -> float:
        """Bytes of replicas over bytes of homes."""
        copies = self.held.mask().sum(axis=1) - 1
        return float((copies * self.instance.size).sum() / self.instance.size.sum())


def place(
    instance: Instance,
    options: PlanOptions,
    solver: Solver = Solver.CLIMB,
    show: Show = show_nothing,
) -> WarehousePlan:
    """Plan homes, and then replicas.

    Raises:
        ConfigError: `--solver highs` cannot solve this.
    """
    state = State(WarehouseObjective(instance, options), instance.home)
    before = _picture(state, Held(instance, state.home))
    if solver is Solver.HIGHS:
        state.set_homes(solve(state))
        done = Climb(ended="optimum")
        done.end_day(1, state, instance.home, {})
    else:
        done = climb(state, show)
    held = add_replicas(state)
    return WarehousePlan(instance, options, before, _picture(state, held), done, held)


def _picture(state: State, held: Held) -> Picture:
    """The homes of a state, and what follows from them and from the replicas."""
    collocated = state.instance.gpu_h[state.urgent & held.collocated()].sum()
    return Picture(
        home=state.home.copy(),
        terms=state.terms(),
        ratios=state.ratios(),
        demand=state.urgent_demand(),
        all_demand=state.demand.sum(axis=2),
        at_home=state.at_home_gpu_h / state.urgent_gpu_h,
        collocated=float(collocated) / state.urgent_gpu_h,
    )


def balance(plan: WarehousePlan) -> dict[str, list[Any]]:
    """A row per region and kind: supply, and demand over supply before and after."""
    x = plan.instance
    region, kind = np.nonzero(x.supply > 0)
    supply = x.supply[region, kind]

    def over_supply(demand: Floats) -> list[float]:
        ratios: list[float] = (demand[region, kind] / supply).tolist()
        return ratios

    return {
        "region": [x.regions[r] for r in region.tolist()],
        "kind": [x.kinds[k] for k in kind.tolist()],
        "supply_gpu_h": supply.tolist(),
        "urgent_over_supply_before": over_supply(plan.before.demand),
        "urgent_over_supply_after": over_supply(plan.after.demand),
        "demand_over_supply_before": over_supply(plan.before.all_demand),
        "demand_over_supply_after": over_supply(plan.after.all_demand),
    }


class Held:
    """Which regions hold which tables."""

    def __init__(self, instance: Instance, home: Ints) -> None:
        self.instance = instance
        self.bits: npt.NDArray[np.int64] = np.int64(1) << home
        """[T] a bit per region."""
        self.free = instance.storage.copy()
        np.subtract.at(self.free, home, instance.size)

    def add(self, tables: Ints, region: int) -> None:
        """Give a region replicas of tables that it does not hold."""
        self.bits[tables] |= np.int64(1) << region
        self.free[region] -= self.instance.size[tables].sum()

    def absent(self, tables: Ints, region: int) -> Ints:
        """The tables, of those given, that a region does not hold."""
        absent: Ints = tables[(self.bits[tables] >> region & 1) == 0]
        return absent

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
    """A replica of every table outside its home, as long as regions have room (1)."""
    free = held.free.tolist()
    sizes, homes = held.instance.size.tolist(), home.tolist()
    chosen = []
    for size, own in zip(sizes, homes, strict=True):
        mine, free[own] = free[own], -1
        region = free.index(max(free))
        free[own] = mine
        if region != own and free[region] >= size:
            free[region] -= size
        else:
            region = own
        chosen.append(region)
    held.bits |= np.int64(1) << np.array(chosen, np.int64)
    held.free = np.array(free, np.int64)


def _needed(held: Held, state: State) -> None:
    """Replicas for jobs that no region can run, in the region with most GPUs of their kind (2)."""
    x = held.instance
    stuck = np.flatnonzero((x.kind >= 0) & ~held.collocated())
    order = np.lexsort((-x.gpu_h[stuck], ~state.urgent[stuck]))
    for job in stuck[order].tolist():
        kind, tables = int(x.kind[job]), x.reads.of(job)
        for region in np.argsort(-x.supply[:, kind], kind="stable").tolist():
            if x.supply[region, kind] <= 0:
                break
            missing = held.absent(tables, region)
            if x.size[missing].sum() <= held.free[region]:
                held.add(missing, region)
                break


def _hot(held: Held, share: float) -> None:
    """Replicas of the tables that most jobs read, in a share of the free storage (3)."""
    x = held.instance
    budgets = held.free * share
    for kind in range(len(x.kinds)):
        jobs = x.kind[x.reads.owners] == kind
        readers = np.bincount(x.reads.items[jobs], minlength=len(x.size))
        hottest = np.argsort(-readers, kind="stable")[: int((readers > 0).sum())]
        supply = x.supply.sum(axis=1)
        quota = (budgets * x.supply[:, kind] / np.where(supply > 0, supply, 1)).astype(np.int64)
        for region in range(len(x.regions)):
            absent = held.absent(hottest, region)
            total = np.cumsum(x.size[absent])
            held.add(absent[: int(np.searchsorted(total, quota[region], side="right"))], region)
