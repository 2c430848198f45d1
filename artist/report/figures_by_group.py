"""Figures by group: completion times by model and tenant, waits by priority, tenants' use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from artist.report.curves import pool
from artist.report.figure import Figure, Series, described, rounded
from artist.report.figures_of_jobs import quantiles
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
from artist.report.reader import FileColumns
from artist.results.terms.number_text import HOUR
from artist.units import counted

_MOST = 10
"""Models or tenants of a figure, those with most jobs."""


def by_group(study: Study, setting: Setting) -> Iterator[Figure]:
    """A figure by model and one by tenant, each if there are several."""
    for key, column in (("jct-by-model", "model"), ("jct-by-tenant", "tenant")):
        names = {
            policy: [name for run in runs.values() for name in run.finished.text.get(column, ())]
            for policy, runs in setting.runs.items()
        }
        if all(len(set(of_policy)) > 1 for of_policy in names.values()):
            yield _ranges(study, setting, key, names)


def _ranges(study: Study, setting: Setting, key: str, names: dict[str, list[str]]) -> Figure:
    """The median, and the 10th and 90th percentile, of each group, the largest group first."""
    sizes = Counter(name for of_policy in names.values() for name in of_policy)
    groups = sorted(sizes, key=lambda name: (-sizes[name], name))
    shown = groups[:_MOST]
    index = {name: float(at) for at, name in enumerate(groups)}
    classes = {p: np.array([index[name] for name in of_policy]) for p, of_policy in names.items()}
    scale = study.units[Quantity.JCT].seconds
    present = [index[name] for name in shown]
    series = [
        quantiles(policy, study.tone(policy), values / scale, classes[policy], present)
        for policy, values in pool(setting, "jct_s").items()
    ]
    left = len(groups) - len(shown)
    return described(
        key, study, setting, series,
        categories=[_name(name, [names[policy].count(name) for policy in names]) for name in shown],
        left_out=f"Those with most jobs; {left} are left out." if left else "",
    )  # fmt: skip


def _name(name: str, counts: list[int]) -> str:
    """The group, and its number of jobs if that is the same under all policies."""
    label = name or "none"
    return f"{label} · {counted(counts[0], 'job')}" if len(set(counts)) == 1 else label


_MOST_TENANTS = 6
"""Tenants of a figure, those that used most."""


def of_tenants(study: Study, setting: Setting) -> Iterator[Figure]:
    """How long jobs of each priority wait, and how much of their entitlement tenants use."""
    runs = setting.firsts
    waits = {p: run.priorities for p, run in runs.items() if run.priorities is not None}
    if waits:
        yield _waits(study, setting, waits)
    for policy, run in runs.items():
        if run.tenant_use is not None and run.tenant_use.count:
            yield _use(study, setting, policy, run.tenant_use)


def _waits(study: Study, setting: Setting, waits: dict[str, FileColumns]) -> Figure:
    """Mean waits by priority; jobs without one come last."""
    given = {int(x) for rows in waits.values() for x in rows["priority"]}
    priorities = sorted(given, key=lambda x: (x == 0, x))
    series = []
    for policy, rows in waits.items():
        means = dict(zip(rows["priority"].astype(int), rows["queue_delay_mean_s"], strict=True))
        hours = np.array([means.get(value, 0.0) / HOUR for value in priorities])
        hours = np.nan_to_num(hours)  # an empty bar: all jobs of the priority were cancelled
        series.append(Series(policy, study.tone(policy), rounded(hours)))
    categories = [str(value) if value else "none" for value in priorities]
    return described("waits-by-priority", study, setting, series, categories=categories)


def _use(study: Study, setting: Setting, policy: str, rows: FileColumns) -> Figure:
    """What tenants hold of what they are entitled to, over time."""
    scale = study.units[Quantity.TIME].seconds
    names = np.array(rows.text["tenant"])
    own = {name: names == name for name in dict.fromkeys(names.tolist())}
    ranked = sorted(own, key=lambda name: -rows["gpus_held_mean"][own[name]].sum())
    shown = [name for name in ranked if rows["entitled_gpus"][own[name]][0] > 0][:_MOST_TENANTS]
    series = []
    for number, name in enumerate(shown):
        share = 100.0 * rows["gpus_held_mean"][own[name]] / rows["entitled_gpus"][own[name]]
        start = rows["start_s"][own[name]] / scale
        series.append(Series(name, f"j{number}", rounded(share), rounded(start)))
    left = len(ranked) - len(shown)
    return described(
        "tenants-use", study, setting, series, policy=policy,
        left_out=f"{left} tenants are left out." if left else "",
    )  # fmt: skip
