"""Numbers, intervals and Markdown tables, as the pages show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from artist.results.bootstrap import Difference


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. The first column is text, the others are numbers."""
    rules = ["---", *["---:" for _ in columns[1:]]]
    lines = [columns, rules, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def seconds(value: float) -> str:
    """Seconds with two or three significant digits, in thousands from 10,000."""
    # The limits are where rounding would show 10,000 and 100.0 k.
    if abs(value) < 9_999.5:
        return f"{value:,.0f}"
    return f"{float(f'{value / 1000:.3g}'):,.0f} k" if value >= 99_950 else f"{value / 1000:.1f} k"


def percent(value: float) -> str:
    """A relative difference in whole percent. From tenfold on it is shown as a factor: `x 11`."""
    if math.isinf(value):
        return "0 before"
    return f"x {value + 1:,.0f}" if value >= 9 else f"{100 * value:+.0f} %"


def interval(difference: Difference) -> str:
    """Mean and 95 % interval of a paired difference. Bold: the interval leaves out zero."""
    if difference.mean == difference.low == difference.high == 0:
        return "equal"
    if math.isnan(difference.low):
        return percent(difference.mean)
    low, high = (percent(end).removesuffix(" %") for end in (difference.low, difference.high))
    text = f"{percent(difference.mean)} [{low} .. {high}]"
    return text if difference.verdict == "within noise" else f"**{text}**"


def from_to(values: Iterable[float]) -> str:
    """The smallest and the largest of some relative differences."""
    ranked = sorted(values)
    low, high = percent(ranked[0]), percent(ranked[-1])
    if low == high:
        return low
    unit = " %" if high.endswith(" %") else ""
    return f"{low.removesuffix(unit)} to {high}"


def spread(values: Sequence[float]) -> str:
    """Median, smallest and largest of seconds."""
    ranked = sorted(values)
    middle = (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
    if ranked[0] == ranked[-1]:
        return seconds(middle)
    return f"{seconds(middle)} [{seconds(ranked[0])} .. {seconds(ranked[-1])}]"


def share(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.0f} %"
