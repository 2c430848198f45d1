"""One unit per quantity: every chart of a page shows completion times, say, in the same unit.

The unit of a quantity suits the largest value that a chart of the page shows of it. The page's
words and tables show a metric in the unit of its quantity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from artist.report.reader import Numbers, RecordedRun
from artist.results.terms.number_text import (
    FEW_DAYS,
    HOUR,
    DisplayUnit,
    plain,
    time_text,
    time_unit,
)

if TYPE_CHECKING:
    from artist.report.grouping import Study


class Quantity(StrEnum):
    """A kind of time that charts show."""

    TIME = "time"  # simulated time, and makespans, which end it
    JCT = "job completion time"
    WAITING = "queueing delay"
    COMMUNICATION = "communication"
    TIMER = "delay timer"


_MILLISECONDS = DisplayUnit(1e-3, "ms")
_GPU_HOURS = DisplayUnit(HOUR, "GPU-hours")

# By the beginning of the metric's name.
_QUANTITIES = {
    "makespan_": Quantity.TIME,
    "jct_": Quantity.JCT,
    "compute_": Quantity.JCT,
    "preemption_time_": Quantity.JCT,
    "first_start_time_": Quantity.JCT,
    "checkpoint_time_": Quantity.JCT,
    "queue_delay_": Quantity.WAITING,
    "comm_": Quantity.COMMUNICATION,
}


def units_of(runs: Sequence[RecordedRun]) -> Mapping[Quantity, DisplayUnit]:
    """The unit of each quantity on a page about these runs."""
    largest = {
        Quantity.TIME: _largest(
            max(run.timeline["time_s"].max(), run.placements["end_s"].max()) for run in runs
        ),
        # Histograms end at the 95th percentile. The axes that go beyond it are logarithmic.
        Quantity.JCT: _largest(_ninety_fifth(run.finished["jct_s"]) for run in runs),
        Quantity.WAITING: _largest(run.finished["queue_delay_s"].max() for run in runs),
        Quantity.COMMUNICATION: _largest(_largest_mean(run) for run in runs),
        Quantity.TIMER: _largest(
            run.autotuner["timer_s"].max()
            for run in runs
            if run.autotuner is not None and run.autotuner.count
        ),
    }
    return {
        quantity: time_unit(value) if quantity is Quantity.TIME else time_unit(value, days=FEW_DAYS)
        for quantity, value in largest.items()
    }


def metric_unit(study: Study, metric: str, written: str) -> DisplayUnit:
    """The unit of a metric whose unit in `summary.json` is `written`."""
    if written == "s":
        for start, quantity in _QUANTITIES.items():
            if metric.startswith(start):
                return study.units[quantity]
    if metric.startswith("iteration_time_"):
        return _MILLISECONDS
    return _GPU_HOURS if written == "GPU-s" else DisplayUnit(1.0, written)


def in_words(study: Study, metric: str, value: float) -> str:
    """A metric with its unit, e.g. `3.5 h`, `81.3 %` or `1,234`."""
    if metric.endswith("_share"):
        return f"{100 * value:.1f} %"
    if not metric.endswith("_s"):
        return plain(value)
    return time_text(value, metric_unit(study, metric, "s"))


def _largest(values: Iterable[float]) -> float:
    return max((float(value) for value in values), default=0.0)


def _ninety_fifth(jct_s: Numbers) -> float:
    """The 95th percentile, or the mean if a few long jobs make that larger."""
    return max(float(np.percentile(jct_s, 95)), float(np.mean(jct_s)))


def _largest_mean(run: RecordedRun) -> float:
    """The largest mean communication time of the jobs of one model."""
    _, model = np.unique(np.array(run.jobs.text["model"]), return_inverse=True)
    means = np.bincount(model, run.jobs["comm_s"]) / np.bincount(model)
    return float(means.max())
