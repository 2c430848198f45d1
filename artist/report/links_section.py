"""The section of the page about links that jobs share: its texts, and who lost most to whom.

Only pages about runs with contention have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from artist.report.figure import HOUR, time_unit
from artist.report.grouping import Setting, Study
from artist.report.losses import Loser, losers
from artist.report.markup import Html, join, table, tag
from artist.report.quantities import Unit
from artist.report.reader import Run
from artist.results.terms.number_text import counted, percent, plain, short

JOBS = 10
_NEIGHBOURS = 3
"""Jobs that a row names one by one."""
_NAMED = 2
"""Runs that a sentence names one by one."""
_OPEN = 3
"""Tables of more policies than this are closed at first."""

_HOW = "What jobs lost to each other on links that they share, and where."

_LOST = (
    "Lost is running time above that of the same iterations without the other jobs; slowdown is "
    "the same as a share of the time without them."
)
_BESIDE = (
    " Beside a job are those with which it was on a link that carries less than all of them want, "
    "with what it lost meanwhile. Beside several at once it loses the same time, so these need not "
    "add up."
)
_FIRST = " The first replicate of each policy."

_SOURCE = "jobs.parquet: contention_slowdown, contention_lost_s"
_SOURCE_BESIDE = "; links.parquet: job_ids, demand; placements.parquet: alone_iteration_s"


def links_section(study: Study) -> Html:
    """Heading, slots for the figures, and the tables of all settings."""
    return join([
        tag("h2", "Links", id="links"),
        tag("p", _HOW),
        tag("div", class_="cards", data_section="links", data_scope="setting"),
        *(_of_setting(setting) for setting in study.settings),
    ])  # fmt: skip


def _of_setting(setting: Setting) -> Html:
    runs = {policy: setting.first(policy) for policy in setting.runs}
    number = str(setting.index)
    if not any(run.contended for run in runs.values()):
        said = "In this setting jobs do not compete on links (contention none)."
        return tag("p", said, class_="note", data_setting=number)
    without = [run for run in runs.values() if run.links is None]
    known = len(without) < len(runs)
    several = any(len(replicates) > 1 for replicates in setting.runs.values())
    note = _LOST + (_BESIDE if known else "") + (_FIRST if several else "")
    return tag(
        "div",
        tag("h3", "Who lost most, and beside whom" if known else "Who lost most"),
        tag("p", note, class_="note"),
        *([tag("p", _not_kept(without), class_="note")] if without else []),
        *_of_runs(runs),
        tag("p", _SOURCE + (_SOURCE_BESIDE if known else ""), class_="source"),
        class_="panel losses",
        data_setting=number,
    )


def _not_kept(runs: Sequence[Run]) -> str:
    which = ", ".join(run.name for run in runs[:_NAMED])
    more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
    return (
        "Which links were busy, and beside whom jobs lost time, needs links.parquet, which is not "
        f"in {which}{more}. Simulate again with artist sim ... --links --out DIR to keep it."
    )


def _of_runs(runs: Mapping[str, Run]) -> Iterator[Html]:
    """A table per policy, all in one unit."""
    lists = {policy: losers(run, JOBS) for policy, run in runs.items()}
    largest_s = max((one.lost_s for lost in lists.values() for one in lost), default=0.0)
    unit = Unit(*time_unit(largest_s))
    for policy, lost in lists.items():
        extra = {"open": "open"} if len(runs) <= _OPEN else {}
        text = f"{policy}: {_whole(runs[policy], lost)}"
        content = [_table(runs[policy], lost, unit)] if lost else []
        yield tag("details", tag("summary", text), *content, **extra)


def _whole(run: Run, lost: Sequence[Loser]) -> str:
    """What all jobs of a run lost, in words."""
    each = run.jobs["contention_lost_s"]
    whole = float(each[each > 0].sum())
    if not lost:
        return "no job lost time to others."
    share = percent(sum(one.lost_s for one in lost) / whole)
    count = int(np.count_nonzero(each > 0))
    these = f"; these {len(lost)} lost {share} % of it" if count > len(lost) else ""
    return (
        f"{count:,} of {counted(len(each), 'job')} lost {plain(whole / HOUR)} job-hours to each "
        f"other{these}."
    )


def _table(run: Run, lost: Sequence[Loser], unit: Unit) -> Html:
    head = ["job", "model", "GPUs", f"lost ({unit.name})", "slowdown (%)"]
    models, gpus = run.jobs.text["model"], run.jobs["gpus"]
    rows = [
        [one.job_id, models[one.row], plain(float(gpus[one.row])), short(one.lost_s / unit.seconds),
         percent(one.slowdown)]
        for one in lost
    ]  # fmt: skip
    if run.links is None:
        return table(head, rows)
    return table(
        [*head, f"beside ({unit.name} lost meanwhile)"],
        [[*row, _neighbours(one, unit)] for row, one in zip(rows, lost, strict=True)],
        "data beside",
    )


def _neighbours(one: Loser, unit: Unit) -> str:
    texts = [
        f"{name} ({short(lost_s / unit.seconds)})" for name, lost_s in one.beside[:_NEIGHBOURS]
    ]
    more = len(one.beside) - _NEIGHBOURS
    return ", ".join([*texts, *([f"and {more} more"] if more > 0 else [])]) or "-"
