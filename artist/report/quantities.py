"""One unit per quantity: every chart of a page shows completion times, say, in the same unit.

The unit of a quantity suits the largest value that a chart of the page shows of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from artist.report.figure import time_unit
from artist.report.reader import Numbers, Run


class Quantity(StrEnum):
    """A kind of time that charts show."""

    TIME = "time"  # simulated time, and makespans, which end it
    JCT = "job completion time"
    WAITING = "queueing delay"
    COMMUNICATION = "communication"
    TIMER = "delay timer"


class Unit(NamedTuple):
    """A unit of time: its length in seconds, and its name."""

    seconds: float
    name: str


def units_of(runs: Sequence[Run]) -> Mapping[Quantity, Unit]:
    """The unit of each quantity on a page about these runs."""
    largest = {
        Quantity.TIME: _largest(
            max(run.timeline["time_s"].max(), run.placements["end_s"].max()) for run in runs
        ),
        # Histograms end at the 95th percentile. The axes that go beyond it are logarithmic.
        Quantity.JCT: _largest(_ninety_fifth(run.jobs["jct_s"]) for run in runs),
        Quantity.WAITING: _largest(run.jobs["queue_delay_s"].max() for run in runs),
        Quantity.COMMUNICATION: _largest(_largest_mean(run) for run in runs),
        Quantity.TIMER: _largest(
            run.autotuner["timer_s"].max()
            for run in runs
            if run.autotuner is not None and run.autotuner.count
        ),
    }
    return {quantity: Unit(*time_unit(value)) for quantity, value in largest.items()}


def _largest(values: Iterable[float]) -> float:
    return max((float(value) for value in values), default=0.0)


def _ninety_fifth(jct_s: Numbers) -> float:
    """The 95th percentile, or the mean where a few jobs pull it beyond."""
    return max(float(np.percentile(jct_s, 95)), float(np.mean(jct_s)))


def _largest_mean(run: Run) -> float:
    """The largest mean communication time of the jobs of one model."""
    _, model = np.unique(np.array(run.jobs.text["model"]), return_inverse=True)
    means = np.bincount(model, run.jobs["comm_s"]) / np.bincount(model)
    return float(means.max())
