"""Free GPUs over time, by what is expected: the profile into which reservations are put.

The profile is a step function of time. It begins with the GPUs that are free now; at the ticks of
`_changes` jobs leave and reservations begin and end.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.units import Tick


class Reservation(NamedTuple):
    """GPUs that a waiting job is to hold from `start` until `end`."""

    start: Tick
    end: Tick
    placement: Placement


class Profile:
    """Free GPUs from `now` on."""

    def __init__(self, now: Tick, free: FreeGpus) -> None:
        self._now, self._free = now, free
        self._ticks: list[Tick] = [now]
        # Per tick: leaf -> by how many its free GPUs change.
        self._changes: dict[Tick, dict[int, int]] = {now: {}}
        self._totals: dict[Tick, int] = {now: 0}

    def leaves(self, end: Tick, placement: Placement) -> None:
        """A running job gives its GPUs back at `end`."""
        self._change(end, placement, +1)

    def add(self, reservation: Reservation) -> None:
        """Put a reservation in."""
        self._change(reservation.start, reservation.placement, -1)
        self._change(reservation.end, reservation.placement, +1)

    def remove(self, reservation: Reservation) -> None:
        """Take a reservation out."""
        self._change(reservation.start, reservation.placement, +1)
        self._change(reservation.end, reservation.placement, -1)

    def earliest(
        self,
        gpus: int,
        place: Callable[[FreeGpus], Placement | None],
        duration: Callable[[Placement], Tick],
        shortest: Tick = 1,
        before: Tick | None = None,
    ) -> Reservation | None:
        """The earliest reservation that meets no other; None if there is none (before a tick).

        It begins at a tick at which something changes. `place` chooses among the GPUs that are free
        from there to the end. How long the job takes may depend on its GPUs, so that the end is
        found step by step; `shortest` is no longer than any of them, and only saves time.
        """
        ticks, free = self._ticks, self._free
        totals = list(accumulate(map(self._totals.__getitem__, ticks), initial=free.total))[1:]
        known = 0  # the changes of this many ticks are in `free`
        next_low = 0  # the next tick at which too few GPUs are free
        for index, start in enumerate(ticks):
            if before is not None and start >= before:
                break
            total = totals[index]
            if total < gpus:
                continue
            if next_low <= index:
                later = range(index + 1, len(ticks))
                next_low = next((x for x in later if totals[x] < gpus), len(ticks))
            if next_low < len(ticks) and ticks[next_low] < start + shortest:
                continue
            free = _changed(free, self._changes_of(ticks[known : index + 1]))
            known = index + 1
            placement = place(free)
            covered = start
            while placement is not None:
                end = start + duration(placement)
                if end <= covered:
                    return Reservation(start, end, placement)
                covered = end
                lowest = self._lowest(index, end, total - gpus)
                placement = None if lowest is None else place(_changed(free, lowest))
        return None

    def _changes_of(self, ticks: Sequence[Tick]) -> dict[int, int]:
        """Leaf -> by how many its free GPUs change at these ticks together."""
        changes: dict[int, int] = {}
        for tick in ticks:
            for leaf, count in self._changes[tick].items():
                changes[leaf] = changes.get(leaf, 0) + count
        return changes

    def _lowest(self, index: int, end: Tick, spare: int) -> dict[int, int] | None:
        """By leaf, by how many the free GPUs fall between a tick and `end` at most.

        None if they all together fall by more than `spare` meanwhile.
        """
        change: dict[int, int] = {}
        lowest: dict[int, int] = {}
        for later in range(index + 1, len(self._ticks)):
            tick = self._ticks[later]
            if tick >= end:
                break
            spare += self._totals[tick]
            if spare < 0:
                return None
            for leaf, count in self._changes[tick].items():
                change[leaf] = fallen = change.get(leaf, 0) + count
                if fallen < lowest.get(leaf, 0):
                    lowest[leaf] = fallen
        return lowest

    def _change(self, at: Tick, placement: Placement, sign: int) -> None:
        changes = self._changes.get(at)
        if changes is None:
            insort(self._ticks, at)
            changes = self._changes[at] = {}
            self._totals[at] = 0
        self._totals[at] += sign * placement.gpus
        for leaf, count in zip(placement.leaves, placement.counts, strict=True):
            changed = changes.get(leaf, 0) + sign * count
            if changed:
                changes[leaf] = changed
            else:
                del changes[leaf]
        if at != self._now and not changes:
            del self._changes[at], self._totals[at]
            del self._ticks[bisect_left(self._ticks, at)]


def _changed(free: FreeGpus, changes: dict[int, int]) -> FreeGpus:
    """A copy of the free GPUs with changes by leaf."""
    freed = {leaf: count for leaf, count in changes.items() if count > 0}
    taken = {leaf: -count for leaf, count in changes.items() if count < 0}
    if not freed and not taken:
        return free
    free = free.copy()
    if freed:
        free.release(Placement.of(freed))
    if taken:
        free.claim(Placement.of(taken))
    return free
