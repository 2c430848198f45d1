"""What jobs have had so far: how often GPUs, and how many at most."""

from __future__ import annotations

from collections.abc import Mapping

from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.units import Tick


class History:
    """Of the jobs that are here, by handle.

    A decision counts once it is seen that the job got as many GPUs: a gate or a wrapper may turn it
    down, or choose others of them.
    """

    def __init__(self) -> None:
        self._stays: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._decided: dict[int, tuple[int, Placement | None, Tick]] = {}
        """How many GPUs a job was to get, those it had, and for how long it had held any."""

    def note(self, view: ClusterView) -> None:
        """See who got the GPUs of the last decisions, and forget jobs that have finished."""
        for handle in view.finished:
            for known in (self._stays, self._most, self._decided):
                known.pop(handle, None)
        for handle in list(self._decided):
            state = view.running.get(handle) or view.waiting.get(handle)
            if state is None:  # a wrapper hides it
                continue
            gpus, before, run = self._decided.pop(handle)
            lost = state.former_placement if state.run_ticks(view.now) > run else None
            got = state.placement or lost
            if got is not None and got != before and got.gpus == gpus:
                self._stays[handle] = self._stays.get(handle, 0) + 1
                self._most[handle] = max(self._most.get(handle, 0), gpus)

    def record(
        self, view: ClusterView, jobs: Mapping[int, JobView], placed: Mapping[int, Placement]
    ) -> None:
        """These placements are decided; one that a job has already is no new stay."""
        for handle, placement in placed.items():
            if placement != jobs[handle].placement:
                had = jobs[handle].placement
                self._decided[handle] = placement.gpus, had, jobs[handle].run_ticks(view.now)

    def restarts(self, handle: int) -> int:
        """How often a job has been given GPUs after the first time."""
        return max(self._stays.get(handle, 0) - 1, 0)

    def explored(self, state: JobView) -> int:
        """How many GPUs a job may have that is to explore: twice as many as ever, few at first."""
        return max(state.job.gpus_min, 2 * self._most.get(state.handle, 0))
