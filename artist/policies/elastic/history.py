"""How often jobs have been given GPUs so far, and how many at most."""

from __future__ import annotations

from collections.abc import Mapping

from artist.cluster.placement import Placement
from artist.contract import ClusterView, JobView
from artist.units import Tick


class History:
    """How often the present jobs were given GPUs, and how many at most.

    A decision counts only when the job is seen to have got as many GPUs, because a gate or a
    wrapper may refuse it or choose other GPUs.
    """

    def __init__(self) -> None:
        self._stays: dict[int, int] = {}
        self._most: dict[int, int] = {}
        self._decided: dict[int, tuple[int, Placement | None, Tick]] = {}
        """By handle: the number of GPUs decided on, and the job's placement and run time before."""

    def note(self, view: ClusterView) -> None:
        """Count the last decisions that gave jobs GPUs, and forget jobs that have finished."""
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
        """Remember placements that are decided. One that a job already has is not a new stay."""
        for handle, placement in placed.items():
            if placement != jobs[handle].placement:
                had = jobs[handle].placement
                self._decided[handle] = placement.gpus, had, jobs[handle].run_ticks(view.now)

    def restarts(self, handle: int) -> int:
        """How often a job has been given GPUs after the first time."""
        return max(self._stays.get(handle, 0) - 1, 0)

    def explored(self, state: JobView) -> int:
        """The most GPUs that an exploring job may have: its fewest, or twice its most so far."""
        return max(state.job.gpus_min, 2 * self._most.get(state.handle, 0))
