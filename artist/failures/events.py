"""The event source: units fail and come back, each by its own clock.

A unit is in service for a random time, fails, is repaired for `repair_s`, and so on. Its times
depend only on the seed and the unit's place in the cluster. So the same failures hit every policy,
and adding another kind of failure or more units does not move them.

A spare may take the place of a unit that failed. The repaired unit is then a spare itself. No spare
is used if all GPUs of the unit are away already, or if the repair is no slower.

Planned work may be announced (`Notice`): from then on no job is placed there.

A GPU is in service while no unit around it is away. So outages of a rack and of a machine in it may
overlap, and the engine gets events only about GPUs that really leave or come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from artist.cluster.placement import Placement
from artist.contract import Notice, Outage, OutsideEvent, Restore, Withdraw
from artist.failures.failing_units import OF_A_GPU, FailingUnits, FailureKind
from artist.failures.model_file import UnitFailures
from artist.rng import uniform
from artist.units import LAST_TICK, Tick, ticks

# Order at one tick: repairs and returns come before units leave, and notices come last.
_REPAIRED, _BACK, _AWAY, _ANNOUNCED = 0, 1, 2, 3


class _Event(NamedTuple):
    """Something that happens to a unit. Events of one tick are in the order of these fields."""

    at: Tick
    what: int
    kind: int
    """Position in the kinds, followed by the planned outages."""
    unit: int
    number: int
    """How often this unit has failed before."""


class FailureEvents:
    """The failures and outages of one run. The source never ends if something fails at random."""

    def __init__(self, units: FailingUnits, seed: int) -> None:
        self._units = units
        self._seed = seed
        self._away: dict[int, dict[int, int]] = {}
        """Leaf -> position of a GPU in the leaf -> how many units around the GPU are away."""
        self._spares = 0 if units.spares is None else units.spares.count
        self._heap = [*self._first_failures(), *self._first_planned()]
        heapify(self._heap)

    def next_event(self, now: Tick) -> OutsideEvent | None:
        """The next event that changes which GPUs are in service; None after the clock's end."""
        while self._heap:
            event = heappop(self._heap)
            if event.at > LAST_TICK:
                return None
            handlers = (self._repaired, self._back, self._leave, self._notice)
            change = handlers[event.what](event)
            if change is not None:
                return change
        return None

    def _first_failures(self) -> Iterator[_Event]:
        for index, kind in enumerate(self._units.kinds):
            for unit in range(self._units.count(kind.level)):
                yield _Event(self._lifetime(kind, unit, 0), _AWAY, index, unit, 0)

    def _first_planned(self) -> Iterator[_Event]:
        for index, planned in enumerate(self._units.planned, start=len(self._units.kinds)):
            yield _Event(ticks(planned.outage.at_s), _AWAY, index, planned.unit, 0)
            announced = ticks(max(0.0, planned.outage.at_s - planned.notice_s))
            if planned.notice_s and announced < ticks(planned.outage.at_s):
                yield _Event(announced, _ANNOUNCED, index, planned.unit, 0)

    def _lifetime(self, kind: FailureKind, unit: int, number: int) -> Tick:
        chance = uniform(self._seed, f"failures.{kind.name}", self._path(kind, unit), number)
        return max(1, ticks(lifetime_s(kind.failures, chance)))

    def _path(self, kind: FailureKind, unit: int) -> tuple[int, ...]:
        return self._units.path(kind.level, unit)

    def _leave(self, event: _Event) -> Withdraw | None:
        at, _, index, unit, number = event
        kinds = self._units.kinds
        if index < len(kinds):
            name, level, failed = kinds[index].name, kinds[index].level, True
            until = at + ticks(kinds[index].failures.repair_s)
        else:
            planned = self._units.planned[index - len(kinds)]
            name, level, failed = planned.name, planned.level, planned.failed
            until = ticks(planned.outage.end_s)
        gone: dict[int, int] = {}
        position = None
        for leaf, slot in self._units.slots(level, unit):
            away = self._away.setdefault(leaf, {})
            if not away.get(slot):
                gone[leaf] = gone.get(leaf, 0) + 1
                position = slot - sum(1 for other in away if other < slot)
            away[slot] = away.get(slot, 0) + 1
        if gone and failed:
            until = self._replaced(event, name, until)
        heappush(self._heap, _Event(until, _BACK, index, unit, number))
        if not gone:
            return None
        return Withdraw(
            at,
            Placement.of(gone),
            Outage(name, unit, until, failed),
            position if level == OF_A_GPU else None,
        )

    def _replaced(self, event: _Event, name: str, repaired: Tick) -> Tick:
        """When the place of a failed unit is filled again: by a spare or by its own repair."""
        spares = self._units.spares
        if spares is None or name != spares.level or not self._spares:
            return repaired
        swapped = event.at + ticks(spares.swap_s)
        if swapped >= repaired:
            return repaired
        self._spares -= 1
        heappush(self._heap, event._replace(at=repaired, what=_REPAIRED))
        return swapped

    def _repaired(self, _: _Event) -> OutsideEvent | None:
        self._spares += 1
        return None

    def _notice(self, event: _Event) -> Notice:
        planned = self._units.planned[event.kind - len(self._units.kinds)]
        leaves = sorted({leaf for leaf, _ in self._units.slots(planned.level, event.unit)})
        coming = Outage(planned.name, event.unit, ticks(planned.outage.end_s), planned.failed)
        return Notice(event.at, tuple(leaves), ticks(planned.outage.at_s), coming)

    def _back(self, event: _Event) -> Restore | None:
        at, _, index, unit, number = event
        kinds = self._units.kinds
        if index < len(kinds):
            kind, level = kinds[index], kinds[index].level
            fails = at + self._lifetime(kind, unit, number + 1)
            heappush(self._heap, _Event(fails, _AWAY, index, unit, number + 1))
        else:
            level = self._units.planned[index - len(kinds)].level
        returned: dict[int, int] = {}
        for leaf, slot in self._units.slots(level, unit):
            away = self._away[leaf]
            away[slot] -= 1
            if not away[slot]:
                del away[slot]
                returned[leaf] = returned.get(leaf, 0) + 1
        return Restore(at, Placement.of(returned)) if returned else None


def lifetime_s(failures: UnitFailures, chance: float) -> float:
    """The time in service that a share `chance` of units survives, 0 < chance < 1, in seconds.

    A Weibull distribution of shape k has the scale mtbf_s / gamma(1 + 1/k), so its mean is mtbf_s.
    """
    shape = failures.shape or 1.0
    scale_s = failures.mtbf_s / math.gamma(1.0 + 1.0 / shape)
    return float(scale_s * (-math.log(chance)) ** (1.0 / shape))
