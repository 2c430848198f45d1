"""A comparison for programs: everything that tables and sentences say, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from artist.experiments.comparison.comparison_result import Comparison

METHOD = "Student's t of paired log ratios (differences where a value is 0), Holm over the family"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for JSON: numbers that are not finite are null."""
    from artist.report.answer import answer
    from artist.results.statistics.holm import adjusted_p_values

    keys = [
        (variant, metric) for variant in comparison.differences for metric in comparison.metrics
    ]
    every = [comparison.differences[variant][metric] for variant, metric in keys]
    adjusted = dict(zip(keys, adjusted_p_values(every), strict=True))
    return {
        "answer": answer(comparison),
        "setting": comparison.setting,
        "method": METHOD,
        "level": comparison.level,
        "design": comparison.design,
        "equivalence": comparison.equivalence,
        "variants": list(comparison.variants),
        "settings": {label: dict(point) for label, point in comparison.points.items()},
        "gpus": dict(comparison.gpus),
        "replicates_asked": comparison.replicates_asked,
        "replicates": [{"seed": s, "permutation": p} for s, p in comparison.replicates],
        "until": comparison.until,
        "widest": _finite(comparison.widest._asdict()),
        "missing": comparison.missing,
        "judged_together": comparison.family,
        "values": {policy: dict(metrics) for policy, metrics in comparison.values.items()},
        "differences": {
            policy: [
                {"metric": metric}
                | _finite(asdict(one))
                | {"adjusted_p_value": adjusted[policy, metric]}
                for metric, one in metrics.items()
            ]
            for policy, metrics in comparison.differences.items()
        },
        "jct_mean_parts_s": {policy: dict(parts) for policy, parts in comparison.parts.items()},
        "catastrophes": [one._asdict() for one in comparison.catastrophes()],
        "makespan_bound_s": {label: list(bound) for label, bound in comparison.bounds_s.items()},
    }


def _finite(record: dict[str, Any]) -> dict[str, Any]:
    """The record for JSON, which has no NaN and no infinity: both become null."""
    return {
        key: None if isinstance(value, float) and not isfinite(value) else value
        for key, value in record.items()
    }
