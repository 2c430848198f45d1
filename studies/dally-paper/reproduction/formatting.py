"""Numbers, intervals and Markdown tables, as the pages show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

from artist.results.statistics.compare_values import IDENTICAL, LESS, MORE, ComparedValues


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
    return f"x {value + 1:,.0f}" if value >= 9 else f"{100 * value:+.0f} %"


def interval(compared: ComparedValues) -> str:
    """A difference with its 95 % interval. Bold: surely less or more.

    It is relative. Where a value is zero there is no ratio, and it is in seconds.
    """
    if compared.verdict == IDENTICAL:
        return IDENTICAL
    if math.isnan(compared.ratio):
        text, *words = (_signed(x) for x in (compared.difference, compared.low, compared.high))
        text += " s"
    else:
        text = percent(relative(compared))
        words = [percent(end - 1).removesuffix(" %") for end in (compared.low, compared.high)]
    if math.isnan(compared.low):
        return text
    text = f"{text} [{words[0]} .. {words[1]}]"
    return f"**{text}**" if compared.verdict in (LESS, MORE) else text


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}"


def relative(compared: ComparedValues) -> float:
    """A relative difference: -0.1 is ten percent less. NaN: there is no ratio."""
    return compared.ratio - 1


def from_to(compared: Iterable[ComparedValues]) -> str:
    """The smallest and the largest of some relative differences.

    Raises:
        ValueError: one of them has no ratio, because a value is zero.
    """
    ranked = sorted(relative(one) for one in compared)
    if any(math.isnan(value) for value in ranked):
        raise ValueError("a value is zero, so there is no ratio; quote another metric")
    low, high = percent(ranked[0]), percent(ranked[-1])
    if low == high:
        return low
    unit = " %" if high.endswith(" %") else ""
    return f"{low.removesuffix(unit)} to {high}"


def spread(values: Sequence[float]) -> str:
    """Median, smallest and largest of seconds."""
    middle, low, high = median(values), min(values), max(values)
    if low == high:
        return seconds(middle)
    return f"{seconds(middle)} [{seconds(low)} .. {seconds(high)}]"


def share(value: float) -> str:
    """A share as a percentage."""
    return f"{100 * value:.0f} %"
