"""Figures of runs with tenants or priorities: use against entitlement, and waits by priority."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from artist.report.figure import HOUR, Axis, Figure, Kind, Series, named, rounded
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import Rows

_MOST = 6
"""Tenants of a figure, those that used most."""


def of_tenants(study: Study, setting: Setting) -> Iterator[Figure]:
    """How much of what tenants are entitled to they use, and how long priorities wait."""
    runs = {policy: setting.first(policy) for policy in setting.runs}
    several = any(len(replicates) > 1 for replicates in setting.runs.values())
    note = "The first replicate of each policy." if several else ""
    waits = {p: run.priorities for p, run in runs.items() if run.priorities is not None}
    if waits:
        yield _waits(study, setting, waits, note)
    for policy, run in runs.items():
        if run.tenant_use is not None and run.tenant_use.count:
            yield _use(study, setting, policy, run.tenant_use)


def _waits(study: Study, setting: Setting, waits: dict[str, Rows], note: str) -> Figure:
    values = sorted(
        {int(x) for rows in waits.values() for x in rows["priority"]}, key=lambda x: (x == 0, x)
    )
    series = []
    for policy, rows in waits.items():
        means = dict(zip(rows["priority"].astype(int), rows["queue_delay_mean_s"], strict=True))
        hours = np.array([means.get(value, 0.0) / HOUR for value in values])
        series.append(Series(policy, study.tone(policy), rounded(hours)))
    return Figure(
        name=named("waits-by-priority", setting.slug),
        kind=Kind.BARS,
        title="Queueing delay by priority",
        section="waiting",
        x=Axis("Priority, 1 is the highest"),
        y=Axis("Mean queueing delay", "h"),
        series=series,
        categories=[str(value) if value else "none" for value in values],
        setting=setting.index,
        source="priorities.parquet: queue_delay_mean_s",
        note=note,
    )


def _use(study: Study, setting: Setting, policy: str, rows: Rows) -> Figure:
    scale, unit = study.units[Quantity.TIME]
    names = np.array(rows.text["tenant"])
    ranked = sorted(
        dict.fromkeys(names.tolist()), key=lambda x: -rows["gpus_held_mean"][names == x].sum()
    )
    shown = [x for x in ranked if rows["entitled_gpus"][names == x][0] > 0][:_MOST]
    series = []
    for number, name in enumerate(shown):
        own = names == name
        share = 100.0 * rows["gpus_held_mean"][own] / rows["entitled_gpus"][own]
        series.append(
            Series(name, f"j{number}", rounded(share), rounded(rows["start_s"][own] / scale))
        )
    left = len(ranked) - len(shown)
    return Figure(
        name=named("tenants-use", setting.slug, study.policy_slug(policy)),
        kind=Kind.LINES,
        title=f"GPUs held by tenants, of those that they are entitled to \u00b7 {policy}",
        section="run",
        x=Axis("Time", unit),
        y=Axis("GPUs held / GPUs entitled to", "%"),
        series=series,
        setting=setting.index,
        policy=study.policies.index(policy),
        source="tenant_use.parquet: gpus_held_mean / entitled_gpus",
        note=f"Means of equal intervals. {f'{left} tenants are left out.' if left else ''}".strip(),
        step=True,
        apart=True,
    )
