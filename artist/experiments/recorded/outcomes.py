"""A recording simulated in all phases, groups of its jobs, and who loses by a change."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from artist.experiments.recorded.other_links import OtherLinks
from artist.results.result import Result
from artist.results.statistics.paired_input import Floats

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class JobGroup:
    """Jobs that are shown together."""

    kind: str
    name: str
    jobs: Mask
    """Whether each job belongs to the group."""


@dataclass(frozen=True)
class Loss:
    """An account or user whose jobs wait longer on average, in every phase."""

    who: str
    jobs: int
    present_s: float
    changed_s: float


@dataclass(frozen=True)
class Outcome:
    """The simulated recording, present or changed: one result of each phase."""

    change: str
    results: tuple[Result, ...]
    links: OtherLinks | None = None
    """The effect of other links on run times, if the change is one of links."""

    @cached_property
    def waits_s(self) -> Floats:
        """How long each job waits in all, by phase and by job, ordered by id."""
        tables = (result.tables["jobs"] for result in self.results)
        ordered = [
            np.asarray(table["queue_delay_s"])[np.argsort(table["job_id"], kind="stable")]
            for table in tables
        ]
        return np.array(ordered, np.float64)

    @cached_property
    def cancelled(self) -> Mask:
        """Whether each job is cancelled, by phase and job in the order of `waits_s`."""
        found = []
        for table in (result.tables["jobs"] for result in self.results):
            marks = np.asarray(table.get("cancelled", np.zeros(len(table["job_id"])))) > 0
            found.append(marks[np.argsort(table["job_id"], kind="stable")])
        return np.array(found, bool)

    def gpu_hours(self, until_s: float) -> tuple[float, float]:
        """Useful GPU-hours until a time, and those lost, both as means over phases.

        Lost are runs that were preempted, cancelled, or stopped at their limits on other links.
        On other links, useful GPU-hours are those that the same work takes on the present links.
        """
        done = lost = 0.0
        stretch = self.links.stretch if self.links is not None else {}
        stopped = self.links.stopped if self.links is not None else frozenset()
        for result, marks in zip(self.results, self.cancelled, strict=True):
            stays = result.tables["placements"]
            gone = {*np.sort(result.tables["jobs"]["job_id"])[marks].tolist(), *stopped}
            start_s, end_s, gone_s, gpus = (
                np.asarray(stays[name], np.float64)
                for name in ("start_s", "end_s", "lost_s", "gpus")
            )
            wasted = np.array([job in gone for job in stays["job_id"]], bool)
            gone_s = np.where(wasted, end_s - start_s, gone_s)
            longer = np.array([stretch.get(str(job), 1.0) for job in stays["job_id"]])
            kept_s = (np.minimum(end_s - gone_s, until_s) - start_s) / longer
            done += float((np.clip(kept_s, 0.0, None) * gpus).sum())
            lost += float((gone_s * gpus).sum())
        return done / 3600 / len(self.results), lost / 3600 / len(self.results)
