"""A task: it answers a question of the engine in several small actions.

    begin(view) -> observe, mask -> act -> observe, mask -> act -> ... -> decisions()

A **round** is one question. In it the agent picks **candidates** one after the other, until it
answers none or no candidate is left. A pick takes effect at once: the next observation shows fewer
free GPUs. The engine gets the decisions of the whole round in one answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView, Migrate, Preempt, Start
from artist.policies.learned.task_options import TaskOptions
from artist.policies.shared.contest import Contest
from artist.policies.shared.ranking import ORDERS, Rank, RankedQueue
from artist.policies.shared.sharing import Sharing
from artist.workload.job import Job

Mask: TypeAlias = npt.NDArray[np.bool_]


class RoundOutcome(NamedTuple):
    """The state of the cluster if the round ended now."""

    placed: dict[int, tuple[Job, Placement]]
    """By handle: the jobs that would have GPUs."""
    free: FreeGpus
    sharing: Sharing


class AgentTask(ABC):
    """What both tasks share: the queue, the candidates, and the answer none.

    Action numbers run from 0 to `actions - 1`; the last one is none. Between rounds a task holds
    no view, so it can be copied and pickled.
    """

    actions: int

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        self.options = options
        self.tree = tree
        self._rank = ORDERS[options.order]
        self._queue = RankedQueue()
        self._passed: set[int] = set()
        self._view: ClusterView | None = None
        self._contest: Contest | None = None
        self._sharing: Sharing | None = None
        self.candidates: list[tuple[Rank, JobView]] = []
        """The waiting jobs that can be picked now, the first in order first."""

    # -- a round -----------------------------------------------------------------

    def begin(self, view: ClusterView) -> bool:
        """Start a round. Returns whether there is a candidate; if not, call `decisions()`."""
        for job in view.entered:
            self._queue.add(job, self._rank(job, view.now))
        self._passed.clear()
        self._view = view
        self._use_contest(Contest(view.free, (), self._place))
        self._join(self.contest)
        self._choose()
        return bool(self.candidates)

    def act(self, action: int) -> bool:
        """Do an action that `mask` allows. Returns whether the round goes on."""
        if action == self.actions - 1:
            return False
        job = self._pick(action)
        self._passed.add(job.handle)
        self._choose()
        return bool(self.candidates)

    def decisions(self) -> Sequence[Decision]:
        """End the round and return the answer to the engine."""
        contest = self.contest
        self._end(contest)
        self._view = self._contest = self._sharing = None
        self.candidates = []
        return contest.decisions

    def mask(self) -> Mask:
        """Which actions are allowed; the next call overwrites the array.

        The answer none is not allowed while no job runs and none was picked, since the run could
        stop forever. Nor is it if the options say that the agent may not wait.
        """
        mask = self._mask()
        a_job_runs = bool(self.view.running) or bool(self.contest.decisions)
        mask[-1] = self.options.may_wait and a_job_runs
        return mask

    def _use_contest(self, contest: Contest) -> None:
        self._contest, self._sharing = contest, Sharing(self.view)
        self._sharing.decisions = contest.decisions

    # -- what a round shows --------------------------------------------------------

    @property
    def view(self) -> ClusterView:
        """The question of this round."""
        assert self._view is not None  # only asked within a round
        return self._view

    @property
    def contest(self) -> Contest:
        """The contest of this round: free GPUs and the decisions so far."""
        assert self._contest is not None  # only asked within a round
        return self._contest

    @property
    def sharing(self) -> Sharing:
        """The use of links after the decisions so far."""
        assert self._sharing is not None  # only asked within a round
        return self._sharing

    @property
    def waiting(self) -> int:
        """Jobs that wait and have not been picked."""
        return len(self._queue)

    def outcome(self) -> RoundOutcome:
        """The state of the cluster if the round ended now, with the answer none."""
        return self._outcome(self.contest, self.sharing)

    def _outcome(self, contest: Contest, sharing: Sharing) -> RoundOutcome:
        """The state of the cluster after the decisions of a contest."""
        view = self.view
        placed = {
            handle: (job.job, job.placement)
            for handle, job in view.running.items()
            if job.placement is not None
        }
        for decision in contest.decisions:
            if isinstance(decision, Start | Migrate):
                job = view.waiting.get(decision.handle) or view.running[decision.handle]
                placed[decision.handle] = (job.job, decision.placement)
            elif isinstance(decision, Preempt):
                del placed[decision.handle]
        return RoundOutcome(placed, contest.free, sharing)

    def first_waiting(self) -> JobView | None:
        """The first job in order that waits, whether or not it can be picked."""
        first = self._queue.first(self.view.cluster.gpus)
        return None if first is None else self.view.waiting[first[1]]

    # -- what a task decides -------------------------------------------------------

    @abstractmethod
    def _mask(self) -> Mask:
        """The mask of the candidates' actions; the last entry is filled in by `mask`."""

    @abstractmethod
    def _pick(self, action: int) -> JobView:
        """Give a candidate GPUs if possible, and return it."""

    @abstractmethod
    def _choose(self) -> None:
        """Fill in `candidates`."""

    @abstractmethod
    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        """Where a contest places a job."""

    @abstractmethod
    def _join(self, contest: Contest) -> None:
        """Put running jobs into the contest."""

    @abstractmethod
    def _end(self, contest: Contest) -> None:
        """Complete the round when it ends."""
