"""Figures along simulated time: use of the cluster, jobs remaining, timers, communication.

They correspond to figures 4, 6, 11 and 12 of the Dally paper; those of fragmentation, of the queue
and of the GPUs held are ours. If a policy has several replicates, these figures show the first one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from artist.report.figure import Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study, slugs
from artist.report.job_tones import job_tones
from artist.report.quantities import Quantity
from artist.report.reader import Numbers, Rows, Run
from artist.report.thinning import INTERVALS, extremes

_BINS = 180
_TUNER_INTERVALS = 33
_TUNER_SERIES = 6
_JOBS = 6
_HELD = ("gpus_computing", "gpus_communicating")
"""What GPUs that jobs hold do; the rest stands still, or works in vain."""
_THINNED = f"The least, the largest and the last value of each of {INTERVALS} equal intervals."


def over_time(study: Study, setting: Setting) -> Iterator[Figure]:
    """Utilization, fragmentation, jobs and GPUs held, for all policies of a setting."""
    runs = {policy: setting.first(policy) for policy in setting.runs}
    end = max(float(run.timeline["time_s"][-1]) for run in runs.values())
    scale, unit = study.units[Quantity.TIME]
    replicated = any(len(replicates) > 1 for replicates in setting.runs.values())
    note = "The first replicate of each policy." if replicated else ""
    yield Figure(
        name=named("utilization", setting.slug),
        kind=Kind.ROWS,
        title="Cluster utilization",
        section="cluster",
        x=Axis("Time", unit),
        y=Axis("GPUs held", "%", top=100.0),
        series=[
            Series(
                p, study.tone(p), *_shares(run, "gpus_held", end, scale),
                parts=[_shares(run, part, end, scale)[0] for part in _HELD],
            )
            for p, run in runs.items()
        ],
        parts=("computing", "communicating", "stalled or lost"),
        setting=setting.index,
        source="timeline.parquet: gpus_held, gpus_computing, gpus_communicating over "
        "summary.json: gpus",
        note=f"Time-weighted mean of {_BINS} equal intervals. {note}".strip(),
    )  # fmt: skip
    yield Figure(
        name=named("fragmentation", setting.slug),
        kind=Kind.ROWS,
        title="Fragmentation",
        section="cluster",
        x=Axis("Time", unit),
        y=Axis("Free GPUs of no use to the job mix", "%"),
        series=[
            Series(p, study.tone(p), *_shares(run, "gpus_fragmented", end, scale))
            for p, run in runs.items()
        ],
        setting=setting.index,
        source="timeline.parquet: gpus_fragmented over summary.json: gpus",
        note=f"Of all GPUs; time-weighted mean of {_BINS} equal intervals. {note}".strip(),
    )
    yield _steps(study, setting, _REMAINING, note)
    yield _steps(study, setting, _QUEUE, note)
    yield _steps(study, setting, _GPUS_HELD, note)


class _Steps(NamedTuple):
    """A step line of the timeline per policy."""

    name: str
    title: str
    label: str
    source: str
    values: Callable[[Rows], Numbers]
    of_all_gpus: bool = False


_REMAINING = _Steps(
    "jobs-remaining", "Jobs remaining", "Jobs arrived and not finished",
    "jobs_running + jobs_waiting", lambda rows: rows["jobs_running"] + rows["jobs_waiting"],
)  # fmt: skip
_QUEUE = _Steps(
    "queue-length", "Queue length", "Jobs waiting", "jobs_waiting",
    lambda rows: rows["jobs_waiting"],
)  # fmt: skip
_GPUS_HELD = _Steps(
    "gpus-held", "GPUs held", "GPUs held by jobs", "gpus_held", lambda rows: rows["gpus_held"],
    of_all_gpus=True,
)  # fmt: skip


def _steps(study: Study, setting: Setting, shown: _Steps, note: str) -> Figure:
    scale, unit = study.units[Quantity.TIME]
    runs = {policy: setting.first(policy) for policy in setting.runs}
    lines = {p: _kept(run.timeline, shown.values(run.timeline)) for p, run in runs.items()}
    thinned = any(len(x) < runs[p].timeline.count for p, (x, _) in lines.items())
    gpus = max(run.metric("gpus") for run in runs.values())
    return Figure(
        name=named(shown.name, setting.slug),
        kind=Kind.LINES,
        title=shown.title,
        section="cluster",
        x=Axis("Time", unit),
        y=Axis(shown.label, top=gpus if shown.of_all_gpus else None),
        series=[
            Series(policy, study.tone(policy), rounded(y), rounded(x / scale))
            for policy, (x, y) in lines.items()
        ],
        setting=setting.index,
        source=f"timeline.parquet: {shown.source}",
        note=f"{_THINNED if thinned else ''} {note}".strip(),
        step=True,
        # Where all GPUs are held most of the time, lines lie upon each other.
        apart=shown.of_all_gpus,
    )


def _kept(rows: Rows, values: Numbers) -> tuple[Numbers, Numbers]:
    kept = extremes(rows["time_s"], values)
    return rows["time_s"][kept], values[kept]


def of_one_run(study: Study, setting: Setting, policy: str) -> Iterator[Figure]:
    """For one policy of a setting: the auto-tuner's timers, and the communication of some jobs."""
    run, index = setting.first(policy), study.policies.index(policy)
    if run.autotuner is not None and run.autotuner.count:
        yield from _tuner(study, setting, policy, run.autotuner)
    lines = _communication(run)
    if lines:
        scale, unit = study.units[Quantity.TIME]
        yield Figure(
            name=named("communication-timeline", setting.slug, study.policy_slug(policy)),
            kind=Kind.LINES,
            title=f"Communication of single jobs over time · {policy}",
            section="run",
            x=Axis("Time", unit),
            y=Axis("Communication per iteration", "ms"),
            series=[
                Series(s.name, s.tone, s.y, rounded(np.array(s.x) / scale)) for s in lines
            ],
            setting=setting.index,
            policy=index,
            source="placements.parquet: iteration_s - jobs.parquet: ideal_s / iterations",
            note=_which_jobs(len(lines)),
            step=True,
            broad=True,
            # Two jobs may have one colour.
            apart=True,
        )  # fmt: skip


def binned(time: Numbers, value: Numbers, edges: Numbers) -> Numbers:
    """The mean of a step function over each bin between two edges.

    The step function has `value[i]` from `time[i]` on, and keeps its last value forever.
    """
    # The integral at any time, by linear interpolation between the steps.
    area = np.concatenate([[0.0], np.cumsum(value[:-1] * np.diff(time))])
    at = np.interp(edges, time, area)
    beyond = np.clip(edges - time[-1], 0.0, None) * value[-1]
    means: Numbers = np.diff(at + beyond) / np.diff(edges)
    return means


def _shares(run: Run, column: str, end: float, scale: float) -> tuple[list[float], list[float]]:
    """A column of the timeline as percent of all GPUs, in bins, and the edges of the bins."""
    start = float(run.timeline["time_s"][0])
    edges = np.linspace(start, max(end, start + 1e-9), _BINS + 1)
    gpus = binned(run.timeline["time_s"], run.timeline[column], edges)
    return rounded(100.0 * gpus / run.metric("gpus")), rounded(edges / scale)


def _tuner(study: Study, setting: Setting, policy: str, rows: Rows) -> Iterator[Figure]:
    """One figure per level, with the timers of the most frequent GPU demands."""
    levels = np.array(rows.text["level"])
    names = list(dict.fromkeys(rows.text["level"]))
    time, timer = study.units[Quantity.TIME], study.units[Quantity.TIMER]
    for level, slug in zip(names, slugs(names), strict=True):
        there = levels == level
        demands, counts = np.unique(rows["gpus"][there], return_counts=True)
        most = np.sort(demands[np.argsort(-counts, kind="stable")][:_TUNER_SERIES])
        series = []
        for place, demand in enumerate(most.tolist()):
            chosen = np.flatnonzero(there & (rows["gpus"] == demand))
            x, y = rows["time_s"][chosen], rows["timer_s"][chosen]
            kept = extremes(x, y, _TUNER_INTERVALS)
            # A timer keeps its value until it is set again: draw the last one up to the end.
            y = np.append(y[kept], y[-1]) / timer.seconds
            x = np.append(x[kept], rows["time_s"].max()) / time.seconds
            plural = "GPU" if demand == 1 else "GPUs"
            tone = f"o{round(place * 5 / max(len(most) - 1, 1))}"
            series.append(Series(f"{demand:.0f} {plural}", tone, rounded(y), rounded(x)))
        yield Figure(
            name=named(f"autotuner-{slug}", setting.slug, study.policy_slug(policy)),
            kind=Kind.LINES,
            title=f"Auto-tuner, {level} level · {policy}",
            section="run",
            x=Axis("Time", time.name),
            y=Axis("Delay timer", timer.name),
            series=series,
            setting=setting.index,
            policy=study.policies.index(policy),
            source=f"autotuner.parquet: timer_s by gpus where level is {level}",
            note="By GPU demand." if len(demands) <= _TUNER_SERIES
            else f"By GPU demand, the {_TUNER_SERIES} most frequent of {len(demands)}.",
            step=True,
        )  # fmt: skip


def _which_jobs(count: int) -> str:
    jobs = "job" if count == 1 else f"{count} jobs"
    return f"The {jobs} with the most communication among those that moved; gaps: no GPUs."


def _communication(run: Run) -> list[Series]:
    """For jobs that had more than one iteration time: exposed communication per iteration.

    x is in seconds, y in milliseconds.
    """
    rows, jobs = run.placements, run.jobs
    compute = jobs["ideal_s"] / np.maximum(jobs["iterations"], 1.0)
    compute_s: Mapping[str, float] = dict(zip(jobs.text["job_id"], compute.tolist(), strict=True))
    places: dict[str, list[int]] = {}
    for index, job in enumerate(rows.text["job_id"]):
        places.setdefault(job, []).append(index)
    changes = {
        job: len(set(rows["iteration_s"][indices].tolist()))
        for job, indices in places.items()
        if job in compute_s
    }
    spent = dict(zip(jobs.text["job_id"], jobs["comm_s"].tolist(), strict=True))
    ranked = sorted((j for j in changes if changes[j] > 1), key=lambda j: -spent[j])[:_JOBS]
    tones = job_tones(jobs)
    return [
        _job_line(rows, places[job], compute_s[job], f"job {job}", tones[job]) for job in ranked
    ]


def _job_line(rows: Rows, indices: list[int], compute_s: float, name: str, tone: str) -> Series:
    """A step for each row of the job, and a gap where the job has no GPUs.

    Rows that follow each other with the same value become one step.
    """
    x: list[float] = []
    y: list[float] = []
    for index in indices:
        start, end = float(rows["start_s"][index]), float(rows["end_s"][index])
        value = float(f"{max(1e3 * (float(rows['iteration_s'][index]) - compute_s), 0.0):.5g}")
        if x and x[-1] == start and y[-1] == value:
            x[-1] = end
            continue
        if x and x[-1] != start:
            x.append(x[-1])
            y.append(float("nan"))
        x += [start, end]
        y += [value, value]
    kept = extremes(np.array(x), np.array(y))
    return Series(name, tone, [y[index] for index in kept], [x[index] for index in kept])
