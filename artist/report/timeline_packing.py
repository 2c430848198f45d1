"""The data of the cluster timeline: the placements of a run in a compact form inside the page.

The form is JSON of integers, deflated, in base64. The browser inflates it when the reader chooses
the run. Rows keep the order of `placements.parquet`, so that the page can name the row.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Any

from artist.report.reader import Run
from artist.report.timeline_lanes import machines, strips_of

STEPS = 2**18
"""Times in the timeline are rounded to one of at most this many equal steps of the run."""


def pack(run: Run) -> str:
    """All data of the cluster timeline of one run."""
    raw = json.dumps(_columns(run), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(raw.encode(), 9)).decode()


def step_s(length_s: float) -> float:
    """The smallest of 1, 2, 5 x 10^k seconds such that `STEPS` steps cover the run."""
    power = 1e-6
    while True:
        for digit in (1, 2, 5):
            if digit * power * STEPS >= length_s:
                return digit * power
        power *= 10


def _columns(run: Run) -> dict[str, Any]:
    rows, jobs = run.placements, run.jobs
    cluster = machines(run)
    step = step_s(float(rows["end_s"].max()))
    start = (rows["start_s"] / step).round().astype(int)
    end = (rows["end_s"] / step).round().astype(int)
    models = dict(zip(jobs.text["job_id"], jobs.text["model"], strict=True))
    job_ids, job = _coded(rows.text["job_id"])
    levels, level = _coded(rows.text["level"])
    model_names, model = _coded([models.get(name, "?") for name in job_ids])
    places, place = _coded(strips_of(run))
    return {
        "step": float(f"{step:.0e}"),
        "machines": cluster.count,
        "lanes": max(cluster.gpus, *(lane + n for p in places for _, lane, n in p)),
        "racks": cluster.racks,
        "jobs": job_ids,
        "models": model_names,
        "model": model,
        "levels": levels,
        "level": level,
        "places": [[n for strip in strips for n in strip] for strips in places],
        "job": job,
        "place": place,
        # Rows come in the order of their ends, so differences are small numbers.
        "end": [int(end[0]), *(end[1:] - end[:-1]).tolist()],
        "length": (end - start).tolist(),
    }


def _coded(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """The distinct values in order of appearance, and for each value its index among them."""
    index: dict[Any, int] = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return list(index), codes
