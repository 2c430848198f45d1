"""Policies in rounds: all jobs are placed together at regular times."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wake,
)
from artist.policies.shared.clock import PeriodClock
from artist.policies.shared.round_waits import RoundWaits
from artist.rng import Draws
from artist.units import Tick, ticks


class Rounds(BasePolicy):
    """A policy that places jobs at the strikes of a clock, which begins at the first arrival.

    While nothing happens and the policy is `settled`, the gap after each round that changes nothing
    is twice the gap before it.
    """

    def __init__(self, period_s: float, draws: Draws, *, one_kind: bool = False) -> None:
        """`one_kind`: the policy gives no job GPUs of several kinds."""
        self._period = ticks(period_s)
        self._clock = PeriodClock(self._period, draws.phase(self._period))
        self._next: Tick = -1
        """When the next round begins."""
        self._gap = 1
        """Periods between rounds."""
        self._wakes = set[Tick]()
        """Those asked for. Of several, all but the last come from gaps that an event cut short."""
        self._seen: tuple[tuple[int, ...], Mapping[int, Tick]] | None = None
        """The GPUs that were free at the last question, by leaf, and the leaves on notice."""
        self._waits = RoundWaits(self._period, one_kind=one_kind)

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Place all jobs again if a round begins."""
        self._clock.asked(view)
        self.note(view)
        if self._something_happened(view):
            self._gap = 1
            self._next = self._clock.at_or_after(view.now)
        decisions: list[Decision] = []
        begins, goes_on = self._next == view.now, self._waits.goes_on(view)
        self.in_round = begins or goes_on
        if self.in_round:
            decisions += self.round(view)
        if begins:
            self._gap = 2 * self._gap if not decisions and self.settled(view) else 1
            self._next = view.now + self._gap * self._period
        if self.in_round:
            decisions += self._waits.begun(view, decisions)
        else:
            decisions += self._waits.between(view, self._next)
        if self._next not in self._wakes and self.can_improve(view):
            self._wakes.add(self._next)
            decisions.append(Wake(self._next))
        return decisions

    def _something_happened(self, view: ClusterView) -> bool:
        """Whether more than time has passed since the last question."""
        woken, before = view.now in self._wakes, self._seen
        self._wakes.discard(view.now)
        self._seen = tuple(view.free.leaves), {**view.on_notice}
        return not woken or bool(view.entered or view.finished) or self._seen != before

    @abstractmethod
    def round(self, view: ClusterView) -> Sequence[Decision]:
        """The decisions at a strike."""

    def note(self, view: ClusterView) -> None:
        """Note what a question shows. It is called before every answer, in a round or not."""

    def settled(self, view: ClusterView) -> bool:
        """Whether time alone changes no decision.

        That is so if no running job has goodput parameters, or could have more or fewer GPUs. What
        GPUs are worth to such jobs depends on their age and on the work that is left.
        """
        jobs = [state.job for state in view.running.values()]
        return not any(job.goodput or job.gpus_min < job.gpus_max for job in jobs)

    def can_improve(self, view: ClusterView) -> bool:
        """Whether another round could change anything: jobs wait, or could have more GPUs."""
        return bool(view.waiting) or any(
            state.job.gpus_min < state.job.gpus_max for state in view.running.values()
        )


def movable(view: ClusterView) -> dict[int, JobView]:
    """The jobs that may get other GPUs, by handle in ascending order."""
    running = {x: state for x, state in view.running.items() if view.frees(state)}
    return dict(sorted({**view.waiting, **running}.items()))


def pool_of(view: ClusterView, jobs: Mapping[int, JobView]) -> FreeGpus:
    """The free GPUs together with the GPUs of these jobs."""
    pool = view.free.copy()
    for state in jobs.values():
        if state.placement is not None:
            pool.release(state.placement)
    return pool


def slowdown(state: JobView) -> float:
    """How much longer a running job's iteration takes beside its present neighbours, at least 1."""
    rate = state.rate
    return 1.0 if rate is None else max(rate.iteration_s / rate.alone_iteration_s, 1.0)


def changes(
    view: ClusterView, jobs: Mapping[int, JobView], placed: Mapping[int, Placement]
) -> list[Decision]:
    """Decisions after which, of these jobs, exactly those in `placed` run."""
    decisions: list[Decision] = []
    for handle, state in jobs.items():
        placement = placed.get(handle)
        if placement == state.placement:
            continue
        if placement is None:
            decisions.append(Preempt(handle, "other jobs have the round"))
        elif handle in view.waiting:
            decisions.append(Start(handle, placement))
        else:
            decisions.append(Migrate(handle, placement))
    return decisions
