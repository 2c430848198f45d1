"""The jobs that hold GPUs, by their expected ends, and what they leave free.

`Running` is kept from pass to pass. A pass changes it as it starts and preempts jobs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from artist.cluster.free_gpus import FreeGpus
from artist.policies.slurm.machines import Free, Machines
from artist.policies.slurm.request import Request


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job that holds GPUs: its start and expected end, and its (machine, GPUs, CPUs)."""

    handle: int
    number: int
    """Slurm's number of the job, or of the array of which it is a task."""
    start_s: int
    end_s: int
    machines: int
    """The bit set of its machines."""
    held: tuple[tuple[int, int, int], ...]

    def leave(self, free: Free) -> None:
        """Add the job's GPUs and CPUs to what is free."""
        for index, gpus, cpus in self.held:
            free.change(index, gpus, cpus)


class Running:
    """All running jobs."""

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self.of: dict[int, RunningJob] = {}
        """The jobs by handle."""
        self.by_end: list[RunningJob] = []
        """The jobs by expected end, the first to end first."""
        self.by_number = Counter[int]()
        """How many jobs have a number: tasks of an array share it."""
        self.requests: dict[int, Request] = {}
        """What they asked for, in the partitions that they run in."""
        self.touched = set[int]()
        """Handles of jobs that started or left, or whose expected end changed, for `Limits`."""
        self.free = Free(machines.gpus[:], machines.cpus[:])

    def see(self, free: FreeGpus) -> None:
        """Note what is free now. The counts change if machines left service or came back."""
        tree, units = self._machines.tree, self._machines.units
        gpus = free.counts_inside(tree.machine, range(len(units)))
        if not self._machines.in_tree_order:
            gpus = [gpus[unit] for unit in units]
        if gpus != self.free.gpus:
            self.free = Free(gpus, self.free.cpus)

    def start(self, job: RunningJob, request: Request) -> None:
        """Note that a job gets GPUs."""
        self.requests[job.handle] = request
        self.by_number[job.number] += 1
        for index, gpus, cpus in job.held:
            self.free.change(index, -gpus, -cpus)
        self._expect(job)

    def leave(self, handle: int) -> RunningJob:
        """Note that a job gives its GPUs back."""
        job = self.of.pop(handle)
        del self.requests[handle]
        self.by_number[job.number] -= 1
        self._forget(job)
        job.leave(self.free)
        return job

    def expect(self, handle: int, end_s: int) -> None:
        """Expect a job to end at another time."""
        self._forget(self.of[handle])
        self._expect(replace(self.of[handle], end_s=end_s))

    def _expect(self, job: RunningJob) -> None:
        self.of[job.handle] = job
        self.touched.add(job.handle)
        insort(self.by_end, job, key=_by_end)

    def _forget(self, job: RunningJob) -> None:
        self.touched.add(job.handle)
        del self.by_end[bisect_left(self.by_end, _by_end(job), key=_by_end)]


def machines_of(held: Iterable[tuple[int, int, int]]) -> int:
    """The bit set of the machines of a running job."""
    return sum(1 << index for index, _, _ in held)


def _by_end(job: RunningJob) -> tuple[int, int]:
    return job.end_s, job.handle
