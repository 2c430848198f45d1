"""The page: its tables from the rows, put into `page.md.j2`, which holds the other words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.common.page import rendered
from studies.failures.study.simulated import HERE, Values

SURE = 3.0
"""Standard errors of a count of failures, within which a simulated mean time agrees."""


def page_text(cases: Sequence[Mapping[str, Any]], rows: Sequence[Values]) -> str:
    """The page.

    Raises:
        jinja2.UndefinedError: the template asks for something that does not exist.
    """
    pairs = list(zip(cases, rows, strict=True))
    return rendered(
        HERE,
        rates=[_rate(row) for row in rows],
        times=[_time(case, row) for case, row in pairs],
        ratios=[_ratio(case, row) for case, row in pairs],
        inputs=[_inputs(case) for case in cases],
    )


def off(row: Values) -> float:
    """How far the simulated mean time to failure is from 1 / (n r), in standard errors."""
    return float(abs(row["mttf_h"] / row["expected_mttf_h"] - 1) * math.sqrt(row["failures"]))


def _rate(row: Values) -> str:
    published = 6.5 if row["case"].startswith("RSC-1") else 2.34
    rate, count = row["per_1000_node_days"], row["outages"]
    return f"| {row['case']} | {count:,.0f} | {rate:.2f} | {published:.2f} |"


def _time(case: Mapping[str, Any], row: Values) -> str:
    said = case["published"]
    published = f"{_hours(said['mttf_h'])} ({said['how']})" if "mttf_h" in said else "-"
    return (
        f"| {row['case']} | {row['failures']:,.0f} | {_hours(row['mttf_h'])} | "
        f"{_hours(row['expected_mttf_h'])} | {published} |"
    )


def _ratio(case: Mapping[str, Any], row: Values) -> str:
    said = case["published"]
    published = "-"
    if "ratio" in said:
        published = f"{said['ratio']:.2f} ({said['how']})"
    elif "ratio_above" in said:
        published = f"above {said['ratio_above']:.1f} ({said['how']})"
    return (
        f"| {row['case']} | {row['ratio']:.3f} | {row['daly_ratio']:.3f} | "
        f"{row['paper_ratio']:.3f} | {published} |"
    )


def _inputs(case: Mapping[str, Any]) -> str:
    run = case["run"]
    return (
        f"| {case['name']} | `{run['failures']}` | {run['jobs']} | {run['work_h']:,} | "
        f"{run['interval_s']:,} | {run['restart_s']} | {case['published']['words']} |"
    )


def _hours(hours: float) -> str:
    return f"{hours / 24:.1f} days" if hours > 100 else f"{hours:.3g} h"
