"""Why jobs wait under policies that place them at the beginning of a round only."""

from __future__ import annotations

from collections.abc import Sequence

from artist.contract import ClusterView, Decision, Wait
from artist.policies.shared.refusals import OtherKinds
from artist.units import Tick, clock_text


class RoundWaits:
    """What is said of waiting jobs at the beginning of rounds and between."""

    def __init__(self, period: Tick, *, one_kind: bool = False) -> None:
        """`one_kind`: the policy gives no job GPUs of several kinds."""
        self._late = f"jobs start at the beginning of a round of {clock_text(period)}"
        self._kinds = OtherKinds(one_kind=one_kind)
        self._began: Tick = -1
        self._there: set[int] = set()
        """The jobs that the policy knew when the last round began."""

    def begun(self, view: ClusterView, decisions: Sequence[Decision]) -> list[Decision]:
        """Why jobs wait after the decisions of a round."""
        self._began, self._there = view.now, {*view.waiting, *view.running}
        return self._kinds.waits(view, decisions)

    def between(self, view: ClusterView, until: Tick) -> list[Decision]:
        """Why jobs wait that came after a round, although enough GPUs are free.

        A job that the round knew has had its round, if it enters again because the round itself
        took its GPUs, or because a gate or a wrapper turned its start down.
        """
        waits = list[Decision]()
        for state in view.entered:
            waits += self._kinds.news(view.free, state)
            late = state.entered > self._began or state.handle not in self._there
            if late and not self._kinds.told(state) and state.job.gpus_min <= view.free.total:
                waits.append(Wait(state.handle, self._late, "timer", until))
        return waits
