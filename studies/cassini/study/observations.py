"""The rows of `results.csv`: one per run, with its place in the plan and its results.

`results.csv` alone stands between the runs and the page. If you doubt a number on the page, you
find its runs there, and `study runs --every N` repeats a sample of them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from artist.config import Scenario
from artist.results.result import Result
from artist.run import simulate
from artist.trace.native.writer import write_csv
from studies.cassini.study.plan import GPUS, Planned, planned
from studies.cassini.study.workloads import ELASTIC, jobs_of
from studies.common.rows import RowsFile, Runs

HERE = Path(__file__).resolve().parent.parent

PLACE = ("workload", "arrivals", "cluster", "host", "variant", "setting", "seed")
QUANTILES = (5, 10, 25, 50, 75, 90, 95, 99)
METRICS = (
    "mean_s", "p99_s", "alone_mean_s", "stretch_mean", "stretch_p99", "slowed_share",
    "jct_mean_s", "stalled_job_s",
    "choices", "score", "moved", "links", "snapped", "cycles", "aligned",
    "turn_job_s", "corrections_per_min",
    *(f"q{q}_s" for q in QUANTILES),
)  # fmt: skip
COLUMNS = (*PLACE, *METRICS)

CORRECTED = 10
"""For this many first replicates, the rows hold corrections: a description, not compared."""

SLOWED = 1.001
"""An iteration that takes this many times as long as alone is slowed: below is rounding."""


def row_of(run: Planned) -> dict[str, str]:
    """Do a run. Metrics of what it does not have are empty."""
    with tempfile.TemporaryDirectory() as scratch:
        trace = Path(scratch) / "jobs.csv"
        jobs = jobs_of(run.workload, run.arrivals, run.jobs, GPUS[run.cluster], run.seed, run.load)
        write_csv(jobs, trace)
        place = dict(zip(PLACE, run.place, strict=True))
        settings = run.scenario(str(trace))
        if run.workload == ELASTIC:
            from studies.cassini.study.goodput import goodput

            # JSON is YAML, too.
            file = Path(scratch) / "goodput.yaml"
            file.write_text(json.dumps(goodput()), encoding="utf-8")
            settings["goodput"] = str(file)
        result = simulate(Scenario.model_validate(settings))
    values = {**_iterations(result), **_choices(result), **_turns(result)}
    values["jct_mean_s"] = float(result.summary["jct_mean_s"])
    if run.seed >= CORRECTED:
        values.pop("corrections_per_min", None)
    return place | {name: _text(values.get(name)) for name in METRICS}


def _iterations(result: Result) -> dict[str, float]:
    """Of all iterations of all jobs: an interval counts as often as it has iterations."""
    table = result.tables["placements"]
    count, took_s, alone_s, stalled_s = (
        np.asarray(table[name], dtype=np.float64)
        for name in ("iterations", "iteration_s", "alone_iteration_s", "stalled_s")
    )
    stretch = took_s / alone_s
    return {
        "mean_s": float(np.average(took_s, weights=count)),
        "p99_s": quantile(took_s, count, 99),
        "alone_mean_s": float(np.average(alone_s, weights=count)),
        "stretch_mean": float(np.average(stretch, weights=count)),
        "stretch_p99": quantile(stretch, count, 99),
        "slowed_share": float(count[stretch > SLOWED].sum() / count.sum()),
        "stalled_job_s": float(stalled_s.sum()),
        **{f"q{q}_s": quantile(took_s, count, q) for q in QUANTILES},
    }


def quantile(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any], percent: float) -> float:
    """The least value that this many percent of the weight do not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    place = np.searchsorted(reached, percent / 100 * reached[-1] * (1 - 1e-12))
    return float(values[order][min(place, len(order) - 1)])


def _choices(result: Result) -> dict[str, float]:
    """What CASSINI decided, where links could be full; means over its choices."""
    table = result.tables.get("cassini")
    if not table or not len(table["score"]):
        return {"choices": 0.0}
    return {
        "choices": float(len(table["score"])),
        "score": float(np.mean(table["score"])),
        "moved": float(np.mean(np.asarray(table["chosen"]) > 0)),
        "links": float(np.mean(table["links"])),
        "snapped": float(np.mean(table["snapped"])),
        "cycles": float(np.mean(table["cycles"])),
        "aligned": float(np.sum(table["aligned"])),
    }


def _turns(result: Result) -> dict[str, float]:
    """For how long jobs took turns, and how often each waited so as to keep them."""
    table = result.tables.get("turns")
    if not table:
        return {}
    length_s = np.asarray(table["end_s"], dtype=np.float64) - np.asarray(table["start_s"])
    corrections = np.asarray(table["corrections_per_min"], dtype=np.float64)
    return {
        "turn_job_s": float(length_s.sum()),
        "corrections_per_min": float(np.average(corrections, weights=length_s)),
    }


def _text(value: float | None) -> str:
    """Ten digits: sums of floats differ in their last ones between processors."""
    return "" if value is None else f"{value:.10g}"


ROWS = RowsFile(HERE / "results.csv", COLUMNS, "cassini")
RUNS = Runs(ROWS, PLACE, planned, row_of)
