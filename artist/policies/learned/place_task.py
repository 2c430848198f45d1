"""Task `place`: which candidate on which list of machines, or none (Ryu and Eo, section IV).

Candidates are the first waiting jobs of each GPU demand. A job of d GPUs may take a list of 2^i
machines with d / 2^i GPUs on each. Of L lists, action c x L + l puts candidate c on list l; the
last action is none. As in the paper, every set of 2^i machines is a list, as long as there are at
most `MOST_LISTS`. A larger cluster has only lists of neighbours: 2^i machines from a multiple of
2^i on.

Three things go beyond the paper, so that any trace can be run. The list of all machines always
exists. If 2^i does not divide d, the first machines get one GPU more. And one machine may be a list
(option `one_machine`; the code of the paper never offers it).
"""

from __future__ import annotations

from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import JobView
from artist.errors import ConfigError
from artist.policies.learned.task import AgentTask, Mask
from artist.policies.learned.task_options import TaskOptions
from artist.policies.shared.contest import Contest
from artist.policies.shared.packing import pack_in_unit

MOST_LISTS = 256
"""4 machines have 11 lists and 8 have 107; 16 would have 14,827, most of them alike."""


class MachineLists(NamedTuple):
    """The lists of machines, in the order of their lengths."""

    machines: list[tuple[int, ...]]
    lengths: npt.NDArray[np.int64]
    """The length of each list."""
    starts: npt.NDArray[np.int64]
    """Where each list begins in `flat`."""
    flat: npt.NDArray[np.int64]
    """All lists in a row."""


class PlaceTask(AgentTask):
    """The task."""

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        super().__init__(options, tree)
        self.lists = lists_of(len(tree.levels[tree.machine]), one_machine=options.one_machine)
        self.actions = options.candidates * len(self.lists.machines) + 1
        self._allowed = np.zeros(self.actions, dtype=bool)
        # By demand: whether some list of the empty cluster can hold it.
        self._holds: dict[int, bool] = {}

    def _mask(self) -> Mask:
        self._allowed[:] = False
        rows = self._allowed[:-1].reshape(self.options.candidates, len(self.lists.machines))
        for row, (_, job) in zip(rows, self.candidates, strict=False):
            row[:] = self._fits(job.job.gpus, self._least_free)
        return self._allowed

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        """Where the first list that fits would put a job; observations use it."""
        fitting = np.flatnonzero(self._fits(job.job.gpus, self._least_of(free)))
        if not fitting.size:
            return None
        return placement_on(free, self.lists.machines[fitting[0]], job.job.gpus)

    def _choose(self) -> None:
        """The first job of each demand for which some list has room."""
        free = self.contest.free
        self.__dict__.pop("_least_free", None)  # the cached property of the last state
        chosen, demands = [], set()
        for rank, job in self._queue.walk(lambda gpus: gpus <= free.total and gpus not in demands):
            self._check(job)
            demands.add(job.job.gpus)
            if self._fits(job.job.gpus, self._least_free).any():
                chosen.append((rank, job))
                if len(chosen) == self.options.candidates:
                    break
        self.candidates = chosen

    def _pick(self, action: int) -> JobView:
        candidate, index = divmod(action, len(self.lists.machines))
        _, job = self.candidates[candidate]
        machines = self.lists.machines[index]
        self.contest.start(job, placement_on(self.contest.free, machines, job.job.gpus))
        self._queue.remove(job.handle)
        return job

    def _join(self, contest: Contest) -> None:
        """No job is preempted."""

    def _end(self, contest: Contest) -> None:
        """No job is left."""

    @cached_property
    def _least_free(self) -> npt.NDArray[np.int32]:
        """By list, the free GPUs of its machine that has fewest."""
        return self._least_of(self.contest.free)

    def _least_of(self, free: FreeGpus) -> npt.NDArray[np.int32]:
        counts = free.counts(self.tree.machine)
        least: npt.NDArray[np.int32] = np.minimum.reduceat(
            counts[self.lists.flat], self.lists.starts
        )
        return least

    def _fits(self, gpus: int, least: npt.NDArray[np.int32]) -> Mask:
        """Which lists a job fits on, with at least one GPU on every machine."""
        lengths = self.lists.lengths
        fits: Mask = (lengths <= gpus) & (-(-gpus // lengths) <= least)
        return fits

    def _check(self, job: JobView) -> None:
        """Refuse a job that no list could ever hold."""
        gpus = job.job.gpus
        if gpus not in self._holds:
            machines = np.array(self.tree.levels[self.tree.machine].gpus, dtype=np.int32)
            least = np.minimum.reduceat(machines[self.lists.flat], self.lists.starts)
            self._holds[gpus] = bool(self._fits(gpus, least).any())
        if not self._holds[gpus]:
            raise ConfigError(
                f"task place: no list of machines of this cluster holds job {job.job.id!r} of "
                f"{gpus} GPUs; use task schedule, or set task.one_machine=true"
            )


def lists_of(machines: int, *, one_machine: bool) -> MachineLists:
    """The lists of a cluster with this many machines, shorter ones first."""
    powers = [1 << i for i in range(machines.bit_length())]
    lengths = [n for n in powers if n <= machines and (one_machine or n > 1)]
    if machines not in lengths:
        lengths.append(machines)
    lists: list[tuple[int, ...]] = []
    for length in lengths:
        lists += combinations(range(machines), length)
        if len(lists) > MOST_LISTS:
            return _packed(_neighbours(machines, lengths))
    return _packed(lists)


def _neighbours(machines: int, lengths: list[int]) -> list[tuple[int, ...]]:
    return [
        tuple(range(first, first + length))
        for length in lengths
        for first in range(0, machines - length + 1, length)
    ]


def _packed(lists: list[tuple[int, ...]]) -> MachineLists:
    lengths = np.array([len(one) for one in lists])
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    return MachineLists(lists, lengths, starts, np.concatenate([np.array(one) for one in lists]))


def placement_on(free: FreeGpus, machines: tuple[int, ...], gpus: int) -> Placement:
    """Divide the GPUs of a job equally over machines that have them free."""
    share, more = divmod(gpus, len(machines))
    taken: dict[int, int] = {}
    for number, machine in enumerate(machines):
        taken |= pack_in_unit(free, free.tree.machine, machine, share + (number < more))
    return Placement.of(taken)
