"""The sections that only some pages have: links that jobs share, failures, and data.

Here are the rows and numbers; the templates have the words around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.grouping import Setting, Study
from artist.report.losses import Loser, losers
from artist.report.reader import FileColumns, RecordedRun
from artist.report.templating import section
from artist.results.terms.number_text import (
    DAY,
    HOUR,
    DisplayUnit,
    percent,
    plain,
    short,
    time_unit,
)
from artist.units import size_text

if TYPE_CHECKING:
    from markupsafe import Markup

JOBS = 10
"""Jobs that lost most, of each policy."""
_NEIGHBOURS = 3
"""Jobs that a row names one by one."""
MOVES = 20
"""Moves of tables that the page lists; all are in a file."""


def links_section(study: Study) -> Markup:
    """Which jobs lost most on links, and to which others: pages about contention."""
    return section("links.html", settings=[_losses(setting) for setting in study.settings])


def failures_section(study: Study) -> Markup:
    """What failures cost by cause, and by the size of jobs: pages about failures or checkpoints."""
    settings = _settings(study, lambda run: run.outages is not None, _failures)
    return section("failures.html", settings=settings)


def data_section(study: Study) -> Markup:
    """What the plan changed and moves, and what runs copied, for pages about runs with data."""
    settings = _settings(study, lambda run: run.data_use is not None, _data)
    return section("data.html", settings=settings)


def _settings(
    study: Study,
    present: Callable[[RecordedRun], bool],
    facts: Callable[[RecordedRun], dict[str, Any]],
) -> list[tuple[Setting, list[dict[str, Any]]]]:
    """Each setting with the facts of each policy; empty if no run has any."""
    return [
        (
            setting,
            [{"policy": policy, **facts(run)} for policy, run in setting.firsts.items()]
            if any(map(present, setting.firsts.values()))
            else [],
        )
        for setting in study.settings
    ]


# -- links --------------------------------------------------------------------------


def _losses(setting: Setting) -> tuple[Setting, list[dict[str, Any]], str, list[str]]:
    """What the template needs: policies, their unit of time, and runs without link records."""
    runs = setting.firsts
    if not any(run.contended for run in runs.values()):
        return setting, [], "", []
    lists = {policy: losers(run, JOBS) for policy, run in runs.items()}
    unit = time_unit(max((one.lost_s for lost in lists.values() for one in lost), default=0.0))
    policies = [_losses_of_run(policy, runs[policy], lost, unit) for policy, lost in lists.items()]
    return setting, policies, unit.name, [run.name for run in runs.values() if run.links is None]


def _losses_of_run(
    policy: str, run: RecordedRun, lost: Sequence[Loser], unit: DisplayUnit
) -> dict[str, Any]:
    """What all jobs of a run lost, and a row for each of those that lost most."""
    each = run.jobs["contention_lost_s"]
    whole_s = float(each[each > 0].sum())
    return {
        "policy": policy,
        "losing": int(np.count_nonzero(each > 0)),
        "jobs": len(each),
        "lost_h": whole_s / HOUR,
        "share": sum(one.lost_s for one in lost) / whole_s if lost else 0.0,
        "others_known": run.links is not None,
        "rows": [_row(run, one, unit) for one in lost],
    }


def _row(run: RecordedRun, one: Loser, unit: DisplayUnit) -> list[str]:
    gpus = plain(float(run.jobs["gpus"][one.row]))
    lost = short(one.lost_s / unit.seconds)
    row = [one.job_id, run.jobs.text["model"][one.row], gpus, lost, percent(one.slowdown)]
    return row if run.links is None else [*row, _neighbours(one, unit)]


def _neighbours(one: Loser, unit: DisplayUnit) -> str:
    texts = [f"{name} ({short(lost_s / unit.seconds)})" for name, lost_s in one.to[:_NEIGHBOURS]]
    more = len(one.to) - _NEIGHBOURS
    if more > 0:
        texts.append(f"and {more} more")
    return ", ".join(texts) or "-"


# -- failures -----------------------------------------------------------------------


def _failures(run: RecordedRun) -> dict[str, Any]:
    return {
        "costs": _costs(run),
        "causes": _causes(run.outages) if run.outages is not None and run.outages.count else None,
        "sizes": _sizes(run.failure_sizes) if run.failure_sizes is not None else None,
    }


def _costs(run: RecordedRun) -> dict[str, float | None] | None:
    """What failures and slow units cost all jobs of a run; None if nothing fails."""
    if run.outages is None:
        return None
    return {
        "outages": int(run.metric("outages")),
        "stopped": int(run.metric("failures")),
        "lost_h": run.metric("lost_gpu_s") / HOUR,
        "withdrawn_h": run.metric("withdrawn_gpu_s") / HOUR,
        "ratio": run.metric("training_time_ratio_mean"),
        "slowed_h": run.metric("slowed_gpu_s") / HOUR if "slowed_gpu_s" in run.summary else None,
    }


def _causes(outages: FileColumns) -> list[list[str]]:
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


def _sizes(sizes: FileColumns) -> list[list[str]]:
    """A row per size of jobs."""
    columns = (
        "gpus", "jobs", "run_s", "failures", "failures_expected", "training_time_ratio",
        "lost_gpu_s",
    )  # fmt: skip
    return [
        [plain(gpus), plain(jobs), plain(run_s / HOUR), plain(hits), _hours_each(run_s, hits),
         _hours_each(run_s, expected), percent(ratio), plain(lost_s / HOUR)]
        for gpus, jobs, run_s, hits, expected, ratio, lost_s in zip(
            *(sizes[column].tolist() for column in columns), strict=True
        )
    ]  # fmt: skip


def _hours_each(run_s: float, count: float) -> str:
    return plain(run_s / count / HOUR) if count else "-"


# -- data ---------------------------------------------------------------------------


def _data(run: RecordedRun) -> dict[str, Any]:
    """What a run held, copied and planned; no regions if it has no data."""
    if run.data_use is None:
        return {"regions": []}
    return {
        "regions": _regions(run),
        "copies": int(run.metric("data_copies")),
        "bytes": int(run.metric("data_copied_bytes")),
        "refused": int(run.metric("data_refused_jobs")),
        "copied": _copied(run.copies) if run.copies is not None else [],
        "plan": _plan(run),
    }


def _regions(run: RecordedRun) -> list[list[str]]:
    """GPU hours of jobs that read tables, by region."""
    use, regions = run.data_use, run.data_regions
    assert use is not None and regions is not None  # both or neither
    names = np.array(use.text["region"])
    arrival_s, finish_s = run.jobs["arrival_s"].min(), run.jobs["finish_s"].max()
    hours = max(float(finish_s - arrival_s) / HOUR, 1e-9)
    rows = []
    for name, gpus in zip(regions.text["region"], regions["region_gpus"].tolist(), strict=True):
        held = float(use["gpu_h"][names == name].sum()) if use.count else 0.0
        rows.append([name, plain(gpus), plain(held), percent(held / (gpus * hours))])
    return rows


def _copied(copies: FileColumns) -> list[list[str]]:
    days = (copies["start_s"] // DAY).astype(int)
    return [
        [str(day + 1), size_text(int(copies["bytes"][days == day].sum()))]
        for day in np.unique(days).tolist()
    ]


def _plan(run: RecordedRun) -> dict[str, Any] | None:
    """The tables about the plan that the data file is part of; None if there is none."""
    plan = run.data_plan
    if plan is None or run.data_balance is None or run.data_days is None:
        return None
    numbers = zip(plan.text["number"], plan["before"], plan["after"], strict=True)
    return {
        "balance": _balance(run.data_balance),
        "numbers": [[name, f"{before:.4g}", f"{after:.4g}"] for name, before, after in numbers],
        "days": _days(run.data_days),
        "moves": _moves(run.data_moves) if run.data_moves is not None else [],
        "count": run.data_moves.count if run.data_moves is not None else 0,
    }


def _balance(rows: FileColumns) -> list[list[str]]:
    """Demand over supply by region and kind of GPU, before and after the plan."""
    columns = (
        "supply_gpu_h", "urgent_over_supply_before", "urgent_over_supply_after",
        "demand_over_supply_before", "demand_over_supply_after",
    )  # fmt: skip
    numbers = zip(*(rows[column].tolist() for column in columns), strict=True)
    return [
        [f"{region}, {kind}", plain(supply), *(f"{ratio:.2f}" for ratio in ratios)]
        for region, kind, (supply, *ratios) in zip(
            rows.text["region"], rows.text["kind"], numbers, strict=True
        )
    ]


def _days(days: FileColumns) -> list[list[str]]:
    columns = (days[name].tolist() for name in ("day", "moved_bytes", "objective", "ratio_max"))
    return [
        [str(int(day)), size_text(int(moved)), f"{objective:.4g}", f"{ratio:.2f}"]
        for day, moved, objective, ratio in zip(*columns, strict=True)
    ]


def _moves(moves: FileColumns) -> list[list[str]]:
    """The largest gains first; then moves together with others, in the order of the plan."""
    gains = moves["gain"]
    order = np.argsort(-gains, kind="stable")[:MOVES]  # NaN comes last
    rows = []
    for row in order.tolist():
        name, source, target = (moves.text[column][row] for column in ("table", "from", "to"))
        day, size = str(int(moves["day"][row])), size_text(int(moves["size_bytes"][row]))
        gain = "with others" if np.isnan(gains[row]) else f"{gains[row]:.4g}"
        rows.append([name, day, source, target, size, gain])
    return rows
