"""A comparison as rows: one per metric and policy, for files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from artist.experiments.compare import Comparison
from artist.results import glossary
from artist.results.jct_parts import PARTS


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row per metric and policy, then the parts of the mean JCT, then the makespan's bound.

    `ratio`, `difference`, `low` and `high` are against the baseline, as in `ComparedValues`. They
    are empty for the baseline, and where there is no number.
    """
    baseline = comparison.policies[0]
    rows = []
    for metric in comparison.values[baseline]:
        for policy in comparison.policies:
            row = _row(policy, metric, _unit(metric), comparison.values[policy][metric])
            rows.append({**row, **_against(comparison, policy, metric)})
    for policy in comparison.policies:
        differences = comparison.differences_of_parts(policy)
        for part in PARTS:
            row = _row(policy, f"jct_mean_s: {part}", "s", comparison.parts[policy][part])
            rows.append({**row, "baseline": baseline, "difference": differences[part]})
    rows.append(_row("", "makespan_bound_s", "s", comparison.bound_s))
    return rows


def _unit(metric: str) -> str:
    term = glossary.find(metric)
    return term.unit if term else ""


def _row(policy: str, metric: str, unit: str, values: tuple[float, ...]) -> dict[str, Any]:
    spread = {"median": median(values), "min": min(values), "max": max(values)}
    return {
        "metric": metric,
        "unit": unit,
        "policy": policy,
        "mean": fmean(values),
        **{name: float(value) for name, value in spread.items()},
    }


def _against(comparison: Comparison, policy: str, metric: str) -> Mapping[str, Any]:
    if policy == comparison.policies[0]:
        return {}
    compared = comparison.differences[policy][metric]
    numbers = {
        "ratio": compared.ratio,
        "difference": compared.difference,
        "low": compared.low,
        "high": compared.high,
        "p_value": compared.p_value,
    }
    return {
        "baseline": comparison.policies[0],
        **{name: None if math.isnan(value) else value for name, value in numbers.items()},
        "verdict": compared.verdict,
        "replicates": compared.replicates,
        "enough": compared.enough,
    }
