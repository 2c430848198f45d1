"""Completion times of the jobs of each model, and of each tenant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from artist.report.curves import pool
from artist.report.figure import Figure, described
from artist.report.figures_of_jobs import quantiles
from artist.report.grouping import Setting, Study
from artist.report.quantities import Quantity
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
