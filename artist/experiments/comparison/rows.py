"""A comparison as rows for files: one per metric and variant, or one per replicate of these."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.metrics import BOUND
from artist.results.terms import glossary

_PART = "jct_mean_s: "


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row per metric and variant, then the parts of the mean JCT, then the makespan's bound.

    The column of the variants is named as the setting that varies, such as `policy`. Where variants
    have different bounds, each has its row.

    `ratio`, `difference`, `low` and `high` are against the baseline, as in `ComparedValues`. They
    are empty for the baseline, and where there is no number.
    """
    baseline = comparison.variants[0]
    rows = []
    for metric in comparison.values[baseline]:
        for variant in comparison.variants:
            term = glossary.find(metric)
            values = comparison.values[variant][metric]
            row = _row(comparison, variant, metric, term.unit if term else "", values)
            rows.append({**row, **_against(comparison, variant, metric)})
    for variant in comparison.variants:
        differences = comparison.differences_of_parts(variant)
        for part, values in comparison.parts[variant].items():
            row = _row(comparison, variant, f"{_PART}{part}", "s", values)
            rows.append({**row, "baseline": baseline, "difference": differences[part]})
    bounds = {"": comparison.bound_s} if comparison.bound_s else comparison.bounds_s
    rows += [_row(comparison, variant, BOUND, "s", bound) for variant, bound in bounds.items()]
    return rows


def replicate_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """As `comparison_rows`, with a row for each `replicate`, from 1 on: its value, and whose it is.

    `seed` and `permutation` make the replicate; equal ones of two variants are a pair.
    """
    return [
        {
            **{key: row[key] for key in ("metric", "unit", comparison.setting)},
            "replicate": number,
            "seed": seed,
            "permutation": permutation,
            "value": value,
            **row,
        }
        for row in comparison_rows(comparison)
        for number, ((seed, permutation), value) in enumerate(
            zip(comparison.replicates, _values(comparison, row), strict=True), start=1
        )
    ]


def _values(comparison: Comparison, row: Mapping[str, Any]) -> tuple[float, ...]:
    """The values of which a row holds the mean, one per replicate."""
    variant, metric = row[comparison.setting], row["metric"]
    if metric == BOUND and not variant:
        return comparison.bound_s
    part = metric.removeprefix(_PART)
    by_variant = comparison.parts if part != metric else comparison.values
    if metric == BOUND and metric not in comparison.values[comparison.variants[0]]:
        return comparison.bounds_s[variant]
    return by_variant[variant][part]


def _row(
    comparison: Comparison, variant: str, metric: str, unit: str, values: tuple[float, ...]
) -> dict[str, Any]:
    return {
        "metric": metric,
        "unit": unit,
        comparison.setting: variant,
        "mean": fmean(values),
        "median": float(median(values)),
        "min": float(min(values)),
        "max": float(max(values)),
    }


def _against(comparison: Comparison, variant: str, metric: str) -> Mapping[str, Any]:
    if variant == comparison.variants[0]:
        return {}
    compared = comparison.differences[variant][metric]
    numbers = {
        "ratio": compared.ratio,
        "difference": compared.difference,
        "low": compared.low,
        "high": compared.high,
        "p_value": compared.p_value,
    }
    return {
        "baseline": comparison.variants[0],
        **{name: None if math.isnan(value) else value for name, value in numbers.items()},
        "verdict": compared.verdict,
        "replicates": compared.replicates,
        "enough": compared.enough,
    }
