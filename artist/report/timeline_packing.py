"""The data of the cluster timeline: the placements of a run in a compact form inside the page.

Rows keep the order of `placements.parquet`, so that the page can name the row. The job table shows
the same rows as the stays of a job.
"""

from __future__ import annotations

from typing import Any

from artist.report.packing import coded, packed, short
from artist.report.reader import Run
from artist.report.timeline_lanes import machines, strips_of
from artist.results.waiting.job_story import ended_words

STEPS = 2**18
"""Times in the timeline are rounded to one of at most this many equal steps of the run."""


def pack(run: Run) -> str:
    """All data of the cluster timeline of one run."""
    return packed(_columns(run))


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
    # Jobs come in the order of jobs.parquet. So a job has one number, and one colour, in all runs
    # of a trace.
    job_ids, codes = coded([*jobs.text["job_id"], *rows.text["job_id"]])
    model_names, model = coded([models.get(name, "?") for name in job_ids])
    places, place = coded(strips_of(run))
    # Few combinations of a level, a shape and a speed occur, so one number a row tells all three.
    levels, level = coded(rows.text["level"])
    shapes, shape = coded(rows.text["signature"])
    kinds, kind = coded(zip(level, shape, short(rows["iteration_s"], 4), strict=True))
    endings, ended = coded(map(ended_words, rows.text["ended"]))
    return {
        "step": float(f"{step:.0e}"),
        "machines": cluster.count,
        "lanes": max(cluster.gpus, *(lane + n for p in places for _, lane, n in p)),
        "racks": cluster.racks,
        "jobs": job_ids,
        "models": model_names,
        "model": model,
        "levels": levels,
        "shapes": shapes,
        "kinds": [list(column) for column in zip(*kinds, strict=True)],
        "kind": kind,
        "places": [[n for strip in strips for n in strip] for strips in places],
        "job": codes[jobs.count :],
        "place": place,
        "endings": endings,
        "ended": ended,
        # Rows come in the order of their ends, so differences are small numbers.
        "end": [int(end[0]), *(end[1:] - end[:-1]).tolist()],
        "length": (end - start).tolist(),
    }
