"""The section of the page about data: what the plan changed, what it moves, and what runs copied.

Only pages about runs with data have it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.report.grouping import Setting, Study
from artist.report.markup import Html, join, table, tag
from artist.report.reader import Rows, Run
from artist.results.terms.number_text import counted, percent, plain
from artist.units import size_text

MOVES = 20
"""Moves that the page lists; all are in a file."""
_OPEN = 3
"""Tables of more policies than this are closed at first."""
_DAY_S = 86_400.0

_HOW = "Which regions held the jobs, what was copied for them, and what the plan of tables changed."
_USED = (
    "Held are the GPU hours of jobs that read tables. The share is of all GPU hours of the region "
    "from the first arrival to the last finish."
)
_FIRST = " The first replicate of each policy."
_BALANCE = (
    "What the plan was made from: demand of jobs whose tables lie in a region, over the GPU hours "
    "that it offers. Urgent is high priority."
)
_NUMBERS = (
    "Ratios are urgent demand over supply by region; collocated is the share of urgent GPU hours "
    "for which a region has all tables; the terms add up to the objective."
)
_SOURCE = (
    "data_use.parquet: region, gpu_h; copies.parquet: bytes, start_s; data_plan, data_balance, "
    "data_days and data_moves.parquet: the plan's files"
)
_NAMES = {
    "ratio_max": "largest ratio",
    "ratio_sd": "deviation of ratios",
    "collocation": "collocated",
    "at_home": "at home",
    "objective": "objective",
    "term_read": "term: reads across regions",
    "term_gpu": "term: balance of GPUs",
    "term_overload": "term: overload",
    "term_storage": "term: balance of storage",
}
_KINDS = (
    "region and kind", "supply (GPU-h)", "urgent before", "urgent after", "all before",
    "all after",
)  # fmt: skip


def data_section(study: Study) -> Html:
    """Heading and the tables of all settings."""
    return join([
        tag("h2", "Data", id="data"),
        tag("p", _HOW),
        *(_of_setting(setting) for setting in study.settings),
    ])  # fmt: skip


def _of_setting(setting: Setting) -> Html:
    runs = {policy: setting.first(policy) for policy in setting.runs}
    number = str(setting.index)
    if all(run.data_use is None for run in runs.values()):
        return tag("p", "In this setting no run has data.", class_="note", data_setting=number)
    several = any(len(replicates) > 1 for replicates in setting.runs.values())
    extra = {"open": "open"} if len(runs) <= _OPEN else {}
    return tag(
        "div",
        tag("h3", "Regions, copies and the plan"),
        tag("p", _USED + (_FIRST if several else ""), class_="note"),
        *(
            tag("details", tag("summary", f"{policy}: {_whole(run)}"), *_tables(run), **extra)
            for policy, run in runs.items()
        ),
        tag("p", _SOURCE, class_="source"),
        class_="panel losses",
        data_setting=number,
    )


def _whole(run: Run) -> str:
    """What was copied, in words."""
    if run.data_use is None:
        return "no data."
    size = size_text(int(run.metric("data_copied_bytes")))
    tables = counted(int(run.metric("data_copies")), "table")
    refused = counted(int(run.metric("data_refused_jobs")), "job")
    return f"{tables} copied on demand, {size}; {refused} waited for data."


def _tables(run: Run) -> Iterator[Html]:
    if run.data_use is None:
        return
    yield table(("region", "GPUs", "held (GPU-h)", "share (%)"), _regions(run))
    if run.copies is not None and run.copies.count:
        yield table(("day of the run", "copied on demand"), _copied(run.copies))
    plan = run.data_plan
    if plan is None or run.data_balance is None or run.data_days is None:
        yield tag("p", "Its data file is part of no plan of artist place-data.", class_="note")
        return
    yield tag("p", _BALANCE, class_="note")
    yield table(_KINDS, _balance(run.data_balance))
    yield tag("p", _NUMBERS, class_="note")
    yield table(("the plan", "before", "after"), _numbers(plan))
    yield table(("day of the plan", "moved", "objective", "largest ratio"), _days(run.data_days))
    if run.data_moves is not None and run.data_moves.count:
        count = run.data_moves.count
        which = f"the first {MOVES} of {count:,} moves" if count > MOVES else "every move"
        said = f"Tables that get another home: {which}, by gain. All are in data_moves.parquet."
        yield tag("p", said, class_="note")
        yield table(("table", "day", "from", "to", "size", "gain"), _moves(run.data_moves))


def _regions(run: Run) -> list[list[str]]:
    use, regions = run.data_use, run.data_regions
    assert use is not None and regions is not None  # both or neither
    names = np.array(use.text["region"])
    arrival_s, finish_s = run.jobs["arrival_s"].min(), run.jobs["finish_s"].max()
    hours = max(float(finish_s - arrival_s) / 3600, 1e-9)
    rows = []
    for name, gpus in zip(regions.text["region"], regions["region_gpus"].tolist(), strict=True):
        held = float(use["gpu_h"][names == name].sum()) if use.count else 0.0
        rows.append([name, plain(gpus), plain(held), percent(held / (gpus * hours))])
    return rows


def _copied(copies: Rows) -> list[list[str]]:
    days = (copies["start_s"] // _DAY_S).astype(int)
    return [
        [str(day + 1), size_text(int(copies["bytes"][days == day].sum()))]
        for day in np.unique(days).tolist()
    ]


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


def _numbers(plan: Rows) -> list[list[str]]:
    return [
        [_NAMES.get(name, name), f"{before:.4g}", f"{after:.4g}"]
        for name, before, after in zip(
            plan.text["number"], plan["before"].tolist(), plan["after"].tolist(), strict=True
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
    columns = [moves.text[name] for name in ("table", "from", "to")]
    rows = []
    for row in order.tolist():
        name, source, target = (column[row] for column in columns)
        day, size = int(moves["day"][row]), size_text(int(moves["size_bytes"][row]))
        told = "with others" if np.isnan(gains[row]) else f"{gains[row]:.4g}"
        rows.append([name, str(day), source, target, size, told])
    return rows
