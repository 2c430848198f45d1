"""Figures along simulated time: use of the cluster, jobs remaining, timers, communication.

They correspond to figures 4, 6, 11 and 12 of the Dally paper; figures of fragmentation, of the
queue and of the GPUs held are not in the paper. If a policy has several replicates, these figures
show the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from artist.report.curves import INTERVALS, extremes, job_tones
from artist.report.figure import Figure, Series, described, rounded
from artist.report.grouping import Setting, Study, slugs
from artist.report.quantities import Quantity
from artist.report.reader import FileColumns, Numbers, RecordedRun
from artist.units import counted

_BINS = 180
_TUNER_INTERVALS = 33
_TUNER_SERIES = 6
_JOBS = 6
_ROUNDING = 1e-9
_HELD = ("gpus_computing", "gpus_communicating")
"""What held GPUs do. The rest of them is stalled, or its work is lost."""
_THINNED = f"Drawn at the lowest, the highest and the last point of {INTERVALS} equal intervals."


def over_time(study: Study, setting: Setting) -> Iterator[Figure]:
    """Utilization, fragmentation, jobs and GPUs held, for all policies of a setting."""
    runs = setting.firsts
    end = max(float(run.timeline["time_s"][-1]) for run in runs.values())
    scale = study.units[Quantity.TIME].seconds
    use, fragments = [], []
    for policy, run in runs.items():
        tone = study.tone(policy)
        parts = [_shares(run, part, end, scale)[0] for part in _HELD]
        use.append(Series(policy, tone, *_shares(run, "gpus_held", end, scale), parts=parts))
        fragments.append(Series(policy, tone, *_shares(run, "gpus_fragmented", end, scale)))
    yield described("utilization", study, setting, use, bins=str(_BINS))
    yield described("fragmentation", study, setting, fragments, bins=str(_BINS))
    yield _steps(study, setting, "jobs-remaining", ("jobs_running", "jobs_waiting"))
    yield _steps(study, setting, "queue-length", ("jobs_waiting",))
    gpus = max(run.metric("gpus") for run in runs.values())
    yield _steps(study, setting, "gpus-held", ("gpus_held",), top=gpus)


def _steps(
    study: Study, setting: Setting, key: str, columns: Sequence[str], top: float | None = None
) -> Figure:
    """A step line per policy: the sum of some columns of the timeline."""
    scale = study.units[Quantity.TIME].seconds
    series, thinned = [], False
    for policy, run in setting.firsts.items():
        rows = run.timeline
        values = np.sum([rows[column] for column in columns], axis=0)
        kept = extremes(rows["time_s"], values)
        thinned = thinned or len(kept) < rows.count
        x, y = rounded(rows["time_s"][kept] / scale), rounded(values[kept])
        series.append(Series(policy, study.tone(policy), y, x))
    return described(key, study, setting, series, top=top, thinned=_THINNED if thinned else "")


def of_one_run(study: Study, setting: Setting, policy: str) -> Iterator[Figure]:
    """For one policy of a setting: the auto-tuner's timers, and the communication of some jobs."""
    run = setting.firsts[policy]
    if run.autotuner is not None and run.autotuner.count:
        yield from _tuner(study, setting, policy, run.autotuner)
    lines = _communication(run, study.units[Quantity.TIME].seconds)
    if lines:
        jobs = "job" if len(lines) == 1 else f"{len(lines)} jobs"
        yield described("communication-timeline", study, setting, lines, policy=policy, jobs=jobs)


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


def _shares(
    run: RecordedRun, column: str, end: float, scale: float
) -> tuple[list[float], list[float]]:
    """A column of the timeline as percent of all GPUs, in bins, and the edges of the bins."""
    start = float(run.timeline["time_s"][0])
    edges = np.linspace(start, max(end, start + 1e-9), _BINS + 1)
    gpus = binned(run.timeline["time_s"], run.timeline[column], edges)
    return rounded(100.0 * gpus / run.metric("gpus")), rounded(edges / scale)


def _tuner(study: Study, setting: Setting, policy: str, rows: FileColumns) -> Iterator[Figure]:
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
            tone = f"o{round(place * 5 / max(len(most) - 1, 1))}"
            series.append(Series(counted(int(demand), "GPU"), tone, rounded(y), rounded(x)))
        left_out = len(demands) > _TUNER_SERIES
        yield described(
            "autotuner", study, setting, series, measure=f"autotuner-{slug}", policy=policy,
            level=level,
            most=f", the {_TUNER_SERIES} most frequent of {len(demands)}" if left_out else "",
        )  # fmt: skip


def _communication(run: RecordedRun, scale: float) -> list[Series]:
    """Exposed communication per iteration, of jobs for which it changed by more than rounding."""
    rows, jobs = run.placements, run.finished
    waits_ms = [float(f"{wait_ms:.5g}") for wait_ms in _communication_ms(rows, jobs).tolist()]
    spent = dict(zip(jobs.text["job_id"], jobs["comm_s"].tolist(), strict=True))
    places: dict[str, list[int]] = {}
    for index, job in enumerate(rows.text["job_id"]):
        if job in spent:
            places.setdefault(job, []).append(index)
    changed = [job for job, at in places.items() if len({waits_ms[index] for index in at}) > 1]
    tones = job_tones(run.jobs)
    return [
        Series(f"job {job}", tones[job], *_job_line(rows, places[job], waits_ms, scale))
        for job in sorted(changed, key=lambda job: -spent[job])[:_JOBS]
    ]


def _communication_ms(rows: FileColumns, jobs: FileColumns) -> Numbers:
    """The time of an iteration without computing, per placement; 0 if it is a rounding error."""
    computes = rows.numbers.get("compute_iteration_s")
    if computes is None:  # as the trace states it
        stated = jobs["ideal_s"] / np.maximum(jobs["iterations"], 1.0)
        of_job = dict(zip(jobs.text["job_id"], stated.tolist(), strict=True))
        computes = np.array([of_job.get(job, 0.0) for job in rows.text["job_id"]])
    iteration = rows["iteration_s"]
    rest: Numbers = iteration - computes
    return np.where(rest > _ROUNDING * iteration, 1e3 * rest, 0.0)


def _job_line(
    rows: FileColumns, indices: list[int], waits_ms: list[float], scale: float
) -> tuple[list[float], list[float]]:
    """Milliseconds and times: a step for each row of the job, a gap where the job has no GPUs.

    Rows that follow each other with the same value become one step.
    """
    x: list[float] = []
    y: list[float] = []
    for index in indices:
        start, end = float(rows["start_s"][index]), float(rows["end_s"][index])
        value = waits_ms[index]
        if x and x[-1] == start and y[-1] == value:
            x[-1] = end
            continue
        if x and x[-1] != start:
            x.append(x[-1])
            y.append(float("nan"))
        x += [start, end]
        y += [value, value]
    kept = extremes(np.array(x), np.array(y))
    return [y[index] for index in kept], rounded(np.array(x)[kept] / scale)
