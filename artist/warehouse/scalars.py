"""The sums of a state as Python numbers, for one table at a time.

For the dozen additions of one table, calling NumPy takes ten times as long. Views share their
memory with the arrays of the state, so both see each move. The expressions repeat those of
`objective`; tests compare the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp
from typing import TYPE_CHECKING, Any

from artist.warehouse.instance import PRIORITIES, Instance
from artist.warehouse.objective import WarehouseObjective

if TYPE_CHECKING:
    from artist.warehouse.state import State

SLACK = 1e-9
"""Sums of hours are rounded, so a limit may be exceeded by this part of it."""

Hours = dict[int, float]
"""GPU hours by cell, which is kind times PRIORITIES plus priority."""


def flat(array: Any) -> memoryview:
    """A view of an array's numbers, row after row, to read and write."""
    return memoryview(array.reshape(-1))


class Constants:
    """The constants of a warehouse and its options."""

    def __init__(self, objective: WarehouseObjective) -> None:
        x: Instance = objective.instance
        self.options = objective.options
        self.regions, self.kinds = len(x.regions), len(x.kinds)
        self.w_read, self.all_read_bytes = objective.w_read, x.all_read_bytes
        self.size, self.storage, self.need = flat(x.size), flat(x.storage), flat(x.need)
        self.kind, self.priority, self.gpu_h = flat(x.kind), flat(x.priority), flat(x.gpu_h)
        self.application, self.cpu_h = flat(x.application), flat(x.cpu_h)
        self.cpu_limit = flat(x.cpu_limit)
        self.readers, self.first_reader = flat(x.readers.items), flat(x.readers.starts)
        self.per_demand: list[float] = objective.per_demand.reshape(-1).tolist()
        self.weight: list[float] = objective.weight.reshape(-1).tolist()
        """[K P] by cell."""
        self.supply: list[float] = x.supply.reshape(-1).tolist()
        self.supply_share: list[float] = objective.supply_share.reshape(-1).tolist()
        """[R K] by place, which is region times kinds plus kind."""
        self.all_supply: list[float] = objective.all_supply.tolist()
        self.storage_share: list[float] = objective.storage_share.tolist()
        self.all_bytes = objective.all_bytes
        self.urgent = [
            cell % PRIORITIES < self.options.urgent for cell in range(self.kinds * PRIORITIES)
        ]

    def jobs_of(self, table: int) -> memoryview:
        """The jobs that read a table."""
        return self.readers[self.first_reader[table] : self.first_reader[table + 1]]

    def stored(self, region: int, used: int) -> float:
        """Cost of stored bytes (3, 9)."""
        uneven = used / self.all_bytes - self.storage_share[region]
        return self.options.w_storage * uneven * uneven

    def used(self, place: int, uneven: float, excess: float) -> float:
        """Cost of demand (2) from its weighted squares and the hours above supply."""
        cost = self.options.w_gpu * uneven
        if excess <= 0:
            return cost / 2
        supply = self.supply[place]
        return cost / (1 + exp(-excess / supply)) if supply > 0 else cost

    def overload(self, region: int, urgent: float) -> float:
        """Cost of high-priority GPU hours above supply."""
        above = urgent / self.all_supply[region] - self.options.full
        return self.options.w_overload * above if above > 0 else 0.0


@dataclass(slots=True)
class Coming:
    """What jobs add to a region, or take from it."""

    hours: Hours = field(default_factory=dict)
    cpu_h: dict[int, float] = field(default_factory=dict)
    """By application."""
    local: float = 0.0
    """Bytes that they read there."""

    def add(self, x: Constants, job: int, local: float) -> None:
        """Add a job that reads `local` bytes there."""
        self.local += local
        kind, application = x.kind[job], x.application[job]
        if kind >= 0:
            cell = kind * PRIORITIES + x.priority[job]
            self.hours[cell] = self.hours.get(cell, 0.0) + x.gpu_h[job]
        if application >= 0 and x.cpu_h[job] > 0:
            self.cpu_h[application] = self.cpu_h.get(application, 0.0) + x.cpu_h[job]

    def also(self, other: Coming) -> Coming:
        """Both together."""
        return Coming(
            _summed(self.hours, other.hours),
            _summed(self.cpu_h, other.cpu_h),
            self.local + other.local,
        )


def _summed(one: dict[int, float], other: dict[int, float]) -> dict[int, float]:
    total = dict(one)
    for key, value in other.items():
        total[key] = total.get(key, 0.0) + value
    return total


class Scalars:
    """Views of a state's sums, and what each region costs."""

    def __init__(self, constants: Constants, state: State) -> None:
        self.constants = constants
        self.home, self.used = flat(state.home), flat(state.used)
        self.count, self.bytes, self.place = flat(state.count), flat(state.bytes), flat(state.place)
        self.demand, self.cpu = flat(state.demand), flat(state.cpu)
        places = constants.regions * constants.kinds
        self._uneven, self._cost = [0.0] * places, [0.0] * places
        self._hours, self._urgent = [0.0] * places, [0.0] * places
        for place in range(places):
            self.recount(place)

    def recount(self, place: int) -> None:
        """Recount the demand for one kind in one region."""
        x = self.constants
        share, first = x.supply_share[place], place % x.kinds * PRIORITIES
        by_priority = self.demand[place * PRIORITIES : (place + 1) * PRIORITIES].tolist()
        uneven = 0.0
        for cell, hours in enumerate(by_priority, first):
            off = hours * x.per_demand[cell] - share
            uneven += x.weight[cell] * off * off
        self._uneven[place], self._hours[place] = uneven, sum(by_priority)
        self._cost[place] = x.used(place, uneven, self._hours[place] - x.supply[place])
        self._urgent[place] = sum(by_priority[: x.options.urgent])

    def _urgent_of(self, region: int) -> float:
        kinds = self.constants.kinds
        return sum(self._urgent[region * kinds : (region + 1) * kinds])

    def cost(self, local_bytes: float) -> float:
        """The objective, given the bytes that jobs read in their own region."""
        x = self.constants
        regions = range(x.regions)
        overload = sum(x.overload(region, self._urgent_of(region)) for region in regions)
        stored = sum(map(x.stored, regions, self.used.tolist()))
        read = x.w_read * (x.all_read_bytes - local_bytes)
        return read + sum(self._cost) + overload + stored

    def demand_changes(self, region: int, hours: Hours, sign: int) -> tuple[float, float]:
        """The change of (2) and the overload if GPU hours are added (`sign` 1) or removed (-1).

        Also returns the change of high-priority hours at home (6).
        """
        x, demand = self.constants, self.demand
        row = region * x.kinds
        uneven: dict[int, float] = {}
        more: dict[int, float] = {}
        urgent = at_home = 0.0
        for cell, hours_of_cell in hours.items():
            change = sign * hours_of_cell
            place = row + cell // PRIORITIES
            scaled = change * x.per_demand[cell]
            off = demand[row * PRIORITIES + cell] * x.per_demand[cell] - x.supply_share[place]
            squares = x.weight[cell] * scaled * (2 * off + scaled)
            uneven[place] = uneven.get(place, self._uneven[place]) + squares
            more[place] = more.get(place, self._hours[place]) + change
            if x.urgent[cell]:
                urgent += change
                if x.supply[place] > 0:
                    at_home += change
        cost = 0.0
        for place, squares in uneven.items():
            cost += x.used(place, squares, more[place] - x.supply[place]) - self._cost[place]
        if urgent:
            before = self._urgent_of(region)
            cost += x.overload(region, before + urgent) - x.overload(region, before)
        return cost, at_home

    def cpu_fits(self, region: int, cpu_h: dict[int, float]) -> bool:
        """Whether no application exceeds its limit (5)."""
        for application, hours in cpu_h.items():
            cell = application * self.constants.regions + region
            if self.cpu[cell] + hours > self.constants.cpu_limit[cell] * (1 + SLACK):
                return False
        return True
