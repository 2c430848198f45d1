"""The section of the page about failures: what they cost by cause, and whom by the size of jobs.

Only pages about runs with failures or checkpoints have it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.report.figure import HOUR
from artist.report.grouping import Setting, Study
from artist.report.markup import Html, join, table, tag
from artist.report.reader import Rows, Run
from artist.results.terms.number_text import counted, percent, plain

_OPEN = 3
"""Tables of more policies than this are closed at first."""

_HOW = "What left service, what it cost the jobs, and which jobs were hit."

_NOTE = (
    "Lost is work since a job's last checkpoint. The training time ratio is productive over run "
    "time: restarts, checkpoints and lost work make it less than 1, waiting does not. The mean "
    "time to failure (MTTF) is run time over failures; expected is 1 / (n r), with the failure "
    "rates r of the n units that the jobs were on."
)
_FIRST = " The first replicate of each policy."

_SOURCE = (
    "outages.parquet: kind, event, gpus, jobs, lost_gpu_s; failure_sizes.parquet: run_s, "
    "failures, failures_expected, training_time_ratio, lost_gpu_s; summary.json: withdrawn_gpu_s"
)

_CAUSES = ("cause", "outages", "GPUs that left", "jobs stopped", "lost (GPU-h)")
_SIZES = (
    "GPUs", "jobs", "run time (h)", "failures", "MTTF (h)", "expected MTTF (h)",
    "training time ratio (%)", "lost (GPU-h)",
)  # fmt: skip


def failures_section(study: Study) -> Html:
    """Heading and the tables of all settings."""
    return join([
        tag("h2", "Failures", id="failures"),
        tag("p", _HOW),
        *(_of_setting(setting) for setting in study.settings),
    ])  # fmt: skip


def _of_setting(setting: Setting) -> Html:
    runs = {policy: setting.first(policy) for policy in setting.runs}
    number = str(setting.index)
    if all(run.outages is None for run in runs.values()):
        said = "In this setting nothing fails and no job writes checkpoints."
        return tag("p", said, class_="note", data_setting=number)
    several = any(len(replicates) > 1 for replicates in setting.runs.values())
    extra = {"open": "open"} if len(runs) <= _OPEN else {}
    return tag(
        "div",
        tag("h3", "Lost GPU-hours by cause, and failures by size of a job"),
        tag("p", _NOTE + (_FIRST if several else ""), class_="note"),
        *(
            tag("details", tag("summary", f"{policy}: {_whole(run)}"), *_tables(run), **extra)
            for policy, run in runs.items()
        ),
        tag("p", _SOURCE, class_="source"),
        class_="panel losses",
        data_setting=number,
    )


def _whole(run: Run) -> str:
    """What failures cost all jobs of a run, in words."""
    if run.outages is None:
        return "nothing fails and no job writes checkpoints."
    stopped = int(run.metric("failures"))
    lost_h, away_h = (run.metric(key) / HOUR for key in ("lost_gpu_s", "withdrawn_gpu_s"))
    ratio = percent(run.metric("training_time_ratio_mean"))
    return (
        f"{counted(int(run.metric('outages')), 'outage')}: failures stopped jobs {stopped:,} times "
        f"and cost {plain(lost_h)} GPU-hours of work; {plain(away_h)} GPU-hours were out of "
        f"service; mean training time ratio {ratio} %."
    )


def _tables(run: Run) -> Iterator[Html]:
    if run.outages is not None and run.outages.count:
        yield table(_CAUSES, _causes(run.outages))
    if run.failure_sizes is not None:
        yield table(_SIZES, _sizes(run.failure_sizes))


def _causes(outages: Rows) -> list[list[str]]:
    """A row per kind of unit and way of leaving, the most lost work first."""
    causes = [f"{kind} {event}" for kind, event in zip(
        outages.text["kind"], outages.text["event"], strict=True
    )]  # fmt: skip
    rows = []
    for cause in dict.fromkeys(causes):
        if cause.endswith(" notice"):
            continue  # nothing has left yet
        these = np.array([one == cause for one in causes])
        columns = (outages[column][these] for column in ("gpus", "jobs", "lost_gpu_s"))
        gpus, jobs, lost_s = (float(column.sum()) for column in columns)
        count = float(np.count_nonzero(these))
        cells = [cause, plain(count), plain(gpus), plain(jobs), plain(lost_s / HOUR)]
        rows.append((lost_s, cells))
    return [cells for _, cells in sorted(rows, key=lambda row: -row[0])]


def _sizes(sizes: Rows) -> list[list[str]]:
    columns = (
        "gpus", "jobs", "run_s", "failures", "failures_expected", "training_time_ratio",
        "lost_gpu_s",
    )  # fmt: skip
    return [
        [
            plain(gpus),
            plain(jobs),
            plain(run_s / HOUR),
            plain(hits),
            _over(run_s, hits),
            _over(run_s, expected),
            percent(ratio),
            plain(lost_s / HOUR),
        ]
        for gpus, jobs, run_s, hits, expected, ratio, lost_s in zip(
            *(sizes[column].tolist() for column in columns), strict=True
        )
    ]


def _over(run_s: float, count: float) -> str:
    return plain(run_s / count / HOUR) if count else "-"
