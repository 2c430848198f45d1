"""Numbers as the page, the terminal and the sentences of verdicts write them."""

from __future__ import annotations

from collections.abc import Sequence


def plain(value: float) -> str:
    """A number as the tables show it, e.g. `1,234` or `0.125`."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.3g}"


def short(value: float) -> str:
    """A number with three significant digits, e.g. `3.5` or `1,230`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in percent without the sign: whole numbers from 10 on, two digits below."""
    return f"{100 * share:,.0f}" if share >= 0.0995 else f"{100 * share:.2g}"


def counted(count: int, noun: str) -> str:
    """`1 run`, `1,200 runs`. `noun` is one whose plural ends in s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The names as a part of a sentence: `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
