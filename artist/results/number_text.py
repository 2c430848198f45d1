"""Numbers as the page and the sentences of verdicts write them."""

from __future__ import annotations


def plain(value: float) -> str:
    """A number as the tables show it, e.g. `1,234` or `0.125`."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 else f"{value:.3g}"


def short(value: float) -> str:
    """A number with three significant digits, e.g. `3.5` or `1,230`."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
