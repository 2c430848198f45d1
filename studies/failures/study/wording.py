"""The page: the values of its tables; `page.md.j2` has the words."""

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
    return rendered(HERE, pairs=list(zip(cases, rows, strict=True)), hours=_hours)


def off(row: Values) -> float:
    """How far the simulated mean time to failure is from 1 / (n r), in standard errors."""
    return float(abs(row["mttf_h"] / row["expected_mttf_h"] - 1) * math.sqrt(row["failures"]))


def _hours(hours: float) -> str:
    return f"{hours / 24:.1f} days" if hours > 100 else f"{hours:.3g} h"
