"""CPU cores and memory of machines, and memory, MIG modes and kinds of GPUs: what jobs leave free.

A job says how many CPU cores and how much memory it needs in all (`Job.cpu_milli`,
`Job.memory_mib`). Each of its GPUs takes an equal part from its own machine: with `n` of the job's
`gpus` on a machine, the job takes `n / gpus` there, rounded up to whole thousandths of a core and
MiB. What a job or a machine does not state does not matter.

Each GPU of a job must have the memory that the job needs there (`Job.gpu_memory_mib`), a mode with
its MIG profile (`Job.mig`), and a kind that it accepts (`Job.gpu_kinds`). `gpu_shares.py` counts
the memory that jobs on one GPU leave.

`FreeGpus.hosts` counts all this in a run in which jobs and machines state needs, or in which some
job does not accept every kind. In other runs it is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import NAMES, PROFILES
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import HostSizes
from artist.errors import PolicyError
from artist.units import CORE_MILLI, GIB_MIB

if TYPE_CHECKING:
    from artist.cluster.free_gpus import FreeGpus
    from artist.cluster.tree import ClusterTree

Amounts: TypeAlias = npt.NDArray[np.int64]


class Needy(Protocol):
    """What a job needs of GPUs and their machines (`artist/workload/job.py`)."""

    @property
    def id(self) -> str:
        """Its name, which is unique in a run."""

    @property
    def gpus(self) -> int:
        """GPUs that it asks for."""

    @property
    def cpu_milli(self) -> int:
        """Thousandths of CPU cores that it needs in all; 0: not stated."""

    @property
    def memory_mib(self) -> int:
        """MiB of memory that it needs in all; 0: not stated."""

    @property
    def gpu_milli(self) -> int:
        """Thousandths of each of its GPUs; `GPU_MILLI`: whole GPUs."""

    @property
    def is_share(self) -> bool:
        """Whether it asks for less than a whole GPU."""

    @property
    def gpu_memory_mib(self) -> int:
        """MiB of memory that it needs on each of its GPUs; 0: not stated."""

    @property
    def mig(self) -> str:
        """The profile of the MIG instance that it asks for; empty: none."""

    @property
    def gpu_kinds(self) -> tuple[str, ...]:
        """The kinds of GPUs that it accepts; empty: all."""


Need: TypeAlias = "tuple[int, int, int, int, str, tuple[str, ...]]"
"""What decides which GPUs a job can use: CPU cores and memory in all, number of GPUs, and the
memory, MIG profile and kinds that each GPU must have."""

ANY_MEMORY = 2**62
"""MiB: more than any GPU has."""

_ANY_NUMBER = 2**31
"""GPUs: more than any machine has."""


class Resource(NamedTuple):
    """A resource: its name as the cause of a wait, its unit, and the parts of a unit counted."""

    cause: Literal["cpu_cores", "memory", "gpu_memory", "mig", "gpu_kind"]
    unit: str
    parts: int


RESOURCES = (
    Resource("cpu_cores", "CPU cores", CORE_MILLI),
    Resource("memory", "GiB of memory", GIB_MIB),
)
"""What jobs take of machines, in the order of `HostSizes`."""

GPU_MEMORY = Resource("gpu_memory", "GiB of GPU memory", GIB_MIB)
MIG = Resource("mig", "GPUs for its MIG instance", 1)
"""What each GPU of a job must have."""


def of_kind(kinds: Sequence[str]) -> Resource:
    """The requirement that each GPU of a job is of one of these kinds."""
    return Resource("gpu_kind", f"GPUs of kind {' or '.join(kinds)}", 1)


class Shortage(NamedTuple):
    """How much of a resource machines or GPUs have left for a job, and how much it needs there."""

    resource: Resource
    left: int
    needed: int

    def __str__(self) -> str:
        _, unit, parts = self.resource
        return f"{self.left / parts:g} free {unit} of the {self.needed / parts:g}"


class _EachGpu(NamedTuple):
    """What each GPU of a machine has, by machine. None if no machine states it."""

    memory: Amounts | None
    """MiB."""
    profiles: Mapping[str, Amounts] | None
    """By MIG profile: 1 if the GPU can have it, else 0."""
    kinds: dict[tuple[str, ...], Amounts]
    """By the kinds that a job accepts: 1 if the GPU is of one of them, else 0."""

    @classmethod
    def of(cls, sizes: HostSizes) -> _EachGpu:
        mib = [ANY_MEMORY if x is None else x for x in sizes.gpu_memory_mib]
        modes = [() if mode is None else PROFILES[mode] for mode in sizes.mig]
        profiles = {name: np.array([int(name in mode) for mode in modes]) for name in NAMES}
        return cls(np.array(mib, np.int64) if mib else None, profiles if modes else None, {})


class FreeHosts:
    """CPU cores and memory left on each machine, and what its GPUs have. Part of a `FreeGpus`.

    `known` remembers the answers of `FreeGpus.fed` until something changes; None: all free GPUs.
    """

    __slots__ = ("_each_gpu", "_left", "_stated", "_tree", "_trees", "known")

    def __init__(
        self,
        tree: ClusterTree,
        left: list[Amounts],
        stated: list[npt.NDArray[np.bool_]],
        each_gpu: _EachGpu,
        trees: dict[Need, ClusterTree],
    ) -> None:
        self._tree, self._left, self._stated, self._trees = tree, left, stated, trees
        self._each_gpu = each_gpu
        self.known: dict[Need, FreeGpus | None] = {}

    @classmethod
    def of_idle(cls, tree: ClusterTree) -> FreeHosts | None:
        """All that an empty cluster has; None if machines state nothing and have one kind."""
        sizes = tree.hosts
        if sizes is None:
            if len({*tree.kinds}) == 1:
                return None
            sizes = HostSizes(*[(None,) * len(tree.kinds)] * 2)
        left = [np.array([x or 0 for x in amounts], np.int64) for amounts in sizes[:2]]
        stated = [np.array([x is not None for x in amounts]) for amounts in sizes[:2]]
        return cls(tree, left, stated, _EachGpu.of(sizes), {})

    @classmethod
    def that_matter(cls, tree: ClusterTree, jobs: Sequence[Needy]) -> FreeHosts | None:
        """All that an empty cluster has; None if no job of the run needs any of it."""
        kinds, states = {*tree.kinds}, tree.hosts is not None
        matter = any(
            (states and (x.cpu_milli or x.memory_mib or x.gpu_memory_mib or x.mig))
            or (x.gpu_kinds and not kinds.issubset(x.gpu_kinds))
            for x in jobs
        )
        return cls.of_idle(tree) if matter else None

    def copy(self) -> FreeHosts:
        """An independent copy."""
        left = [amounts.copy() for amounts in self._left]
        return FreeHosts(self._tree, left, self._stated, self._each_gpu, self._trees)

    def nothing(self) -> FreeHosts:
        """The same machines with nothing left."""
        left = [np.zeros_like(amounts) for amounts in self._left]
        return FreeHosts(self._tree, left, self._stated, self._each_gpu, self._trees)

    def become(self, all_of: FreeHosts, without: FreeHosts) -> None:
        """Take the amounts `all_of` less `without`, at least 0."""
        self.known.clear()
        for left, more, less in zip(self._left, all_of._left, without._left, strict=True):
            np.maximum(more - less, 0, out=left)

    def fed(self, job: Needy) -> Amounts | None:
        """How many GPUs of a job each machine has enough for; None if the job states no needs."""
        most: Amounts | None = None
        for left, stated, total in zip(self._left, self._stated, _needs(job), strict=True):
            if total:
                here = np.where(stated, left * job.gpus // total, _ANY_NUMBER)
                most = here if most is None else np.minimum(most, here)
        for _, each, needed in self._of_gpus(job):
            most = np.where(each >= needed, _ANY_NUMBER if most is None else most, 0)
        return most

    def tree_for(self, job: Needy) -> ClusterTree:
        """The empty cluster with only the GPUs that a job could use."""
        key = need(job)
        if key not in self._trees:
            idle = FreeHosts.of_idle(self._tree)
            most = None if idle is None else idle.fed(job)
            self._trees[key] = self._tree if most is None else _smaller(self._tree, most)
        return self._trees[key]

    def shortage(self, placement: Placement, job: Needy) -> Shortage | None:
        """What a placement's machines or GPUs lack for a job; None if nothing.

        Of several resources it is the first. The amounts are sums over the machines that lack it.
        """
        lacking: dict[int, tuple[int, int]] = {}
        for which, machine, amount in self._shares(placement, job):
            left = int(self._left[which][machine])
            if left < amount:
                before = lacking.get(which, (0, 0))
                lacking[which] = before[0] + left, before[1] + amount
        if lacking:
            first = min(lacking)
            return Shortage(RESOURCES[first], *lacking[first])
        for resource, each, needed in self._of_gpus(job):
            counts = machine_counts(self._tree, placement)
            least = int(each[list(counts)].min())
            if least < needed:
                if resource.cause == "gpu_kind":
                    least = sum(gpus for machine, gpus in counts.items() if each[machine])
                    needed = placement.gpus
                return Shortage(resource, least, needed)
        return None

    def claim(self, placement: Placement, job: Needy | None) -> None:
        """Take what a job needs for these GPUs. Without a job, take nothing.

        Raises:
            PolicyError: a machine has too little left; nothing is changed.
        """
        if job is not None:
            if (lacks := self.shortage(placement, job)) is not None:
                raise PolicyError(f"its GPUs' machines have {lacks} that it needs there")
            self.take(placement, job)
        self.known.clear()

    def _of_gpus(self, job: Needy) -> Iterator[tuple[Resource, Amounts, int]]:
        """Needs of a job per GPU: the resource, what each machine's GPUs have, what is needed."""
        memory, profiles, kinds = self._each_gpu
        if job.gpu_kinds:
            if job.gpu_kinds not in kinds:
                accepted = [int(kind in job.gpu_kinds) for kind in self._tree.kinds]
                kinds[job.gpu_kinds] = np.array(accepted)
            yield of_kind(job.gpu_kinds), kinds[job.gpu_kinds], 1
        if job.gpu_memory_mib and memory is not None:
            yield GPU_MEMORY, memory, job.gpu_memory_mib
        if job.mig and profiles is not None:
            yield MIG, profiles[job.mig], 1

    def take(self, placement: Placement, job: Needy) -> None:
        """As `claim`, but without the check: amounts may fall below 0."""
        for which, machine, amount in self._shares(placement, job):
            self._left[which][machine] -= amount
        self.known.clear()

    def lack(self, placement: Placement) -> bool:
        """Whether an amount is below 0 on some machine of a placement (`take`)."""
        machines = list(machine_counts(self._tree, placement))
        return any(bool((left[machines] < 0).any()) for left in self._left)

    def release(self, placement: Placement, job: Needy | None) -> None:
        """Give back what a job took for these GPUs."""
        if job is not None:
            for which, machine, amount in self._shares(placement, job):
                self._left[which][machine] += amount
        self.known.clear()

    def is_less(self, than: FreeHosts) -> bool:
        """Whether some machine has less left of some resource."""
        return any(bool((x < y).any()) for x, y in zip(self._left, than._left, strict=True))

    def __eq__(self, other: object) -> bool:
        """Whether every machine has as much left."""
        if not isinstance(other, FreeHosts):
            return NotImplemented
        return all(map(np.array_equal, self._left, other._left))

    __hash__ = None  # type: ignore[assignment]  # it changes

    def _shares(self, placement: Placement, job: Needy) -> Iterator[tuple[int, int, int]]:
        """(index of a resource, machine, amount that the job's GPUs there take of it)."""
        counts = machine_counts(self._tree, placement)
        for which, total in enumerate(_needs(job)):
            if total:
                for machine, gpus in counts.items():
                    if self._stated[which][machine]:
                        yield which, machine, -(-gpus * total // job.gpus)  # rounded up


def _smaller(tree: ClusterTree, per_machine: Amounts) -> ClusterTree:
    """The tree with at most this many GPUs in each machine; the tree itself if nothing changes."""
    gpus = np.minimum(tree.levels[tree.machine].gpus, per_machine)
    if np.array_equal(gpus, tree.levels[tree.machine].gpus):
        return tree
    levels = list(tree.levels)
    for index in range(tree.machine, len(levels)):
        if index > tree.machine:
            gpus = np.add.reduceat(gpus, levels[index].first_child[:-1])
        levels[index] = replace(levels[index], gpus=tuple(gpus.tolist()))
    return replace(tree, levels=tuple(levels))


def need(job: Needy) -> Need:
    """What decides which GPUs a job can use (`Need`)."""
    # The number of GPUs matters only for what they take of machines together.
    gpus = job.gpus if job.cpu_milli or job.memory_mib else 0
    return job.cpu_milli, job.memory_mib, gpus, job.gpu_memory_mib, job.mig, job.gpu_kinds


def _needs(job: Needy) -> tuple[int, int]:
    """CPU cores and memory in all, in the order of `RESOURCES`."""
    return job.cpu_milli, job.memory_mib
