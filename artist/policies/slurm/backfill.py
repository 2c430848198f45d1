"""Backfill: start jobs that, by time limits, delay no job before them (`sched/backfill`).

A pass tests jobs in order. It finds when each job could start on machines that are not reserved
until the job's limit. If that is now, the job starts. Else *whole machines* are reserved for it
from then on, however few of their GPUs it needs.

The start of a job is estimated as in `select/cons_tres`: running jobs end at their limits. They are
removed in that order; jobs that end within 30 s (then 60 s, 120 s ...) of each other are removed
together. So the estimate may be later than the earliest possible start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from artist.policies.slurm.machines import Free
from artist.policies.slurm.request import Request
from artist.policies.slurm.running import RunningJob
from artist.policies.slurm.selection import fits, holds_together

_FIRST_WINDOW_S = 30
_STRIDE = 16
"""After this many departures each, the free GPUs and CPUs of all machines are kept."""


class Departures:
    """What becomes free as running jobs leave one after the other, by their expected ends.

    A pass uses the same `Departures` for all jobs that it tests, until it starts or preempts a job.
    """

    def __init__(self, free: Free, running: Sequence[RunningJob]) -> None:
        self.running = running
        self._ends = [job.end_s for job in running]
        self._free = free
        self._gpus, self._cpus = free.gpus[:], free.cpus[:]
        # Per job that has left: its machines, and the GPUs and CPUs that are free there afterwards.
        self._after: list[list[tuple[int, int, int]]] = []
        # Free GPUs and CPUs of all machines once 0, _STRIDE, 2 _STRIDE ... jobs have left.
        self._counts = [(free.gpus[:], free.cpus[:])]
        # Per GPUs and CPUs of a machine: the machines with room once 0, 1, 2 ... jobs have left.
        self._rooms: dict[tuple[int, int], list[int]] = {}
        # By machines and request: the index of the last job that must leave, and how many leave.
        self._found: dict[tuple[object, ...], tuple[int, int] | None] = {}

    def first(self, request: Request, among: int) -> tuple[RunningJob, int] | None:
        """The running job after whose end a job fits on some machines, and how many have left.

        None if the job never fits.
        """
        gpus = request.job.gpus if request.spread else 0
        key = (among, request.nodes, request.gpus, request.cpus, gpus, request.most_nodes)
        if key not in self._found:
            self._found[key] = self._first(request, among)
        found = self._found[key]
        return None if found is None else (self.running[found[0]], found[1])

    def _first(self, request: Request, among: int) -> tuple[int, int] | None:
        """As `first`, with the index of the last job that must leave; not cached."""
        ends, count = self._ends, len(self._ends)
        last = self._holds(among, range(count))
        if last is None:
            return None
        left, window_s = last, _FIRST_WINDOW_S
        base_s = (ends[last] // window_s + 1) * window_s
        rooms = self._rooms_of(request.gpus, request.cpus)
        while left < count:
            # All jobs that end in the window leave, and more until one has left these machines.
            in_window = bisect_right(ends, base_s + window_s, left)
            last = self._holds(among, range(max(left, in_window - 1), count))
            if last is not None:
                left = last + 1
            else:
                last = self._holds(among, range(count - 1, left - 1, -1))
                if last is None:
                    break
                left = count
            window_s *= 2
            while left < count and ends[left] > base_s + window_s:
                window_s *= 2
            if left >= len(rooms):
                self._extend(rooms, request.gpus, request.cpus, left)
            if (among & rooms[left]).bit_count() >= request.nodes and (
                not request.spread or holds_together(request, self.free_after(request, left), among)
            ):
                return last, left
        return None

    def _holds(self, among: int, indices: Iterable[int]) -> int | None:
        """The first of these running jobs that holds machines of a bit set; None if none does."""
        running = self.running
        for index in indices:
            if running[index].machines & among:
                return index
        return None

    def free_after(self, request: Request, left: int) -> Free:
        """What is free for a job once `left` jobs have left."""
        rooms = self._rooms_of(request.gpus, request.cpus)
        strides = left // _STRIDE
        gpus, cpus = self._counts[strides]
        gpus, cpus = gpus[:], cpus[:]
        for machines in self._after[strides * _STRIDE : left]:
            for index, free_gpus, free_cpus in machines:
                gpus[index], cpus[index] = free_gpus, free_cpus
        return Free(gpus, cpus, {(request.gpus, request.cpus): rooms[left]})

    def _rooms_of(self, gpus: int, cpus: int) -> list[int]:
        rooms = self._rooms.get((gpus, cpus))
        if rooms is None:
            rooms = self._rooms[gpus, cpus] = [self._free.room(gpus, cpus)]
        return rooms

    def _extend(self, rooms: list[int], gpus: int, cpus: int, left: int) -> None:
        """Note the machines with room for the GPUs and CPUs, up to when `left` jobs have left."""
        after = self._after
        while len(after) < left:
            self._leave(self.running[len(after)])
        room = rooms[-1]
        for number in range(len(rooms) - 1, left):
            for index, free_gpus, free_cpus in after[number]:
                if free_gpus >= gpus and free_cpus >= cpus:
                    room |= 1 << index
            rooms.append(room)

    def _leave(self, job: RunningJob) -> None:
        after = []
        for index, gpus, cpus in job.held:
            self._gpus[index] += gpus
            self._cpus[index] += cpus
            after.append((index, self._gpus[index], self._cpus[index]))
        self._after.append(after)
        if len(self._after) % _STRIDE == 0:
            self._counts.append((self._gpus[:], self._cpus[:]))


class Possible(NamedTuple):
    """When a job could start, and what is free then. `Selection.choose` finds the machines."""

    start_s: int
    free: Callable[[], Free]


def will_run(
    request: Request,
    free: Free,
    among: int,
    departures: Departures,
    now_s: int,
    *,
    preemptable: Iterable[RunningJob],
    now_only: bool,
    busy_until: Callable[[int], int],
) -> Possible | None:
    """When a job could start on machines of a bit set, and what is free then; None if never.

    `departures` are those of the running jobs. Jobs in `preemptable` can be taken away now. With
    `now_only`, later starts are not looked for.
    """
    if fits(request, free, among):
        return Possible(now_s, lambda: free)
    gone = {job.handle: job for job in preemptable}
    if gone:
        later = free.copy()
        for job in gone.values():
            job.leave(later)
        if fits(request, later, among):
            return Possible(now_s, lambda: later)
        left = [job for job in departures.running if job.handle not in gone]
        departures = Departures(later, left)
    if now_only:
        return None
    found = departures.first(request, among)
    if found is None:
        return None
    last, count = found
    return Possible(busy_until(last.end_s), lambda: departures.free_after(request, count))


class ReservedMachines:
    """The machines that no waiting job has reserved, over time (Slurm's `node_space`)."""

    def __init__(self, now_s: int, resolution_s: int, window_s: int, machines: int) -> None:
        self._resolution_s = resolution_s
        self._begins = [now_s // resolution_s * resolution_s]
        self._last_s = (now_s + window_s) // resolution_s * resolution_s
        self._open = [machines]

    def available(self, among: int, start_s: int, end_s: int) -> tuple[int, int | None]:
        """The machines of a bit set that are open from a start to an end, and when to try again.

        That is when other machines become open; None if none do.
        """
        if start_s >= self._last_s:
            return among, None
        begins, open_, found = self._begins, self._open, among
        later_s = None
        first = max(0, bisect_right(begins, start_s) - 1)
        for index in range(first, bisect_right(begins, end_s)):
            found &= open_[index]
            # Trying later helps only if machines are open then that are not open now.
            if later_s is None and index + 1 < len(begins) and among & open_[index + 1] & ~found:
                later_s = begins[index + 1]
        return found, later_s

    def overlaps(self, machines: int, start_s: int, end_s: int) -> bool:
        """Whether some of these machines are reserved between a start and an end.

        As for `available`, no machine is reserved after the window's last slot. Else a job that
        starts between that slot's end and the window's would be tried at the same time forever.
        """
        start_s, end_s = self._rounded(start_s), self._rounded(end_s)
        if start_s >= self._last_s:
            return False
        first = max(0, bisect_right(self._begins, start_s) - 1)
        last = bisect_left(self._begins, end_s)
        return any(machines & ~open_ for open_ in self._open[first:last])

    def reserve(self, machines: int, start_s: int, end_s: int) -> None:
        """Reserve machines, for at least one slot of bf_resolution."""
        start_s = max(self._rounded(start_s), self._begins[0])
        end_s = max(self._rounded(end_s), start_s + self._resolution_s)
        if start_s >= self._last_s:
            return
        first, last = self._split(start_s), self._split(end_s)
        for index in range(first, last):
            self._open[index] &= ~machines

    def _rounded(self, at_s: int) -> int:
        return at_s // self._resolution_s * self._resolution_s

    def _split(self, at_s: int) -> int:
        """The index of the slot that begins at a time. The slot is made if there is none."""
        if at_s >= self._last_s:
            return len(self._begins)
        index = bisect_right(self._begins, at_s) - 1
        if self._begins[index] == at_s:
            return index
        self._begins.insert(index + 1, at_s)
        self._open.insert(index + 1, self._open[index])
        return index + 1
