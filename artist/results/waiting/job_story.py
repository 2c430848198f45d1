"""Why a job waited, and how it ran: the tables of one run directory, job by job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from artist.errors import TraceError, shortened
from artist.registry import UnknownNameError
from artist.results.table_files import read_table
from artist.results.terms.number_text import NO_DAYS, time_text, time_unit
from artist.results.waiting.free_while_waiting import HAND_OVER
from artist.results.waiting.waits import LEFT_FREE, ORDER
from artist.units import counted, seconds

Row: TypeAlias = dict[str, Any]
"""Column name -> value, as in the file."""

CAUSE_WORDS: Mapping[str, str] = {
    "timer": "a delay timer",
    "consolidation": "free GPUs were too far apart",
    "links": "links were too busy",
    "quota": "the tenant's quota",
    "data": "its data was elsewhere",
    "notice": "GPUs about to leave service",
    "cpu_cores": "too few CPU cores beside free GPUs",
    "memory": "too little memory beside free GPUs",
    "gpu_memory": "too little memory on GPUs with room",
    "mig": "MIG kept it off GPUs with room",
    "gpu_kind": "the kinds of free GPUs",
    "policy": "the policy's reason",
    "left-free": "GPUs were left free",
    "order": "free GPUs went to other jobs",
    "gpus": "too few GPUs",
}
"""Cause of `waits.parquet` (`waits.py`) -> how terminal and report say it."""

ENDED_WORDS: Mapping[str, str] = {
    "finished": "it finished",
    "lease-ended": "its lease ended",
    "preempted": "it was preempted",
    "cancelled": "it was cancelled",
    "migrated": "it moved",
    "re-rated": "its speed or its neighbours changed",
    "held": "it was held",
    "withdrawn": "its GPUs left service",
    "failed": "its GPUs failed",
}
"""How an interval ended, a code of `placements.parquet` -> how the terminal says it."""


def job_story(run: Path, job: str) -> Row:
    """A job of a run: its totals, `waits` and `stays`, each in the order of time.

    `causes` are the seconds of waiting by cause, the longest first. Those of the job add up to
    `queue_delay_s`, those of a wait to `wait_s`.

    `slowdown` is jct_s / alone_s of the job, and the same per iteration of a stay. It is None if
    the run has no alone_s. It is also None for a stay with a batch, since the table of placements
    does not say what its steps are worth (decision 34).

    Raises:
        UnknownNameError: the run has no such job.
        TraceError: a file is missing or damaged.
    """
    jobs = _table(run, "jobs")
    names = jobs["job_id"].to_pylist()
    if job not in names:
        example = f", such as {shortened(names[0])}" if names else ""
        remedy = f"the run has {counted(len(names), 'job')}{example}"
        raise UnknownNameError("job", job, names, remedy)
    totals: Row = jobs.slice(names.index(job), 1).to_pylist()[0]
    alone_s = totals.setdefault("alone_s", None)
    if totals.get("cancelled"):
        alone_s = None  # it is for all iterations, and a cancelled job did only some
    stays = _of_job(_table(run, "placements"), job)
    for stay in stays:
        told_s = None if stay.get("batch") else alone_s
        stay["slowdown"] = _slowdown(_submitted_s(stay, totals), told_s, totals["iterations"])
    stays.sort(key=_start)
    waits = sorted(_of_job(_table(run, "waits"), job), key=_start)
    told = read_table(run, "wait_causes", "why")
    split_by_cause(waits, [] if told is None else _of_job(told, job))
    return {
        **totals,
        "slowdown": _slowdown(totals["jct_s"], alone_s, 1),
        "causes": _summed(waits),
        "waits": waits,
        "stays": stays,
    }


def waited_by_cause(run: Path) -> dict[str, float]:
    """Seconds of all waits of a run by cause, the longest first; jobs count alike.

    Raises:
        TraceError: a file is missing or damaged.
    """
    waits: list[Row] = _table(run, "waits").to_pylist()
    told = read_table(run, "wait_causes", "why")
    split_by_cause(waits, [] if told is None else told.to_pylist())
    return _summed(waits)


def split_by_cause(waits: Sequence[Row], told: Sequence[Row]) -> None:
    """Add `causes` to each wait, its seconds by cause. `told`: rows of `wait_causes.parquet`."""
    by_wait: dict[tuple[str, float], list[tuple[str, float]]] = {}
    for row in told:
        by_wait.setdefault((row["job_id"], row["start_s"]), []).append(
            (row["cause"], row["cause_s"])
        )
    for wait in waits:
        free_s = wait["left_free_s"]
        rest = ORDER if wait["cause"] == LEFT_FREE else wait["cause"]
        untold = [(LEFT_FREE, free_s), (rest, wait["wait_s"] - free_s)]
        wait["causes"] = _longest_first(by_wait.get((wait["job_id"], wait["start_s"]), untold))


def _summed(waits: Sequence[Row]) -> dict[str, float]:
    return _longest_first(part for wait in waits for part in wait["causes"].items())


def _longest_first(parts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds by cause, without causes of no time."""
    spent: dict[str, float] = {}
    for cause, length_s in parts:
        spent[cause] = spent.get(cause, 0.0) + length_s
    ordered = sorted(spent.items(), key=lambda part: -part[1])
    return {cause: length_s for cause, length_s in ordered if length_s}


def worst_waits(run: Path, by: str) -> list[Row]:
    """The ten jobs of a run that waited longest, or single waits.

    | `by` | rows | sorted by |
    |---|---|---|
    | `total` | the longest wait of each job | all that the job waited, `queue_delay_s` |
    | `wait` | waits | `wait_s` |
    | `slowdown` | waits | the job's `slowdown`, then `wait_s` |

    Equal rows are in the order of the second key in `_KEYS`, then of begin. A wait has the
    `slowdown` of its job, its `queue_delay_s` and its number of `waits`. Without alone_s all
    slowdowns are equal.

    Raises:
        TraceError: a file is missing or damaged.
    """
    jobs = _table(run, "jobs")
    names, waited_s = (jobs[name].to_pylist() for name in ("job_id", "queue_delay_s"))
    alone = jobs["alone_s"].to_pylist() if "alone_s" in jobs.column_names else [None] * len(jobs)
    slowdowns = {
        name: _slowdown(jct_s, alone_s, 1)
        for name, jct_s, alone_s in zip(names, jobs["jct_s"].to_pylist(), alone, strict=True)
    }
    total_s = dict(zip(names, waited_s, strict=True))
    waits: list[Row] = _table(run, "waits").to_pylist()
    count = Counter(wait["job_id"] for wait in waits)
    for wait in waits:
        job = wait["job_id"]
        wait |= {
            "slowdown": slowdowns.get(job),
            "queue_delay_s": total_s.get(job, wait["wait_s"]),
            "waits": count[job],
        }
    if by == "total":
        waits = _longest_of_each(waits)
    keys = _KEYS[by]
    waits.sort(key=lambda wait: tuple(-(wait[key] or 0.0) for key in keys))
    return waits[:10]


_KEYS: Mapping[str, Sequence[str]] = {
    "total": ("queue_delay_s", "slowdown"),
    "wait": ("wait_s", "slowdown"),
    "slowdown": ("slowdown", "wait_s"),
}


def _longest_of_each(waits: Sequence[Row]) -> list[Row]:
    """The longest wait of each job, the first of several."""
    longest: dict[str, Row] = {}
    for wait in waits:
        job = wait["job_id"]
        if job not in longest or wait["wait_s"] > longest[job]["wait_s"]:
            longest[job] = wait
    return list(longest.values())


def cause_words(cause: str) -> str:
    """A cause of `waits.parquet` in words; an unknown one is returned unchanged."""
    return CAUSE_WORDS.get(cause, cause)


def causes_text(causes: Mapping[str, float]) -> str:
    """Seconds by cause in words, with their shares: `a delay timer 3 h (75.0 %), ...`.

    Causes shorter than `HAND_OVER` are left out.
    """
    waited_s = sum(causes.values())
    unit = time_unit(waited_s, days=NO_DAYS)
    return ", ".join(
        f"{cause_words(cause)} {time_text(length_s, unit)} ({100 * length_s / waited_s:.1f} %)"
        for cause, length_s in causes.items()
        if length_s >= seconds(HAND_OVER)
    )


def ended_words(ended: str) -> str:
    """How an interval ended, in words; the policy's reason stays behind its colon."""
    code, colon, reason = ended.partition(":")
    return f"{ENDED_WORDS.get(code, code)}{colon}{reason}"


def _start(row: Row) -> float:
    start_s: float = row["start_s"]
    return start_s


def _submitted_s(stay: Row, totals: Row) -> float:
    """Seconds per iteration as submitted. On half of the GPUs, an iteration does half as much."""
    iteration_s: float = stay["iteration_s"] * totals["gpus"] / stay["gpus"]
    return iteration_s


def _slowdown(took_s: float, alone_s: float | None, iterations: int) -> float | None:
    return took_s * iterations / alone_s if alone_s else None


def _of_job(table: Any, job: str) -> list[Row]:
    names = table["job_id"].to_pylist()
    mine = np.array([index for index, name in enumerate(names) if name == job], dtype=np.int64)
    rows: list[Row] = table.take(mine).to_pylist()
    return rows


def _table(run: Path, name: str) -> Any:
    table = read_table(run, name, "why", contended=None)
    if table is None:
        raise TraceError(
            f"{run / name}.parquet: is missing, since an earlier version wrote the run; simulate "
            "its scenario again (artist sim --out DIR), which manifest.json holds"
        )
    return table
