"""The data of runs inside the page in a compact form: JSON, deflated, in base64.

The page's script inflates it. Columns of one table become one JSON object of lists. Repeated values
are numbered (`coded`), so that lists hold small integers, which deflate well. Times have five
significant digits.

What runs of one trace share (names, models, GPUs, arrivals, isolated times) is in the page once.
The job table shows rows of the cluster timeline as the stays of a job; they keep the order of
`placements.parquet`, so that the page can name the row.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from artist.report.reader import FileColumns, RecordedRun
from artist.report.timeline_lanes import machines, strips_of
from artist.results.waiting.job_story import cause_words, ended_words

STEPS = 2**18
"""Times in the timeline are rounded to one of at most this many equal steps of the run."""

SHAPES_NAMED = 4
"""The table names the shapes of this many stays of a job; the opened row lists all stays."""


def packed(data: Any) -> str:
    """JSON data as deflated base64. Equal data gives equal text."""
    raw = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(zlib.compress(raw.encode(), 9)).decode()


def coded(values: Iterable[Any]) -> tuple[list[Any], list[int]]:
    """The distinct values in order of appearance, and for each value its index among them."""
    index: dict[Any, int] = {}
    codes = [index.setdefault(value, len(index)) for value in values]
    return list(index), codes


def short(values: Iterable[float], digits: int = 5) -> list[float | int]:
    """The values with some significant digits, whole numbers as integers."""
    return [int(v) if v == int(v) else v for v in (float(f"{v:.{digits}g}") for v in values)]


def step_s(length_s: float) -> float:
    """The smallest of 1, 2, 5 x 10^k seconds such that `STEPS` steps cover the run."""
    power = 1e-6
    while True:
        for digit in (1, 2, 5):
            if digit * power * STEPS >= length_s:
                return digit * power
        power *= 10


def pack_timeline(run: RecordedRun) -> str:
    """All data of the cluster timeline of one run."""
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
    # Few combinations of a level, a shape and a speed occur, so one number stands for all three.
    levels, level = coded(rows.text["level"])
    shapes, shape = coded(rows.text["signature"])
    kinds, kind = coded(zip(level, shape, short(rows["iteration_s"], 4), strict=True))
    endings, ended = coded(map(ended_words, rows.text["ended"]))
    return packed({
        "step": float(f"{step:.0e}"),
        "machines": cluster.count,
        "lanes": max(cluster.gpus, *(round(lane + n) for p in places for _, lane, n in p)),
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
        **({"sharers": short(rows.sharers)} if "beside" in rows.lists else {}),
    })  # fmt: skip


def alone_column(run: RecordedRun) -> str:
    """The column that a slowdown is relative to: without communication if nothing else is known."""
    return "alone_s" if "alone_s" in run.jobs.numbers else "ideal_s"


def slowdowns(run: RecordedRun) -> list[float]:
    """Completion time of each job relative to its time in isolation."""
    with np.errstate(over="ignore"):  # damaged numbers may overflow
        return [float(v) for v in run.jobs["jct_s"] / run.jobs[alone_column(run)]]


def pack_work(run: RecordedRun) -> str:
    """What runs of one trace share: a row per job, in the order of `jobs.parquet`."""
    jobs = run.jobs
    models, model = coded(jobs.text["model"])
    return packed({
        "jobs": jobs.text["job_id"],
        "models": models,
        "model": model,
        "gpus": short(jobs["gpus"]),
        "arrival": short(jobs["arrival_s"]),
        "alone": short(jobs[alone_column(run)]),
        "measure": alone_column(run),
    })  # fmt: skip


def pack_jobs(run: RecordedRun) -> str:
    """What happened to the jobs of one run: a row per job, in the order of `jobs.parquet`."""
    jobs = run.jobs
    stays = _stays(run)
    levels = list(dict.fromkeys(run.placements.text["level"]))
    both = zip(jobs["preemptions"].tolist(), jobs["migrations"].tolist(), strict=True)
    restarts = [preempted + moved for preempted, moved in both]
    names = [stays.get(job, []) for job in jobs.text["job_id"]]
    ways, way = coded(_way([shape for shape, _ in stay]) for stay in names)
    tiers, tier = coded(tuple(sorted({levels.index(at) for _, at in stay})) for stay in names)
    causes, cause = coded(_longest_causes(run))
    return packed({
        "wait": short(jobs["queue_delay_s"]),
        "run": short(jobs["run_s"]),
        "restarts": short(restarts),
        "stays": [len(stay) for stay in names],
        "ways": ways,
        "way": way,
        "levels": levels,
        "tiers": tiers,
        "tier": tier,
        "causes": causes,
        "cause": cause,
    })  # fmt: skip


def pack_waits(run: RecordedRun, most: float = math.inf) -> str:
    """The waits of a run in at most `most` bytes: if not all fit, only those of the worst jobs.

    Jobs are numbered as in `jobs.parquet`. `kept` lists the jobs whose waits are included; None
    means all. The text is empty if the run has no waits, or if even those of the worst job are too
    long.
    """
    if run.waits is None:
        return ""
    names = {name: number for number, name in enumerate(run.jobs.text["job_id"])}
    rows: dict[int, list[int]] = {}
    for row, name in enumerate(run.waits.text["job_id"]):
        rows.setdefault(names.get(name, len(names)), []).append(row)
    ratios = slowdowns(run)
    worst = sorted(range(len(ratios)), key=lambda number: (-ratios[number], number))
    of_jobs = [(job, rows.get(job, [])) for job in worst]
    text = _packed_waits(run.waits, names, of_jobs, None)
    until = np.cumsum([len(some) for _, some in of_jobs])
    count, room = len(of_jobs), float(until[-1])
    while len(text) > most and room >= 1:
        room *= 0.95 * most / len(text)  # few rows compress less well than many
        count = int(np.searchsorted(until, room, side="right"))
        text = _packed_waits(run.waits, names, of_jobs[:count], worst[:count])
    return text if count and len(text) <= most else ""


def _packed_waits(
    waits: FileColumns,
    names: Mapping[str, int],
    of_jobs: Sequence[tuple[int, Sequence[int]]],
    kept: Sequence[int] | None,
) -> str:
    """The waits of some jobs, which are numbered as in `jobs.parquet`."""
    rows = [row for _, some in of_jobs for row in some]
    causes, cause = coded(cause_words(waits.text["cause"][row]) for row in rows)
    reasons, reason = coded(waits.text["reason"][row] for row in rows)
    groups, holders = coded(
        tuple(names.get(name, name) for name in waits.lists["waited_for"][row]) for row in rows
    )
    return packed({
        "kept": kept,
        "job": [job for job, some in of_jobs for _ in some],
        "start": short(waits["start_s"][rows]),
        "wait": short(waits["wait_s"][rows]),
        "free": short(waits["free_gpus_max"][rows]),
        "causes": causes,
        "cause": cause,
        "reasons": reasons,
        "reason": reason,
        "groups": groups,
        "holders": holders,
    })  # fmt: skip


def _stays(run: RecordedRun) -> Mapping[str, list[tuple[str, str]]]:
    """Job -> shape and level of each stay in the order of time.

    Successive rows of one placement without a gap are one stay at several speeds.
    """
    rows = run.placements
    stays: dict[str, list[tuple[str, str]]] = {}
    last: dict[str, tuple[str, float]] = {}
    starts, ends = rows["start_s"].tolist(), rows["end_s"].tolist()
    for index in sorted(range(rows.count), key=lambda row: (starts[row], ends[row])):
        job, place = rows.text["job_id"][index], rows.text["placement"][index]
        if last.get(job) != (place, starts[index]):
            shape, level = rows.text["signature"][index], rows.text["level"][index]
            stays.setdefault(job, []).append((shape, level))
        last[job] = (place, ends[index])
    return stays


def _way(shapes: Sequence[str]) -> str:
    """The shapes of a job's stays, e.g. `8 \u2192 4,4 \u2192 +3 more`."""
    named = list(shapes[:SHAPES_NAMED])
    if len(shapes) > SHAPES_NAMED:
        named.append(f"+{len(shapes) - SHAPES_NAMED} more")
    return " \u2192 ".join(named)


def _longest_causes(run: RecordedRun) -> list[str]:
    """For each job the cause of its longest wait; empty if none is recorded."""
    longest: dict[str, tuple[float, str]] = {}
    if run.waits is not None:
        causes, lengths = run.waits.text["cause"], run.waits["wait_s"].tolist()
        for job, cause, length in zip(run.waits.text["job_id"], causes, lengths, strict=True):
            if length > longest.get(job, (0.0, ""))[0]:
                longest[job] = (length, cause_words(cause))
    return [longest.get(job, (0.0, ""))[1] for job in run.jobs.text["job_id"]]
