"""Slurm from a moment on. Until then, jobs start when and where they really did.

So a forecast begins with the real queue, running jobs, ages and usage.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from artist.cluster.cluster_file import Cluster
from artist.contract import ClusterView, Decision, Wake
from artist.policies.slurm.fair_share import UsageState
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.passes import SchedulingPass
from artist.policies.slurm.policy import Slurm
from artist.policies.slurm.selection import fits, shares
from artist.rng import Draws
from artist.units import Tick


@dataclass(frozen=True)
class Past:
    """What happened before the moment."""

    until: Tick
    starts: Mapping[int, tuple[Tick, tuple[str, ...]]]
    """By handle, when each job started and on which machines."""
    eligible_s: Mapping[int, int]
    """By handle, the Unix time from which each requeued job may start."""
    usage: UsageState | None = None
    """Usage for fair share at the moment, if jobs that ended before it are left out."""


class Continued(Slurm):
    """Slurm that decides from a moment on. It notes in `started` when `watched` jobs start."""

    def __init__(
        self,
        options: SlurmOptions,
        draws: Draws,
        cluster: Cluster,
        past: Past,
        watched: Collection[int] = (),
    ) -> None:
        super().__init__(options, draws, cluster)
        self._past = past
        self._unstarted = {*watched}
        self.started: dict[int, Tick] = {}
        self._continues = False

    @property
    def is_done(self) -> bool:
        """Whether all watched jobs have started."""
        return not self._unstarted

    def usage(self) -> UsageState:
        """The usage for fair share now."""
        return self._priorities.fair_share.state()

    def _passes(self, view: ClusterView) -> list[Decision]:
        """Replay starts until the moment; then decide as Slurm, and note starts of watched jobs."""
        if view.now < self._past.until:
            return self._replay_starts(view)
        if not self._continues:
            self._continues = True
            self._take_over()
        decisions = super()._passes(view)
        for handle in [x for x in self._unstarted if x in self._running.of]:
            self._unstarted.discard(handle)
            self.started[handle] = view.now
        return decisions

    def _take_over(self) -> None:
        """Set when requeued jobs are eligible, and the usage of the jobs that are left out.

        The main scheduler runs at its next tick, not at the moment itself.
        """
        if self._main_due is not None:
            self._main_due = max(self._main_due, self._clocks["tick"].at_or_after(self._past.until))
        for handle, at_s in self._past.eligible_s.items():
            if handle in self._queue:
                self._asleep[handle] = at_s
                self._queue[handle].wait_until(at_s)
        if self._past.usage is None or not self._priorities.change:
            return
        self._priorities.fair_share.restore(self._past.usage)
        self._queue.set_priorities(self._priorities, self._seconds(self._calculated))

    def _replay_starts(self, view: ClusterView) -> list[Decision]:
        """Start the jobs that have started by now, on their machines if these are free."""
        due = [x for x in self._queue if x in self._past.starts]
        due = [x for x in due if self._past.starts[x][0] <= view.now]
        if not due:
            return []
        state = SchedulingPass(view, self._machines, self._running, self._seconds(view.now))
        for handle in due:
            request = self._queue[handle]
            machines = self._machines.known(self._past.starts[handle][1])
            accepted = self._machines.of_kinds(request.job.gpu_kinds)
            room = accepted & state.free.room(request.gpus, 0)
            held = machines.bit_count() == request.nodes or request.spread
            if machines & ~room or not held or not fits(request, state.free, machines):
                chosen = self._selection.choose(request, state.free, accepted)
                if chosen is None:
                    continue
                machines = chosen
            if sum(gpus for _, gpus in shares(request, state.free, machines)) == request.job.gpus:
                state.start(request, machines)
        for handle in state.started:
            self._gpus_held += self._queue.take(handle).job.gpus
        return state.decisions()

    def _next_wake(self, now: Tick) -> list[Decision]:
        if now >= self._past.until:
            return super()._next_wake(now)
        # A job that could not start because its machines are held is tried again when a job ends.
        starts = (self._past.starts[x][0] for x in self._queue if x in self._past.starts)
        return [Wake(min([self._past.until, *(start for start in starts if start > now)]))]
