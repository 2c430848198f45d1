"""The section of the page about failures: what they cost by cause, and by the size of jobs.

Only pages about runs with failures or checkpoints have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.grouping import Setting, Study
from artist.report.quantities import HOUR
from artist.report.reader import Rows, Run
from artist.report.templating import section
from artist.results.terms.number_text import percent, plain

if TYPE_CHECKING:
    from markupsafe import Markup


def failures_section(study: Study) -> Markup:
    """Heading and the tables of all settings."""
    return section("failures.html", settings=[(one, _policies(one)) for one in study.settings])


def _policies(setting: Setting) -> list[dict[str, Any]]:
    """What the page says of each policy; nothing if no run of the setting has failures."""
    if all(run.outages is None for run in setting.firsts.values()):
        return []
    return [_of_run(policy, run) for policy, run in setting.firsts.items()]


def _of_run(policy: str, run: Run) -> dict[str, Any]:
    return {
        "policy": policy,
        "costs": _costs(run),
        "causes": _causes(run.outages) if run.outages is not None and run.outages.count else None,
        "sizes": _sizes(run.failure_sizes) if run.failure_sizes is not None else None,
    }


def _costs(run: Run) -> dict[str, float] | None:
    """What failures cost all jobs of a run; None if nothing fails."""
    if run.outages is None:
        return None
    return {
        "outages": int(run.metric("outages")),
        "stopped": int(run.metric("failures")),
        "lost_h": run.metric("lost_gpu_s") / HOUR,
        "withdrawn_h": run.metric("withdrawn_gpu_s") / HOUR,
        "ratio": run.metric("training_time_ratio_mean"),
    }


def _causes(outages: Rows) -> list[list[str]]:
    """A row per kind of unit and way of leaving, the most lost work first."""
    pairs = zip(outages.text["kind"], outages.text["event"], strict=True)
    causes = np.array([f"{kind} {event}" for kind, event in pairs])
    rows = []
    for cause in dict.fromkeys(causes.tolist()):
        if cause.endswith(" notice"):
            continue  # nothing has left yet
        these = causes == cause
        columns = (outages[column][these] for column in ("gpus", "jobs", "lost_gpu_s"))
        gpus, jobs, lost_s = (float(column.sum()) for column in columns)
        numbers = (float(np.count_nonzero(these)), gpus, jobs, lost_s / HOUR)
        rows.append((lost_s, [cause, *map(plain, numbers)]))
    return [cells for _, cells in sorted(rows, key=lambda row: -row[0])]


def _sizes(sizes: Rows) -> list[list[str]]:
    columns = (
        "gpus", "jobs", "run_s", "failures", "failures_expected", "training_time_ratio",
        "lost_gpu_s",
    )  # fmt: skip
    return [
        [plain(gpus), plain(jobs), plain(run_s / HOUR), plain(hits), _over(run_s, hits),
         _over(run_s, expected), percent(ratio), plain(lost_s / HOUR)]
        for gpus, jobs, run_s, hits, expected, ratio, lost_s in zip(
            *(sizes[column].tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def _over(run_s: float, count: float) -> str:
    return plain(run_s / count / HOUR) if count else "-"
