"""A plan: homes, replicas, and what they change.

Replicas (MAST, section 3.5) are added in the paper's order, each as long as a region has room:

1. One replica of every table outside its home, for disaster recovery: in the region with the most
   free storage. The paper's policy also considers correlated failures, about which a warehouse says
   nothing.
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

from artist.warehouse.climb import Climb, Move, Show, climb
from artist.warehouse.instance import Bools, Floats, Instance, Ints
from artist.warehouse.objective import Objective
from artist.warehouse.optimum import solve
from artist.warehouse.state import State
from artist.warehouse.warehouse_schema import PlanOptions, Replicas, Solver


@dataclass(frozen=True)
class Picture:
    """A placement, before or after."""

    home: Ints
    terms: dict[str, float]
    ratios: Floats
    """[R] GPU hours of high priority in a region over its supply."""
    demand: Floats
    """[R, K] GPU hours of high priority."""
    all_demand: Floats
    """[R, K] GPU hours of all priorities."""
    used: Ints
    """[R] bytes of homes."""
    at_home: float
    """Share of high-priority GPU hours trained at home."""
    collocated: float
    """Share of high-priority GPU hours for which a region has data and GPUs."""


@dataclass(frozen=True)
class Plan:
    """What `place` found."""

    instance: Instance
    options: PlanOptions
    before: Picture
    after: Picture
    climb: Climb
    held: Held

    def facts(self) -> dict[str, float]:
        """The chief numbers, by the names of `artist place-data --format json`."""
        moved = sum(self.climb.day_bytes) / int(self.instance.size.sum())
        facts: dict[str, float] = {}
        for name, of in (("max", np.max), ("sd", np.std)):
            facts[f"ratio_{name}_before"] = float(of(self.before.ratios))
            facts[f"ratio_{name}_after"] = float(of(self.after.ratios))
        facts["moved_bytes_share"] = moved
        facts["collocation_before"] = self.before.collocated
        facts["collocation_after"] = self.after.collocated
        facts["objective_before"] = sum(self.before.terms.values())
        facts["objective_after"] = sum(self.after.terms.values())
        return facts

    def replica_share(self) -> float:
        """Bytes of replicas over bytes of homes."""
        copies = self.held.mask().sum(axis=1) - 1
        return float((copies * self.instance.size).sum() / self.instance.size.sum())


def place(
    instance: Instance,
    options: PlanOptions,
    solver: Solver = Solver.CLIMB,
    show: Show = lambda _done, _all: None,
) -> Plan:
    """Plan homes, and then replicas.

    Raises:
        ConfigError: `--solver highs` cannot solve this.
    """
    state = State(Objective(instance, options), instance.home)
    before = _picture(state, Held(instance, state.home))
    if solver is Solver.HIGHS:
        home = solve(state)
        done = _at_once(instance, home)
        state.home = home
        state.refresh()
        done.end_day(state)
    else:
        done = climb(state, show)
    held = add_replicas(state)
    return Plan(instance, options, before, _picture(state, held), done, held)


def _at_once(instance: Instance, home: Ints) -> Climb:
    """All moves of an optimum, on one day."""
    moved = np.flatnonzero(home != instance.home).tolist()
    moves = [
        Move(1, t, int(instance.home[t]), int(home[t]), int(instance.size[t]), None) for t in moved
    ]
    return Climb(moves, [sum(move.size_bytes for move in moves)], ended="optimum")


def _picture(state: State, held: Held) -> Picture:
    x = state.instance
    total = float(x.gpu_h[state.urgent].sum()) or 1.0
    return Picture(
        home=state.home.copy(),
        terms=state.terms(),
        ratios=state.ratios(),
        demand=state.urgent_demand(),
        all_demand=state.demand.sum(axis=2),
        used=state.used.copy(),
        at_home=state.at_home_gpu_h / total,
        collocated=float(x.gpu_h[state.urgent & held.collocated()].sum()) / total,
    )


def balance(plan: Plan) -> dict[str, list[Any]]:
    """A row per region and kind: supply, and demand over supply before and after."""
    x = plan.instance
    rows: dict[str, list[Any]] = {
        name: []
        for name in (
            "region",
            "kind",
            "supply_gpu_h",
            "urgent_over_supply_before",
            "urgent_over_supply_after",
            "demand_over_supply_before",
            "demand_over_supply_after",
        )
    }
    for region, name in enumerate(x.regions):
        for kind in np.flatnonzero(x.supply[region] > 0).tolist():
            supply = float(x.supply[region, kind])
            numbers = [
                picture[region, kind] / supply
                for picture in (
                    plan.before.demand,
                    plan.after.demand,
                    plan.before.all_demand,
                    plan.after.all_demand,
                )
            ]
            values = [name, x.kinds[kind], supply, *map(float, numbers)]
            for column, value in zip(rows.values(), values, strict=True):
                column.append(value)
    return rows


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
