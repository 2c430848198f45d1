"""A comparison as rows: for files, and as Python shows it, in text, HTML and a frame."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from math import isnan, nan
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

from artist.results.statistics.compare_values import IDENTICAL
from artist.results.statistics.holm import undecided_together
from artist.results.terms import glossary
from artist.results.terms.chief_metrics import BOUND
from artist.results.terms.number_text import level_text, plain
from artist.units import counted

if TYPE_CHECKING:
    import pandas as pd

    from artist.experiments.comparison.comparison_result import Comparison


class ShownRow(NamedTuple):
    """A variant on one metric.

    `low` and `high` are the interval of `ratio`; without a ratio, of `difference`. It is the joint
    interval where the verdict is undecided only because many are judged together. `mean` is the
    geometric mean of the replicates, so `ratio` is a quotient of two means; it is the arithmetic
    mean where a value is zero. `difference` is this mean minus the baseline's.
    """

    metric: str
    variant: str
    mean: float
    unit: str
    difference: float
    ratio: float
    low: float
    high: float
    verdict: str


def shown_rows(comparison: Comparison) -> Iterator[ShownRow]:
    """A row for each metric and variant; the baseline has no difference."""
    for metric in comparison.metrics:
        term = glossary.find(metric)
        unit = term.unit if term else ""
        means = comparison.means(metric)
        first = means[comparison.variants[0]]
        for variant, mean in means.items():
            told = comparison.differences.get(variant, {}).get(metric)
            if told is None:
                yield ShownRow(metric, variant, mean, unit, nan, nan, nan, nan, "baseline")
                continue
            ends = told.low, told.high
            if undecided_together(told) and not isnan(told.joint_low):
                ends = told.joint_low, told.joint_high
            verdict = str(told.verdict)
            yield ShownRow(metric, variant, mean, unit, mean - first, told.ratio, *ends, verdict)


def comparison_frame(comparison: Comparison) -> pd.DataFrame:
    """The rows as a frame: texts are categories, numbers are floats."""
    import pandas as pd

    frame = pd.DataFrame(shown_rows(comparison), columns=ShownRow._fields)
    return frame.astype(dict.fromkeys(("metric", "variant", "unit", "verdict"), "category"))


def comparison_text(comparison: Comparison) -> str:
    """What was compared, and a line for each metric and variant."""
    cells = [_cells(row) for row in shown_rows(comparison)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )
    return "\n".join((f"<Comparison: {_title(comparison)}>", *lines))


def comparison_html(comparison: Comparison) -> str:
    """The same as an HTML table, without scripts or styles. Names are escaped."""
    rows = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>"
        for row in shown_rows(comparison)
    )
    names = ("metric", comparison.setting, "mean", "unit", _against(comparison), "verdict")
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    return (
        f"<table><caption>{html.escape(_title(comparison))}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    )


def _title(comparison: Comparison) -> str:
    replicates = counted(comparison.independent, comparison.kind.removesuffix("s"))
    return f"{counted(len(comparison.variants), 'variant')}, {replicates}, {_against(comparison)}"


def _against(comparison: Comparison) -> str:
    return f"against {comparison.variants[0]}, {level_text(comparison.level)} %"


def _cells(row: ShownRow) -> tuple[str, ...]:
    return row.metric, row.variant, plain(row.mean), row.unit, _interval(row), row.verdict


def _interval(row: ShownRow) -> str:
    """The difference with its interval: in percent, or in the metric's unit without a ratio."""
    if row.verdict in ("baseline", IDENTICAL):
        return ""
    numbers = [row.difference if isnan(row.ratio) else row.ratio, row.low, row.high]
    if isnan(row.ratio):
        texts = ["" if isnan(value) else f"{value:+.3g}" for value in numbers]
    else:
        texts = ["" if isnan(value) else f"{100 * (value - 1):+.1f}" for value in numbers]
        texts[0] += " %"
    return f"{texts[0]} [{texts[1]} .. {texts[2]}]" if texts[1] else texts[0]


_PART = "jct_mean_s: "


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """One row per metric and variant, then the parts of the mean JCT, then the makespan's bound.

    The column of the variants has the name of the setting that varies, such as `policy`. If
    variants have different bounds, each has its own row.

    `ratio`, `difference`, `low` and `high` are against the baseline, as in `ComparedValues`. They
    are empty for the baseline, and if there is no number.
    """
    baseline = comparison.variants[0]
    rows = []
    for metric in comparison.values[baseline]:
        for variant in comparison.variants:
            term = glossary.find(metric)
            values = comparison.values[variant][metric]
            row = _row(comparison, variant, metric, term.unit if term else "", values)
            rows.append({**row, **_difference(comparison, variant, metric)})
    for variant in comparison.variants:
        differences = comparison.differences_of_parts(variant)
        for part, values in comparison.parts[variant].items():
            row = _row(comparison, variant, f"{_PART}{part}", "s", values)
            rows.append({**row, "baseline": baseline, "difference": differences[part]})
    bounds = {"": comparison.bound_s} if comparison.bound_s else comparison.bounds_s
    rows += [_row(comparison, variant, BOUND, "s", bound) for variant, bound in bounds.items()]
    return rows


def replicate_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """As `comparison_rows`, but with a row for each `replicate`, from 1 on, and its value.

    `seed` and `permutation` define the replicate; two variants on the same one are a pair.
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
    """The values behind the mean of a row, one per replicate."""
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
    """The statistics of a variant's values of a metric."""
    return {
        "metric": metric,
        "unit": unit,
        comparison.setting: variant,
        "mean": fmean(values),
        "median": float(median(values)),
        "min": float(min(values)),
        "max": float(max(values)),
    }


def _difference(comparison: Comparison, variant: str, metric: str) -> Mapping[str, Any]:
    """How a variant differs from the first one; empty for that itself."""
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
        **{name: None if isnan(value) else value for name, value in numbers.items()},
        "verdict": compared.verdict,
        "replicates": compared.replicates,
        "enough": compared.enough,
    }
