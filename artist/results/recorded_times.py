"""How long jobs ran in the simulation, relative to the run times that their trace records.

A recorded run time counts as compute time, and a run adds communication. Communication is a share
of the compute time, whatever step it is cut into. So a model that hardly computes runs many times
as long as recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artist.errors import shortened
from artist.results.metrics import Table
from artist.results.statistics.order import percentile
from artist.results.terms.number_text import short

MUCH = 10.0
"""A job that runs more than this many times as long as recorded deserves a warning. Chosen: no job
of the shipped traces comes near it."""


class RunToRecorded(NamedTuple):
    """`run_s / ideal_s` of the jobs: the median, the largest, and the job and model of that."""

    median: float
    largest: float
    job: str
    model: str

    @property
    def much(self) -> bool:
        """Whether the largest is beyond what communication explains."""
        return self.largest > MUCH

    def sentence(self) -> str:
        """What it means, in one sentence."""
        text = (
            f"Jobs run {short(self.median)} x their recorded time (median), "
            f"{short(self.largest)} x at most (job {shortened(self.job)}, {shortened(self.model)})"
        )
        if not self.much:
            return f"{text}."
        return (
            f"{text}: the recorded time counts as compute time, and communication is added as the "
            "model's share of it; check the job's model (--models), its GPUs and the fabric, or "
            "state its iterations and compute_s."
        )


def run_to_recorded(jobs: Table) -> RunToRecorded:
    """Compare the run times of jobs whose `ideal_s` is a recorded time; of equals the first job."""
    ratios = np.asarray(jobs["run_s"]) / np.asarray(jobs["ideal_s"])
    most = int(np.argmax(ratios))
    return RunToRecorded(
        percentile(ratios, 50),
        float(ratios[most]),
        str(jobs["job_id"][most]),
        str(jobs["model"][most]),
    )
