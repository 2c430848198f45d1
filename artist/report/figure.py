"""The description of a figure, independent of the program that draws it.

The page's script draws figures on the page, matplotlib draws them for papers. Values are in the
unit of their axis. `source` names the file and the columns that the values come from.
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
    """The quantity along an axis. `time_log`: seconds on a logarithmic scale."""

    label: str
    unit: str = ""
    time_log: bool = False
    top: float | None = None
    """The end of the axis; None: the largest value."""

    @property
    def title(self) -> str:
        """Label and unit."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


@dataclass(frozen=True, slots=True)
class Series:
    """One curve or one colour of bars. A NaN is a gap.

    For bars and stacks, `y` has a value per category, and `low` and `high` bound its interval.
    For rows, `y` has a value per bin, and `x` holds the edges of the bins: one more than `y`.
    `parts` are what `y` consists of, one sequence per name in `Figure.parts` but the last: the last
    part is the rest of `y`.
    """

    name: str
    tone: str
    """The name of its colour: `s0` ... for policies, `l0` ... for levels, `o0` ... for an order."""
    y: Sequence[float]
    x: Sequence[float] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    parts: Sequence[Sequence[float]] = ()


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
    """The figure is shown for this setting only; None: for all."""
    policy: int | None = None
    """The figure is shown for this policy only; None: for all."""
    note: str = ""
    step: bool = False
    """For lines: a value holds until the next point."""
    parts: Sequence[str] = ()
    """For rows: the parts of each series, from the axis upwards."""
    broad: bool = False
    """For lines: draw thick lines, because short pieces of a thin line cannot be seen."""


def time_unit(largest_s: float) -> tuple[float, str]:
    """A unit that suits times up to `largest_s`: its length in seconds, and its name."""
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
    """The values with five significant digits: more cannot be seen and would enlarge the page."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def thinned(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most `most` evenly spaced indices of `count`, first and last included."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.int64))
