"""Observation `sensitivity`: what contention would cost each candidate, and the cluster in numbers.

A vector of `candidates` x `len(OF_A_CANDIDATE)` numbers and then `len(OF_THE_CLUSTER)` numbers,
all from 0 to 1. The numbers of a missing candidate are 0. How many numbers there are does not
depend on the cluster, so weights that were trained on a small cluster can be used on a large one.

The contention sensitivity of a job is CS = time of an iteration beside others / time alone (Ryu
and Eo, eq. 1). Here the run's rate function gives it (`ClusterView.links`), by the run's model of
contention: a table of pairs, or shared links.

With preemption at once, a candidate is shown as if it were the next to come forward. Running jobs
before it in order may in fact keep or take the GPUs that it is shown on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.tree import ClusterTree
from artist.contract import NO_SHARED_LINKS, JobView
from artist.policies.learned.task import AgentTask
from artist.policies.learned.task_options import TaskOptions
from artist.policies.shared.packing import best_level, pack_in_level
from artist.units import TICKS_PER_S, Tick

OF_A_CANDIDATE = (
    "1 if there is a candidate",
    "GPUs / GPUs of the cluster",
    "GPUs / 4 machines",
    "ideal time left, log",
    "ideal time left x GPUs, log",
    "time waited, log",
    "communication where it would lie",
    "communication at best",
    "machines needed / machines used",
    "own loss beside others",
    "largest loss of others",
    "sum of the losses of others",
    "takes GPUs of running jobs",
)
DEMAND = OF_A_CANDIDATE.index("GPUs / 4 machines")
SPREAD = OF_A_CANDIDATE.index("machines needed / machines used")
ONE_MACHINE = 0.25
"""`DEMAND` of a job that fills the largest machine."""
OF_THE_CLUSTER = (
    "free GPUs",
    "GPUs that can be had",
    "jobs running, log",
    "jobs waiting, log",
    "mean loss of running jobs",
    "GPUs of the first job that waits",
    "ideal time left x GPUs of it, log",
    "picked in this round, log",
)

YEAR = math.log1p(365 * 86400.0)
"""Logs of times are given as shares of this one."""
# The other logs are 1 at a year on 1,000 GPUs, and at 10,000 jobs.
_GPU_YEARS = math.log1p(1000 * 365 * 86400.0)
_MANY = math.log1p(10_000)


class _Spot(NamedTuple):
    """Where candidates of one demand would lie."""

    placement: Placement
    spread: float
    """Machines needed over machines used."""
    shares: bool
    """Whether another job sends on a link that they would cross."""
    takes: float
    """1 if some of the GPUs are held by running jobs, else 0."""
    alone_s: dict[tuple[str, float], float]
    """Time of an iteration without other jobs, by model and compute time."""


class Sensitivity:
    """The observation, in an array that every update overwrites."""

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        self._tree = tree
        self._rows = options.candidates
        width = len(OF_A_CANDIDATE)
        self.values: npt.NDArray[np.float32] = np.zeros(
            self._rows * width + len(OF_THE_CLUSTER), dtype=np.float32
        )
        self._machine_gpus = tree.largest(tree.machine)
        self._empty: FreeGpus | None = None
        # By demand: a task places jobs of one demand alike, so candidates of one demand would lie
        # on the same GPUs. Most candidates ask for one GPU.
        self._spots: dict[int, _Spot | None] = {}
        # Numbers that do not change within a round, by handle and the tick of entering the queue.
        self._asked: Tick = -1
        self._own: dict[tuple[int, Tick], tuple[float, ...]] = {}
        # By model and number of GPUs: the share of communication on the empty cluster.
        self._at_best: dict[tuple[str, int], float] = {}

    @property
    def parts(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """The values as rows of candidates, and of the cluster. Rebuilt, since copies would not
        share the memory of views that are kept.
        """
        split = self._rows * len(OF_A_CANDIDATE)
        return self.values[:split].reshape(self._rows, -1), self.values[split:]

    def update(self, task: AgentTask) -> npt.NDArray[np.float32]:
        """Observe; the array is valid until the next call."""
        self._spots.clear()
        if self._asked != task.view.now:
            self._asked = task.view.now
            self._own.clear()
        rows, cluster = self.parts
        count = len(task.candidates)
        for index, (_, job) in enumerate(task.candidates):
            rows[index] = self._of_candidate(task, job)
        rows[count:] = 0.0
        cluster[:] = self._of_cluster(task)
        return self.values

    def _of_candidate(self, task: AgentTask, view: JobView) -> tuple[float, ...]:
        gpus = view.job.gpus
        key = (view.handle, view.entered)
        own = self._own.get(key)
        if own is None:
            own = self._own[key] = self._of_job(view, task.view.now)
        if gpus not in self._spots:
            self._spots[gpus] = self._spot(task, view)
        return own + self._where(task, view, self._spots[gpus], self._best(task, view))

    def _of_job(self, view: JobView, now: Tick) -> tuple[float, ...]:
        """The first numbers of a candidate, which do not depend on where it would lie."""
        job, gpus = view.job, view.job.gpus
        left_s = (job.iterations - view.iterations_done(now)) * job.compute_s
        waited_s = (now - view.entered) / TICKS_PER_S
        return (
            1.0,
            gpus / self._tree.gpus,
            min(1.0, gpus / (4 * self._machine_gpus)),
            min(1.0, math.log1p(left_s) / YEAR),
            min(1.0, math.log1p(left_s * gpus) / _GPU_YEARS),
            min(1.0, math.log1p(waited_s) / YEAR),
        )

    def _spot(self, task: AgentTask, view: JobView) -> _Spot | None:
        """Where a job of this demand would lie; None if it would not get GPUs."""
        tree, placement = self._tree, task.contest.would_get(view)
        if placement is None:
            return None
        spread = 1.0
        if tier(tree, placement) != tree.machine:
            needed = -(-view.job.gpus // self._machine_gpus)
            spread = needed / len(machine_counts(tree, placement))
        shares = task.view.links is not NO_SHARED_LINKS and self._meets_others(task, placement)
        takes = 0.0 if task.contest.free.has(placement) else 1.0
        return _Spot(placement, spread, shares, takes, {})

    def _where(
        self, task: AgentTask, view: JobView, spot: _Spot | None, at_best: float
    ) -> tuple[float, ...]:
        """The other numbers, which depend on where it would lie; the worst if `spot` is None."""
        if spot is None:
            return (1.0, at_best, 0.0, 1.0, 1.0, 1.0, 1.0)
        job = view.job
        alone_s = spot.alone_s.get((job.model, job.compute_s))
        if alone_s is None:
            alone_s = task.view.alone(job, spot.placement).iteration_s
            spot.alone_s[job.model, job.compute_s] = alone_s
        share = 1.0 - job.compute_s / alone_s
        own = most = total = 0.0
        if spot.shares:
            own, beside = task.sharing.slowdowns(view.handle, spot.placement)
            losses = beside.values()
            most, total = max(losses, default=0.0), sum(losses)
        return (share, at_best, spot.spread, loss(own), loss(most), loss(total), spot.takes)

    def _meets_others(self, task: AgentTask, placement: Placement) -> bool:
        """Whether another job sends on a link that the job would cross. If not, no job slows down.

        Computing all slowdowns costs as much as ten of these tests.
        """
        if len(placement.leaves) == 1:
            return False
        busy = task.sharing.busy()
        parents, units = self._tree.parents, set(placement.leaves)
        for level, parent in enumerate(parents):
            if len(units) == 1:
                return False
            if any(busy.get((level, unit)) for unit in units):
                return True
            units = {parent[unit] for unit in units}
        return False

    def _best(self, task: AgentTask, view: JobView) -> float:
        """The share of communication on the empty cluster."""
        job = view.job
        key = (job.model, job.gpus)
        if key not in self._at_best:
            if self._empty is None:
                self._empty = FreeGpus(self._tree)
            placement = pack_in_level(self._empty, best_level(self._tree, job.gpus), job.gpus)
            assert placement is not None  # every job fits the empty cluster
            self._at_best[key] = self._communication(task, view, placement)
        return self._at_best[key]

    def _communication(self, task: AgentTask, view: JobView, placement: Placement) -> float:
        """Exposed communication as a share of an iteration, without other jobs."""
        rate = task.view.alone(view.job, placement)
        return 1.0 - view.job.compute_s / rate.iteration_s

    def _of_cluster(self, task: AgentTask) -> tuple[float, ...]:
        """`OF_THE_CLUSTER`."""
        view, contest, gpus = task.view, task.contest, self._tree.gpus
        first = task.first_waiting()
        wanted = first.job.gpus if first is not None else 0
        area_s = 0.0
        if first is not None:
            left = first.job.iterations - first.iterations_done(view.now)
            area_s = left * first.job.compute_s * wanted
        return (
            task.outcome().free.total / gpus,
            contest.pool.total / gpus,
            min(1.0, math.log1p(len(view.running)) / _MANY),
            min(1.0, math.log1p(task.waiting) / _MANY),
            loss(mean_loss(view.running.values())),
            wanted / gpus,
            min(1.0, math.log1p(area_s) / _GPU_YEARS),
            min(1.0, math.log1p(len(contest.decisions)) / _MANY),
        )


def mean_loss(running: Iterable[JobView]) -> float:
    """Mean of CS - 1 over running jobs; 0 if none runs."""
    total, count = 0.0, 0
    for job in running:
        rate = job.rate
        if rate is not None:
            total += rate.iteration_s / rate.alone_iteration_s - 1.0
            count += 1
    return total / count if count else 0.0


def loss(more: float) -> float:
    """The share of speed that is lost, 1 - 1/CS, from CS - 1: .5 if an iteration takes half as long
    again.
    """
    return more / (1.0 + more)
