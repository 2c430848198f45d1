"""The section of the page about links that jobs share: which jobs lost most, and beside which.

Only pages about runs with contention have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from artist.report.grouping import Setting, Study
from artist.report.losses import Loser, losers
from artist.report.quantities import HOUR, Unit, time_unit
from artist.report.reader import Run
from artist.report.templating import section
from artist.results.terms.number_text import percent, plain, short

if TYPE_CHECKING:
    from markupsafe import Markup

JOBS = 10
_NEIGHBOURS = 3
"""Jobs that a row names one by one."""


def links_section(study: Study) -> Markup:
    """Heading, slots for the figures, and the tables of all settings."""
    return section("links.html", settings=[_of_setting(setting) for setting in study.settings])


def _of_setting(setting: Setting) -> tuple[Setting, list[dict[str, Any]], str, list[str]]:
    """What the template needs: policies, their unit of time, and runs without link records."""
    runs = setting.firsts
    if not any(run.contended for run in runs.values()):
        return setting, [], "", []
    lists = {policy: losers(run, JOBS) for policy, run in runs.items()}
    unit = time_unit(max((one.lost_s for lost in lists.values() for one in lost), default=0.0))
    policies = [_of_run(policy, runs[policy], lost, unit) for policy, lost in lists.items()]
    return setting, policies, unit.name, [run.name for run in runs.values() if run.links is None]


def _of_run(policy: str, run: Run, lost: list[Loser], unit: Unit) -> dict[str, Any]:
    """What all jobs of a run lost, and a row for each of those that lost most."""
    each = run.jobs["contention_lost_s"]
    whole_s = float(each[each > 0].sum())
    return {
        "policy": policy,
        "losing": int(np.count_nonzero(each > 0)),
        "jobs": len(each),
        "lost_h": whole_s / HOUR,
        "share": sum(one.lost_s for one in lost) / whole_s if lost else 0.0,
        "beside": run.links is not None,
        "rows": [_row(run, one, unit) for one in lost],
    }


def _row(run: Run, one: Loser, unit: Unit) -> list[str]:
    gpus = plain(float(run.jobs["gpus"][one.row]))
    lost = short(one.lost_s / unit.seconds)
    row = [one.job_id, run.jobs.text["model"][one.row], gpus, lost, percent(one.slowdown)]
    return row if run.links is None else [*row, _neighbours(one, unit)]


def _neighbours(one: Loser, unit: Unit) -> str:
    texts = [
        f"{name} ({short(lost_s / unit.seconds)})" for name, lost_s in one.beside[:_NEIGHBOURS]
    ]
    more = len(one.beside) - _NEIGHBOURS
    if more > 0:
        texts.append(f"and {more} more")
    return ", ".join(texts) or "-"
