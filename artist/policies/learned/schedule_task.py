"""Task `schedule`: which waiting job is next, or none. A placer decides where it runs.

Action k picks candidate k, the last action is none. Without preemption a candidate is a waiting job
for which enough GPUs are free. With preemption `at-once` it may also take GPUs of running jobs
behind it in order, by the rules of a contest (`shared/contest.py`). So an agent that always picks
the first candidate is SRSF, if the order is `area`.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, JobView, Start
from artist.policies.learned.task import AgentTask, Mask, RoundOutcome
from artist.policies.learned.task_options import TaskOptions
from artist.policies.shared.contest import Contest
from artist.policies.shared.placers import placer
from artist.policies.shared.ranking import LastRanked, Rank, behind, by_rank


class ScheduleTask(AgentTask):
    """The task."""

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        super().__init__(options, tree)
        self.actions = options.candidates + 1
        self._placer = placer(options.placement)
        self._allowed = np.zeros(self.actions, dtype=bool)
        # `LastRanked` needs ranks that never rise while a job runs. Attained service rises.
        never_rises = options.preemption == "at-once" and options.order != "service"
        self._last = LastRanked() if never_rises else None
        # Running jobs that have not come forward in this round, the last in order first.
        self._to_come: list[tuple[Rank, JobView]] = []

    def _mask(self) -> Mask:
        self._allowed[:] = False
        self._allowed[: len(self.candidates)] = True
        return self._allowed

    def _place(self, job: JobView, free: FreeGpus) -> Placement | None:
        return self._placer.place(free, job.job.gpus, self.sharing.busy)

    def _join(self, contest: Contest) -> None:
        """With preemption, let the running jobs behind the first waiting one contend."""
        self._to_come = []
        if self.options.preemption == "never":
            return
        view = self.view
        first = self._queue.first(view.cluster.gpus)
        running = self._behind(view, first) if first is not None else []
        if view.on_notice:
            running = [(rank, job) for rank, job in running if view.frees(job)]
        self._to_come = sorted(running, key=by_rank, reverse=True)
        contest.contend([job for _, job in self._to_come])

    def _behind(self, view: ClusterView, first: tuple[Rank, int]) -> list[tuple[Rank, JobView]]:
        """Running jobs that come after a waiting one."""

        def rank(job: JobView) -> Rank:
            return self._rank(job, view.now)

        if self._last is None:
            return behind(first, view.running.values(), rank)
        return self._last.behind(first, view.running, rank)

    def begin(self, view: ClusterView) -> bool:
        """Start a round, as every task does."""
        if self._last is not None:
            # A job that waits again may have lost iterations, so its bound may no longer hold.
            for handle in (*view.finished, *(job.handle for job in view.entered)):
                self._last.forget(handle)
        return super().begin(view)

    def _choose(self) -> None:
        """The first waiting jobs for which free GPUs, and those of jobs behind them, suffice."""
        pool, free = self.contest.pool, self.contest.free.total
        keys, held = self._held_behind()
        if free + held[0] > pool.total:
            # A job that has yet to come forward will find some of its GPUs taken. Then it leaves
            # the rest of them, or displaces the next job. So any GPUs of the pool may become free.
            # A candidate that still gets none is passed over, as in a contest.
            free = pool.total
        self.candidates = chosen = []
        for rank, job in self._queue.walk(lambda gpus: self._placer.possible(pool, gpus)):
            if job.handle in self._passed:
                continue
            gpus = job.job.gpus
            if gpus <= free or gpus <= free + held[_after(keys, (rank, job.handle))]:
                chosen.append((rank, job))
                if len(chosen) == self.options.candidates:
                    break

    def _held_behind(self) -> tuple[list[tuple[Rank, int]], list[int]]:
        """The keys of the jobs to come, in order, and the GPUs held from each place on."""
        keys = [by_rank(pair) for pair in reversed(self._to_come)]
        held = [0]
        for _, job in self._to_come:
            held.append(held[-1] + job.gpus)
        return keys, held[::-1]

    def _pick(self, action: int) -> JobView:
        rank, job = self.candidates[action]
        while self._to_come and by_rank(self._to_come[-1]) < (rank, job.handle):
            self.contest.offer(*self._to_come.pop())
        if self.contest.offer(rank, job):
            self._queue.remove(job.handle)
        return job

    @property
    def _some_lose_gpus(self) -> bool:
        """Whether a job that has yet to come forward finds GPUs of its own taken."""
        return bool(self._to_come) and not self.contest.leaves_all

    def _offer_others(self, contest: Contest) -> None:
        for rank, job in reversed(self._to_come):
            contest.offer(rank, job)

    def outcome(self) -> RoundOutcome:
        """The outcome, after running jobs that lose GPUs have moved or wait; tried on a copy."""
        if not self._some_lose_gpus:
            return super().outcome()
        contest, sharing = self.contest, self.sharing
        tried = contest.copy()
        self._use_contest(tried)  # the placer asks for the links after its decisions
        self._offer_others(tried)
        outcome = self._outcome(tried, self.sharing)
        self._contest, self._sharing = contest, sharing
        return outcome

    def _end(self, contest: Contest) -> None:
        if self._some_lose_gpus:
            self._offer_others(contest)
        self._to_come = []
        if self._last is not None:
            view = self.view
            for decision in contest.decisions:
                if isinstance(decision, Start):
                    job = view.waiting[decision.handle]
                    self._last.add(job.handle, self._rank(job, view.now))


def _after(keys: list[tuple[Rank, int]], key: tuple[Rank, int]) -> int:
    return bisect_right(keys, key)
