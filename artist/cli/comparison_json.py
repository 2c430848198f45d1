"""A comparison for programs: everything that tables and sentences say, as JSON and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from artist.cli.costs_text import costs_json
from artist.cli.output import or_null
from artist.experiments.comparison.across import Across, World
from artist.experiments.comparison.assumptions import decides
from artist.experiments.comparison.comparison_result import Comparison
from artist.experiments.comparison.costs import PriceFile, priced
from artist.experiments.comparison.shown import replicate_rows
from artist.experiments.run_folder import COMPARISON, DECIDES
from artist.io.writing import write_whole
from artist.report.answer import answer
from artist.results.statistics.holm import adjusted_p_values
from artist.results.table_files import write_table

METHOD = "Student's t of paired log ratios (differences where a value is 0), Holm over the family"


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison for JSON: numbers that are not finite are null."""
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
    return {key: or_null(value) for key, value in record.items()}


def told(
    made: Across, worlds: Sequence[World], costs: PriceFile | None, *, assumptions: bool
) -> dict[str, Any]:
    """What `--format json` prints."""
    from artist.cli import across_text

    if not worlds:
        comparison = made.comparisons[""]
        if costs is None:
            return as_json(comparison)
        return {**as_json(comparison), "costs": costs_json(priced(comparison, costs))}
    return across_text.assumptions_json(made) if assumptions else across_text.across_json(made)


def keep(out: Path, told: Mapping[str, Any], made: Across, worlds: Sequence[World]) -> None:
    """Write what the comparison says beside its runs."""
    write_whole(out / COMPARISON, json.dumps(told, indent=2) + "\n")
    if worlds:
        write_whole(out / DECIDES, json.dumps(decides(made), indent=2) + "\n")


def write_rows(made: Across, file: Path, worlds: Sequence[World]) -> None:
    """Write a row per metric, variant and replicate; of several worlds, each with its name."""
    rows = [
        {"world": label, **row} if worlds else row
        for label, comparison in made.comparisons.items()
        for row in replicate_rows(comparison)
    ]
    write_table(rows, file)
