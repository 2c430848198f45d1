"""A plan: homes, replicas, and what they change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from artist.warehouse.climb import Climb, Move, Show, climb
from artist.warehouse.columns import PlanOptions, Solver
from artist.warehouse.exact import solve
from artist.warehouse.instance import Floats, Instance, Ints
from artist.warehouse.objective import Objective
from artist.warehouse.replicas import Held, add_replicas
from artist.warehouse.state import State


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
