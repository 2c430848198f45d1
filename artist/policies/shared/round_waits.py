"""Rounds of policies that place jobs only at their beginning: why jobs wait, and if one goes on."""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.placement import Placement
from artist.contract import ClusterView, Decision, Migrate, Preempt, Start, Wait
from artist.policies.shared.refusals import OtherKinds
from artist.policies.shared.usable import free_after
from artist.units import Tick, clock_text


class RoundWaits:
    """Says why jobs wait, at the beginning of rounds and between them."""

    def __init__(self, period: Tick, *, one_kind: bool) -> None:
        """`one_kind`: the policy gives no job GPUs of several kinds."""
        self._late = f"jobs start at the beginning of a round of {clock_text(period)}"
        self._kinds = OtherKinds(one_kind=one_kind)
        self._began: Tick = -1
        self._there: set[int] = set()
        """The jobs that the policy knew when the last round began."""
        self._held: dict[int, Placement | None] = {}
        """What running jobs hold if the last round's decisions were all carried out."""
        self._left = 0
        """The GPUs that the last round's decisions leave free."""
        self._free = 0
        """The GPUs that were free at the last question."""
        self._late_told: dict[int, Tick] = {}
        """By handle: the beginning of the wait that was reported as late since the last round."""
        self._asked: Tick = -2
        self._open = False
        """Whether every question since the round began came one nanosecond after another."""

    def goes_on(self, view: ClusterView) -> bool:
        """Whether a question belongs to the last round. Call it once at every question.

        A wrapper that carried out only a part of the round asks again in the next nanosecond.
        """
        self._open = self._open and view.now == self._asked + 1
        self._asked = view.now
        return self._open and (
            self._held != {x: state.placement for x, state in view.running.items()}
            or any(state.handle not in self._there for state in view.entered)
        )

    def begun(self, view: ClusterView, decisions: Sequence[Decision]) -> list[Decision]:
        """Why jobs wait after the decisions of a round."""
        self._began, self._there = view.now, {*view.waiting, *view.running}
        self._held, self._open = {x: state.placement for x, state in view.running.items()}, True
        self._late_told.clear()
        for decision in decisions:
            if isinstance(decision, Start | Migrate):
                self._held[decision.handle] = decision.placement
            elif isinstance(decision, Preempt):
                del self._held[decision.handle]
        free = free_after(view, decisions)
        self._left = self._free = free.total
        return self._kinds.waits(view, decisions, free)

    def between(self, view: ClusterView, until: Tick) -> list[Decision]:
        """Why jobs wait although enough GPUs are free: they or the GPUs came after the round.

        A job that the round knew is not late if it enters again because the round took its GPUs, or
        because a gate or a wrapper turned its start down.
        """
        waits = list[Decision]()
        # More GPUs may be free without a finished job: after a repair, or after a job failed.
        more = view.finished or view.free.total > self._free
        self._free = view.free.total
        for state in view.waiting.values() if more else view.entered:
            lacked_kind = self._kinds.told(state)
            waits += self._kinds.news(view.free, state)
            late = state.entered > self._began or state.handle not in self._there
            late = late or lacked_kind or state.job.gpus_min > self._left
            late = late and self._late_told.get(state.handle) != state.entered
            if late and not self._kinds.told(state) and state.job.gpus_min <= view.free.total:
                waits.append(Wait(state.handle, self._late, "timer", until))
                self._late_told[state.handle] = state.entered
        return waits
