"""GPUs of which jobs hold parts, and what is left of each, in thousandths of a GPU.

A job that asks for a share of a GPU (`Job.gpu_milli`) gets it from one GPU: of those that other
shares leave enough of the one with the least left (best fit), the first in visiting order among
equals; where there is none, from a free GPU. The GPUs of one leaf are alike, so a placement names
the leaf only, and this rule says which of its GPUs is meant. Enough is left if the memory that the
jobs there and the new one state fits the GPU's, too.

A job that asks for a MIG instance (`Job.mig`) gets it beside other instances where one may begin,
else from a free GPU, which is in MIG mode from then on until its last instance ends. No other job
shares such a GPU. Instances come and go one by one, and none moves.

`FreeGpus.shares` keeps count in a run in which jobs ask for shares; in others it is None.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Protocol, TypeAlias

from artist.cluster.mig import ALL, alike, best_start, free_starts, slices
from artist.units import GPU_MILLI

if TYPE_CHECKING:
    from artist.cluster.free_gpus import FreeGpus


class Sharing(Protocol):
    """A job, as far as it may share a GPU (`artist/workload/job.py`)."""

    @property
    def id(self) -> str:
        """Its name, of its own in a run."""

    @property
    def gpu_milli(self) -> int:
        """Thousandths of each of its GPUs; `GPU_MILLI`: all."""

    @property
    def gpu_memory_mib(self) -> int:
        """MiB of memory that it needs of each of its GPUs; 0: none are stated."""

    @property
    def mig(self) -> str:
        """The profile of the MIG instance that it asks for; empty: none."""


ANY_MEMORY = 2**62
"""MiB: more than any GPU has."""

_Gpu: TypeAlias = "tuple[int, int, int, int]"
"""What is left of a GPU, the turn of its machine, its leaf, and a number of its own."""


def memory_of(jobs: Iterable[Sharing]) -> int:
    """MiB that some jobs need together on a GPU."""
    return sum(job.gpu_memory_mib for job in jobs)


class FreeShares:
    """What is left of GPUs of which jobs hold parts. It belongs to a `FreeGpus`.

    `turns` are those of the machines of all leaves, `memory` is MiB of each of their GPUs (None:
    any), empty where it does not matter. `closed` are leaves of which no part is given away;
    whoever makes this may change them. `idle` is all that is left, in thousandths.
    """

    __slots__ = (
        "_gpu_of", "_jobs", "_limited", "_made", "_ranked", "_slices", "_turns", "closed", "idle",
        "memory", "nothing",
    )  # fmt: skip

    def __init__(
        self,
        turns: Sequence[int],
        closed: Collection[int] = (),
        memory: Sequence[int | None] = (),
    ) -> None:
        self._turns = turns
        self.closed = closed
        self.memory = memory
        # Whether anything but thousandths matters.
        self._limited = True
        self.idle = 0
        self._ranked: list[_Gpu] = []  # ascending
        self._gpu_of: dict[str, _Gpu] = {}
        # By number of the GPU: the jobs on it, in the order in which they came.
        self._jobs: dict[int, tuple[Sharing, ...]] = {}
        # By name: the memory slices of a job's MIG instance, a bit for each.
        self._slices: dict[str, int] = {}
        self._made = 0
        # Free GPUs of the same cluster of which none is free, once they are asked for.
        self.nothing: FreeGpus | None = None

    def copy(self) -> FreeShares:
        """An independent copy."""
        twin = FreeShares(self._turns, self.closed, self.memory)
        twin.idle, twin._made, twin.nothing = self.idle, self._made, self.nothing
        twin._ranked = self._ranked[:]
        twin._gpu_of, twin._jobs = self._gpu_of.copy(), self._jobs.copy()
        twin._slices = self._slices.copy()
        return twin

    def unlimited(self) -> FreeShares:
        """The same if only thousandths mattered. Valid until it changes; do not change it."""
        twin = copy(self)
        twin._limited = False
        return twin

    def has_room(self, milli: int) -> bool:
        """Whether some GPU has so much left, be it of use or not."""
        ranked = self._ranked
        return any(gpu[2] not in self.closed for gpu in ranked[bisect_left(ranked, (milli,)) :])

    def fitting(self, job: Sharing) -> Iterator[int]:
        """The leaves of the GPUs with room for a job, the fullest GPU first."""
        for gpu in self._ranked[bisect_left(self._ranked, (job.gpu_milli,)) :]:
            if gpu[2] not in self.closed and self._takes(gpu, job):
                yield gpu[2]

    def fits(self, leaf: int, job: Sharing) -> bool:
        """Whether some GPU of a leaf has room for a job."""
        return self._best(leaf, job) is not None

    def most_memory(self, leaf: int, milli: int) -> int | None:
        """MiB left on the one with the most of the GPUs of a leaf with so much left.

        None if there are none but such in MIG mode.
        """
        ranked = self._ranked[bisect_left(self._ranked, (milli,)) :]
        there = [gpu for gpu in ranked if gpu[2] == leaf and not self._jobs[gpu[3]][0].mig]
        return max(map(self._memory_left, there), default=None)

    def instance(self, job: Sharing) -> int:
        """The memory slices of a job's MIG instance, a bit for each; 0 if it has none."""
        return self._slices.get(job.id, 0)

    def claim(self, leaf: int, job: Sharing) -> bool:
        """Give a job its part of a GPU of a leaf. Whether that is one that was free before."""
        gpu = self._best(leaf, job)
        if fresh := gpu is None:
            self._made += 1
            gpu = GPU_MILLI, self._turns[leaf], leaf, self._made
            self.idle += GPU_MILLI
            self._jobs[self._made] = ()
        else:
            self._drop(gpu)
        if job.mig:
            start = best_start(job.mig, self._held_slices(gpu))
            self._slices[job.id] = slices(ALL[job.mig], start)
        self._jobs[gpu[3]] += (job,)
        self._keep(gpu, -job.gpu_milli)
        return fresh

    def release(self, job: Sharing) -> bool:
        """Take a job's part back. Whether its GPU is free now."""
        gpu = self._gpu_of.pop(job.id)
        self._slices.pop(job.id, None)
        self._drop(gpu)
        left = tuple(other for other in self._jobs[gpu[3]] if other.id != job.id)
        if not left:
            del self._jobs[gpu[3]]
            self.idle -= gpu[0]
            return True
        self._jobs[gpu[3]] = left
        self._keep(gpu, job.gpu_milli)
        return False

    def leaf_of(self, job: Sharing) -> int | None:
        """The leaf of a job's GPU; None if it holds no part of one."""
        gpu = self._gpu_of.get(job.id)
        return None if gpu is None else gpu[2]

    def beside(self, job: Sharing) -> list[str]:
        """The names of the other jobs on a job's GPU, in the order in which they came."""
        there = self._jobs[self._gpu_of[job.id][3]]
        return [other.id for other in there if other.id != job.id]

    def gpus(self) -> Mapping[tuple[int, int], tuple[int, Sequence[Sharing]]]:
        """Leaf and number of each GPU: what is left of it, and the jobs on it."""
        return {(leaf, made): (left, self._jobs[made]) for left, _, leaf, made in self._ranked}

    def _best(self, leaf: int, job: Sharing) -> _Gpu | None:
        ranked = self._ranked
        for index in range(bisect_left(ranked, (job.gpu_milli,)), len(ranked)):
            if ranked[index][2] == leaf and self._takes(ranked[index], job):
                return ranked[index]
        return None

    def _takes(self, gpu: _Gpu, job: Sharing) -> bool:
        """Whether a GPU that has enough left takes a job."""
        if not self._limited:
            return True
        mig = self._jobs[gpu[3]][0].mig
        if mig or job.mig:
            return alike(mig, job.mig) and bool(free_starts(job.mig, self._held_slices(gpu)))
        needed = job.gpu_memory_mib
        return not needed or not self.memory or self._memory_left(gpu) >= needed

    def _held_slices(self, gpu: _Gpu) -> int:
        held = 0
        for job in self._jobs[gpu[3]]:
            held |= self._slices[job.id]
        return held

    def _memory_left(self, gpu: _Gpu) -> int:
        """MiB of a GPU's memory that its jobs leave; more than any has if it states none."""
        whole = self.memory[gpu[2]] if self.memory else None
        return ANY_MEMORY if whole is None else whole - memory_of(self._jobs[gpu[3]])

    def _drop(self, gpu: _Gpu) -> None:
        del self._ranked[bisect_left(self._ranked, gpu)]

    def _keep(self, gpu: _Gpu, change: int) -> None:
        """File a GPU of which so much more is left than before."""
        left, turn, leaf, made = gpu
        gpu = left + change, turn, leaf, made
        self.idle += change
        insort(self._ranked, gpu)
        for job in self._jobs[made]:
            self._gpu_of[job.id] = gpu
