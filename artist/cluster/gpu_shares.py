"""GPUs of which jobs hold parts, and what is left of each, in thousandths of a GPU.

A job that asks for a share of a GPU (`Job.gpu_milli`) gets it from one GPU. Of the shared GPUs with
enough left, it is the one with the least left (best fit), and the first in visiting order among
equals. If there is none, it is a free GPU. The GPUs of one leaf are alike, so a placement names
only the leaf, and this rule says which of its GPUs is meant. The GPU's memory must also suffice for
all of its jobs, as far as they state theirs.

A job that asks for a MIG instance (`Job.mig`) gets one beside other instances if one may begin
there, else on a free GPU. That GPU is then in MIG mode until its last instance ends, and only jobs
with instances share it. Instances come and go one by one, and none moves.

`SharedGpus` are the free GPUs of a run in which jobs ask for shares. Other runs do not use it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import TypeAlias

import numpy as np

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.host_resources import ANY_MEMORY, Needy
from artist.cluster.mig import (
    ALL,
    COMPUTE_SLICES,
    alike,
    best_start,
    compute_slices,
    free_starts,
    slices,
)
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.errors import PolicyError
from artist.units import GPU_MILLI

_Gpu: TypeAlias = "tuple[int, int, int, int]"
"""Thousandths left of a GPU, the turn of its machine, its leaf, and a number that identifies it."""


def memory_of(jobs: Iterable[Needy]) -> int:
    """MiB that these jobs need together on a GPU."""
    return sum(job.gpu_memory_mib for job in jobs)


class FreeShares:
    """What is left of GPUs of which jobs hold parts. It belongs to a `SharedGpus`.

    By leaf, `turns` holds the turn of its machine, and `memory` the MiB of each of its GPUs (None:
    any amount; empty where memory does not matter). Leaves in `closed` give no parts away; the
    collection may change later. `idle` is all that is left of these GPUs, in thousandths.
    """

    __slots__ = (
        "_gpu_of", "_jobs", "_limited", "_made", "_ranked", "_slices", "_turns", "closed", "idle",
        "memory",
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
        # Whether memory and MIG modes matter, besides thousandths.
        self._limited = True
        self.idle = 0
        self._ranked: list[_Gpu] = []  # ascending
        self._gpu_of: dict[str, _Gpu] = {}
        # By number of the GPU: the jobs on it, in the order in which they came.
        self._jobs: dict[int, tuple[Needy, ...]] = {}
        # By job id: the memory slices of its MIG instance, one bit each.
        self._slices: dict[str, int] = {}
        self._made = 0

    def copy(self) -> FreeShares:
        """An independent copy."""
        twin = FreeShares(self._turns, self.closed, self.memory)
        twin.idle, twin._made = self.idle, self._made
        twin._ranked = self._ranked[:]
        twin._gpu_of, twin._jobs = self._gpu_of.copy(), self._jobs.copy()
        twin._slices = self._slices.copy()
        return twin

    def unlimited(self) -> FreeShares:
        """A view in which only thousandths matter. It is valid until a change; do not change it."""
        twin = copy(self)
        twin._limited = False
        return twin

    @property
    def most_left(self) -> int:
        """The most that is left of any GPU, even if no job could use it; 0 if there is none.

        A GPU without a free compute slice does not count: seven 1g instances leave an eighth of it.
        """
        for left, _, leaf, made in reversed(self._ranked):
            held = compute_slices(job.mig for job in self._jobs[made])
            if leaf not in self.closed and held < COMPUTE_SLICES:
                return left
        return 0

    def fitting(self, job: Needy) -> Iterator[int]:
        """The leaves of the GPUs with room for a job, the fullest GPU first."""
        for gpu in self._ranked[bisect_left(self._ranked, (job.gpu_milli,)) :]:
            if gpu[2] not in self.closed and self._takes(gpu, job):
                yield gpu[2]

    def fits(self, leaf: int, job: Needy) -> bool:
        """Whether some GPU of a leaf has room for a job."""
        return self._best(leaf, job) is not None

    def most_memory(self, leaf: int, milli: int) -> int | None:
        """The most MiB left on any GPU of a leaf that has `milli` thousandths left.

        None if there are no such GPUs outside MIG mode.
        """
        ranked = self._ranked[bisect_left(self._ranked, (milli,)) :]
        there = [gpu for gpu in ranked if gpu[2] == leaf and not self._jobs[gpu[3]][0].mig]
        return max(map(self._memory_left, there), default=None)

    def instance(self, job: Needy) -> int:
        """The memory slices of a job's MIG instance, one bit each; 0 if it has none."""
        return self._slices.get(job.id, 0)

    def claim(self, leaf: int, job: Needy) -> bool:
        """Give a job its part of a GPU of a leaf. Returns whether that GPU was free before."""
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

    def release(self, job: Needy) -> bool:
        """Take a job's part back. Returns whether its GPU is free now."""
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

    def leaf_of(self, job: Needy) -> int | None:
        """The leaf of a job's GPU; None if it holds no part of one."""
        gpu = self._gpu_of.get(job.id)
        return None if gpu is None else gpu[2]

    def beside(self, job: Needy) -> list[str]:
        """The ids of the other jobs on a job's GPU, in the order in which they came."""
        there = self._jobs[self._gpu_of[job.id][3]]
        return [other.id for other in there if other.id != job.id]

    def gpus(self) -> Mapping[tuple[int, int], tuple[int, Sequence[Needy]]]:
        """By (leaf, number) of each GPU: the thousandths left of it, and the jobs on it."""
        return {(leaf, made): (left, self._jobs[made]) for left, _, leaf, made in self._ranked}

    def _best(self, leaf: int, job: Needy) -> _Gpu | None:
        ranked = self._ranked
        for index in range(bisect_left(ranked, (job.gpu_milli,)), len(ranked)):
            if ranked[index][2] == leaf and self._takes(ranked[index], job):
                return ranked[index]
        return None

    def _takes(self, gpu: _Gpu, job: Needy) -> bool:
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
        """MiB of a GPU's memory that its jobs leave; `ANY_MEMORY` if its size is not stated."""
        whole = self.memory[gpu[2]] if self.memory else None
        return ANY_MEMORY if whole is None else whole - memory_of(self._jobs[gpu[3]])

    def _drop(self, gpu: _Gpu) -> None:
        del self._ranked[bisect_left(self._ranked, gpu)]

    def _keep(self, gpu: _Gpu, change: int) -> None:
        """File a GPU again, with `change` more thousandths left."""
        left, turn, leaf, made = gpu
        gpu = left + change, turn, leaf, made
        self.idle += change
        insort(self._ranked, gpu)
        for job in self._jobs[made]:
            self._gpu_of[job.id] = gpu


class SharedGpus(FreeGpus):
    """The free GPUs of a run in which jobs ask for shares. A GPU with shares is not free.

    Leaves in `closed` give no shares away.
    """

    __slots__ = ("_nothing", "shares")

    def __init__(
        self, tree: ClusterTree, visiting_order: VisitingOrder | None, closed: Collection[int]
    ) -> None:
        super().__init__(tree, visiting_order)
        turns, machines = self._order.turns[tree.machine], tree.machine_of
        stated = () if tree.hosts is None else tree.hosts.gpu_memory_mib
        memory = [stated[x] for x in machines] if stated else []
        self.shares = FreeShares([turns[x] for x in machines], closed, memory)
        # A copy in which no GPU is free, made when it is first needed.
        self._nothing: FreeGpus | None = None

    def copy(self) -> SharedGpus:
        """An independent copy."""
        twin = SharedGpus.__new__(SharedGpus)
        FreeGpus.become(twin, super().copy())
        twin.shares, twin._nothing = self.shares.copy(), self._nothing
        return twin

    def become(self, other: FreeGpus) -> None:
        """Take over the contents of another object, which may not be used afterwards."""
        super().become(other)
        assert isinstance(other, SharedGpus)
        self.shares = other.shares

    @property
    def room(self) -> int:
        """The largest demand that these GPUs might serve; below 0 for a demand for a share."""
        return self.total or self.shares.most_left - GPU_MILLI

    def fits_one(self, level: int, gpus: int, inside: Unit | None = None) -> bool:
        """Whether some unit has `gpus` free GPUs, or might serve a demand for a share (below 0)."""
        return super().fits_one(level, gpus, inside) if gpus > 0 else self.room >= gpus

    def unfed(self) -> SharedGpus:
        """The same free GPUs, as if CPU cores, memory and MIG modes did not matter."""
        twin = copy(self)
        twin.hosts, twin.shares = None, self.shares.unlimited()
        return twin

    def fed(self, job: Needy) -> FreeGpus:
        """The free GPUs that a job could use. A job that asks for a share gets only the shared GPU
        that fits it best, if there is one."""
        beside = self._beside(job) if job.is_share else None
        return super().fed(job) if beside is None else beside

    def _beside(self, job: Needy) -> FreeGpus | None:
        """A copy in which only one GPU is free: the shared GPU with the least left for a job."""
        for leaf in self.shares.fitting(job):
            gpu = Placement((leaf,), (1,))
            if self.hosts is None or self.hosts.shortage(gpu, job) is None:
                if self._nothing is None:
                    machines = len(self.tree.levels[self.tree.machine])
                    self._nothing = self._at_most(self.tree, np.zeros(machines, np.int64))
                only = self._nothing.copy()
                only._move(gpu, +1)
                return only
        return None

    def has(self, placement: Placement, job: Needy | None = None) -> bool:
        """Whether every GPU of a placement is free, or has enough left for the job's share, and its
        machines have what the job needs."""
        if job is None or not job.is_share or not self.shares.fits(placement.leaves[0], job):
            return super().has(placement, job)
        return self.hosts is None or self.hosts.shortage(placement, job) is None

    def claim(self, placement: Placement, job: Needy | None = None) -> None:
        """Take GPUs, or a share: of a shared GPU if one fits, else of a free GPU."""
        if job is None or not job.is_share:
            super().claim(placement, job)
            return
        leaf = placement.leaves[0]
        beside = self.shares.fits(leaf, job)
        if not beside:
            super().claim(placement)
        if self.hosts is not None:
            try:
                self.hosts.claim(placement, job)
            except PolicyError:
                if not beside:
                    super().release(placement)
                raise
        self.shares.claim(leaf, job)

    def release(self, placement: Placement, job: Needy | None = None) -> None:
        """Give GPUs or a share back."""
        if job is None or not job.is_share:
            super().release(placement, job)
            return
        if self.hosts is not None:
            self.hosts.release(placement, job)
        if self.shares.release(job):
            super().release(placement)
