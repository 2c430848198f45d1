"""The section of the page about data: what the plan changed, what it moves, and what runs copied.

Only pages about runs with data have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.grouping import Setting, Study
from artist.report.quantities import DAY, HOUR
from artist.report.reader import Rows, Run
from artist.report.templating import section
from artist.results.terms.number_text import percent, plain
from artist.units import size_text

if TYPE_CHECKING:
    from markupsafe import Markup

MOVES = 20
"""Moves that the page lists; all are in a file."""


def data_section(study: Study) -> Markup:
    """Heading and the tables of all settings."""
    return section("data.html", settings=[(one, _policies(one)) for one in study.settings])


def _policies(setting: Setting) -> list[dict[str, Any]]:
    """What the page says of each policy; nothing if no run of the setting has data."""
    if all(run.data_use is None for run in setting.firsts.values()):
        return []
    return [{"policy": policy, **_of_run(run)} for policy, run in setting.firsts.items()]


def _of_run(run: Run) -> dict[str, Any]:
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


def _regions(run: Run) -> list[list[str]]:
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


def _copied(copies: Rows) -> list[list[str]]:
    days = (copies["start_s"] // DAY).astype(int)
    return [
        [str(day + 1), size_text(int(copies["bytes"][days == day].sum()))]
        for day in np.unique(days).tolist()
    ]


def _plan(run: Run) -> dict[str, Any] | None:
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


def _balance(rows: Rows) -> list[list[str]]:
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


def _days(days: Rows) -> list[list[str]]:
    columns = (days[name].tolist() for name in ("day", "moved_bytes", "objective", "ratio_max"))
    return [
        [str(int(day)), size_text(int(moved)), f"{objective:.4g}", f"{ratio:.2f}"]
        for day, moved, objective, ratio in zip(*columns, strict=True)
    ]


def _moves(moves: Rows) -> list[list[str]]:
    """The largest gains first; then moves together with others, in the order of the plan."""
    gains = [float(text) if text != "None" else np.nan for text in moves.text["gain"]]
    order = np.argsort(-np.array(gains), kind="stable")[:MOVES]  # NaN comes last
    rows = []
    for row in order.tolist():
        name, source, target = (moves.text[column][row] for column in ("table", "from", "to"))
        day, size = str(int(moves["day"][row])), size_text(int(moves["size_bytes"][row]))
        gain = "with others" if np.isnan(gains[row]) else f"{gains[row]:.4g}"
        rows.append([name, day, source, target, size, gain])
    return rows
