"""What jobs have had so far: how often GPUs, and how many at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from artist.cluster.placement import Placement
from artist.contract import JobView


class History:
    """Of the jobs that are here, by handle."""

    def __init__(self) -> None:
        self._stays: dict[int, int] = {}
        self._most: dict[int, int] = {}

    def forget(self, finished: Iterable[int]) -> None:
        """Jobs have finished."""
        for handle in finished:
            self._stays.pop(handle, None)
            self._most.pop(handle, None)

    def record(self, jobs: Mapping[int, JobView], placed: Mapping[int, Placement]) -> None:
        """These placements are decided; one that a job has already is no new stay."""
        for handle, placement in placed.items():
            if placement != jobs[handle].placement:
                self._stays[handle] = self._stays.get(handle, 0) + 1
                self._most[handle] = max(self._most.get(handle, 0), placement.gpus)

    def restarts(self, handle: int) -> int:
        """How often a job has been given GPUs after the first time."""
        return max(self._stays.get(handle, 0) - 1, 0)

    def explored(self, state: JobView) -> int:
        """How many GPUs a job may have that is to explore: twice as many as ever, few at first."""
        return max(state.job.gpus_min, 2 * self._most.get(state.handle, 0))
