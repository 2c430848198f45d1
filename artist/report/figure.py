"""What a figure is, whoever draws it: the page's script or matplotlib.

Values are in the unit of their axis; `source` says which file and columns they come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from artist.report.reader import Numbers

HOUR = 3600.0
DAY = 24 * HOUR

TIME_TICKS = (
    (1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (HOUR, "1 h"),
    (10 * HOUR, "10 h"), (DAY, "1 d"), (10 * DAY, "10 d"), (100 * DAY, "100 d"),
    (1000 * DAY, "1000 d"),
)  # fmt: skip
"""Ticks of a logarithmic axis of seconds."""


class Kind(StrEnum):
    """How a figure is drawn."""

    BARS = "bars"  # one bar per series and category
    STACK = "stack"  # one bar per category, its parts are the series
    LINES = "lines"  # a curve per series
    ROWS = "rows"  # one small plot per series above a common axis, filled steps


@dataclass(frozen=True, slots=True)
class Axis:
    """What is shown along an axis. `time_log`: seconds on a logarithmic scale."""

    label: str
    unit: str = ""
    time_log: bool = False
    top: float | None = None
    """Where the axis ends, if not at the largest value."""

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Series:
    """One curve or one colour of bars; a NaN is a gap.

    For bars and stacks `y` has a value per category, `low` and `high` its interval. For
    rows `x` has one edge more than `y`.
    """

    name: str
    tone: str
    """`s0`, `s1` ...: a policy; `l0` ...: a level; `o0` ... `o5`: an ordered colour."""
    y: Sequence[float]
    x: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: `name` is unique and fit for a file name."""

    name: str
    kind: Kind
    title: str
    section: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    source: str
    categories: Sequence[str] = ()
    setting: int | None = None
    """Shown for this setting only."""
    policy: int | None = None
    """Shown for this policy (series of runs) only."""
    note: str = ""
    step: bool = False
    """Lines: a value holds until the next one."""
    broad: bool = False
    """Lines: short pieces that a thin line would hide."""


def time_unit(largest_s: float) -> tuple[float, str]:
    """Seconds per unit, and the unit's name, for times up to `largest_s`."""
    if largest_s >= 3 * DAY:
        return DAY, "days"
    if largest_s >= 3 * HOUR:
        return HOUR, "hours"
    if largest_s >= 180:
        return 60.0, "minutes"
    return 1.0, "s"


def largest(values: Sequence[Numbers]) -> float:
    """The largest of all values, 0 if there are none."""
    return max((float(v.max()) for v in values if len(v)), default=0.0)


def rounded(values: Numbers) -> list[float]:
    """Five significant digits: more cannot be seen, and the page stays light."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def thinned(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most `most` evenly spaced indices of `count`, first and last included."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
