"""Backfill: start jobs that delay none of those before them, by time limits (`sched/backfill`).

A pass looks at jobs in order. For each it asks when the job could start on machines that nothing
reserves for as long as the job's limit. If that is now, the job starts. Else *whole machines* are
reserved for it from then on, whatever GPUs of them it needs.

When a job could start is found as in `select/cons_tres`: running jobs are expected to end at their
limits. They are taken away in that order, those together that end within 30 s (then 60 s, 120 s
...) of each other. So a start may be expected later than it could be.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from artist.policies.slurm.machines import Free
from artist.policies.slurm.request import Request
from artist.policies.slurm.selection import Selection

_FIRST_WINDOW_S = 30


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds GPUs: when it is expected to end, and (machine, GPUs, CPUs) of it."""

    handle: int
    start_s: int
    end_s: int
    machines: int
    held: tuple[tuple[int, int, int], ...]

    def leave(self, free: Free) -> None:
        """Give its GPUs and CPUs back."""
        for index, gpus, cpus in self.held:
            free.change(index, gpus, cpus)


class Departures:
    """What is free as running jobs leave one after the other, by their expected ends.

    A pass keeps one for all jobs that it tests, until it starts or preempts a job: then the free
    GPUs are others.
    """

    def __init__(self, free: Free, running: Sequence[RunningJob]) -> None:
        self.running = running
        self._free = free
        self._gpus, self._cpus = free.gpus[:], free.cpus[:]
        # Per job that has left: its machines, and the GPUs and CPUs that are free there then.
        self._after: list[list[tuple[int, int, int]]] = []
        # Per GPUs and CPUs of a machine: the machines with room once 0, 1, 2 ... jobs have left.
        self._rooms: dict[tuple[int, int], list[int]] = {}
        # By machines and what is asked for: how many jobs must leave, and the machines then.
        self._found: dict[tuple[object, ...], tuple[int, int] | None] = {}

    def first(
        self, request: Request, among: int, selection: Selection
    ) -> tuple[RunningJob, int] | None:
        """The job after whose end a job could start on machines of a bit set, and on which."""
        size = (request.job.gpus, request.nodes, request.gpus, request.cpus, request.most_cpus)
        key = (among, request.spread, *size)
        if key not in self._found:
            self._found[key] = self._first(request, among, selection)
        found = self._found[key]
        return None if found is None else (self.running[found[0]], found[1])

    def _first(self, request: Request, among: int, selection: Selection) -> tuple[int, int] | None:
        running = self.running
        left, window_s, base_s = 0, _FIRST_WINDOW_S, 0
        while left < len(running):
            last = None
            while left < len(running):
                job = running[left]
                left += 1
                if not job.machines & among:
                    continue
                last = left - 1
                base_s = base_s or (job.end_s // window_s + 1) * window_s
                if left < len(running) and running[left].end_s > base_s + window_s:
                    break
            if last is None:
                break
            window_s *= 2
            while left < len(running) and running[left].end_s > base_s + window_s:
                window_s *= 2
            chosen = self._choose(request, among, left, selection)
            if chosen is not None:
                return last, chosen
        return None

    def _choose(self, request: Request, among: int, left: int, selection: Selection) -> int | None:
        """The machines of a bit set that a job gets once so many jobs have left, or None."""
        room = self._room(request.gpus, request.cpus, left)
        if (among & room).bit_count() < request.nodes:
            return None
        gpus, cpus = self._free.gpus[:], self._free.cpus[:]
        for machines in self._after[:left]:
            for index, free_gpus, free_cpus in machines:
                gpus[index], cpus[index] = free_gpus, free_cpus
        free = Free(gpus, cpus, {(request.gpus, request.cpus): room})
        return selection.choose(request, free, among)

    def _room(self, gpus: int, cpus: int, left: int) -> int:
        """The machines with so many free GPUs and CPUs once so many jobs have left."""
        rooms = self._rooms.get((gpus, cpus))
        if rooms is None:
            rooms = self._rooms[gpus, cpus] = [self._free.room(gpus, cpus)]
        while len(self._after) < left:
            self._leave(self.running[len(self._after)])
        for machines in self._after[len(rooms) - 1 : left]:
            room = rooms[-1]
            for index, free_gpus, free_cpus in machines:
                if free_gpus >= gpus and free_cpus >= cpus:
                    room |= 1 << index
            rooms.append(room)
        return rooms[left]

    def _leave(self, job: RunningJob) -> None:
        after = []
        for index, gpus, cpus in job.held:
            self._gpus[index] += gpus
            self._cpus[index] += cpus
            after.append((index, self._gpus[index], self._cpus[index]))
        self._after.append(after)


class Possible(NamedTuple):
    """When a job could start, and on which machines."""

    start_s: int
    machines: int


def will_run(
    request: Request,
    free: Free,
    among: int,
    departures: Departures,
    selection: Selection,
    now_s: int,
    *,
    preemptable: Iterable[RunningJob] = (),
    now_only: bool = False,
    busy_until: Callable[[int], int] = lambda end_s: end_s,
) -> Possible | None:
    """When and where a job could start on machines of a bit set; None if never.

    `departures` are those of the running jobs. Jobs in `preemptable` can be taken away now.
    """
    chosen = selection.choose(request, free, among)
    if chosen is not None:
        return Possible(now_s, chosen)
    gone = {job.handle: job for job in preemptable}
    if gone:
        later = free.copy()
        for job in gone.values():
            job.leave(later)
        chosen = selection.choose(request, later, among)
        if chosen is not None:
            return Possible(now_s, chosen)
        left = [job for job in departures.running if job.handle not in gone]
        departures = Departures(later, left)
    if now_only:
        return None
    found = departures.first(request, among, selection)
    return None if found is None else Possible(busy_until(found[0].end_s), found[1])


class ReservedMachines:
    """Machines that no waiting job has reserved, over time (Slurm's `node_space`)."""

    def __init__(self, now_s: int, resolution_s: int, window_s: int, machines: int) -> None:
        self._resolution_s = resolution_s
        self._begins = [now_s // resolution_s * resolution_s]
        self._last_s = (now_s + window_s) // resolution_s * resolution_s
        self._open = [machines]

    def available(self, among: int, start_s: int, end_s: int) -> tuple[int, int | None]:
        """The machines of a bit set that are open from a start to an end.

        Also when other machines become open, at which to try again; None if that is never.
        """
        later_s, found = None, among
        if start_s >= self._last_s:
            return found, later_s
        first = max(0, bisect_right(self._begins, start_s) - 1)
        for index in range(first, len(self._begins)):
            if self._begins[index] > end_s:
                break
            if later_s is None and index + 1 < len(self._begins):
                # Trying later helps only if there are machines then that are not there now.
                following = among & self._open[index + 1]
                if following & ~(found & self._open[index]):
                    later_s = self._begins[index + 1]
            found &= self._open[index]
        return found, later_s

    def overlaps(self, machines: int, start_s: int, end_s: int) -> bool:
        """Whether some of these machines are reserved between a start and an end."""
        start_s, end_s = self._rounded(start_s), self._rounded(end_s)
        first = max(0, bisect_right(self._begins, start_s) - 1)
        for index in range(first, len(self._begins)):
            if self._begins[index] >= end_s:
                return False
            if machines & ~self._open[index]:
                return True
        return False

    def reserve(self, machines: int, start_s: int, end_s: int) -> None:
        """Reserve machines, at least for one slot of bf_resolution."""
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
        """The index of the slot that begins at a time, which is made if there is none."""
        if at_s >= self._last_s:
            return len(self._begins)
        index = bisect_right(self._begins, at_s) - 1
        if self._begins[index] == at_s:
            return index
        self._begins.insert(index + 1, at_s)
        self._open.insert(index + 1, self._open[index])
        return index + 1


def machines_of(held: Iterable[tuple[int, int, int]]) -> int:
    """The bit set of the machines of a running job."""
    return sum(1 << index for index, _, _ in held)
