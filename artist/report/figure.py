"""The description of a figure, independent of the program that draws it.

The page's script draws figures on the page, matplotlib draws them for papers. Values are in the
unit of their axis. `source` names the file and the columns that the values come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from artist.report.reader import Numbers

HOUR = 3600.0
DAY = 24 * HOUR

MOST_TOGETHER = 4
"""More lines than these hide each other, so each gets a panel of its own."""


MARKED_LOSS = 5.0
"""Heat marks cells whose jobs lose at least so much of their running time, in percent. The page's
script has the same number."""


class Kind(StrEnum):
    """How a figure is drawn."""

    BARS = "bars"  # one bar per series and category
    STACK = "stack"  # one bar per category, its parts are the series
    LINES = "lines"  # a curve per series
    ROWS = "rows"  # one small plot per series above a common axis, filled steps
    RANGES = "ranges"  # a dot and a line from low to high per series and category
    WATERFALL = "waterfall"  # one small plot per series: steps from 0 to the last category
    HEAT = "heat"  # a row of cells per series, coloured by value
    CIRCLES = "circles"  # a ring per series, in two circles side by side


@dataclass(frozen=True, slots=True)
class Axis:
    """The quantity along an axis. `log`: on a logarithmic scale."""

    label: str
    unit: str = ""
    log: bool = False
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
    For ranges, `y` is the dot, and `low` and `high` are the ends of the line.
    For waterfalls, `y` has the steps, then their sum.
    For rows, `y` has a value per bin, and `x` holds the edges of the bins: one more than `y`.
    `parts` are what `y` consists of, one sequence per name in `Figure.parts` but the last: the last
    part is the rest of `y`.
    For heat, `y` and `x` are as for rows. `parts` are two more values per cell: how many jobs there
    are at most, and what they lose of their running time, in percent.
    For circles, `y` and `x` are as for rows, around the first circle. `parts` are the values around
    the second one, and iteration, Up time and shift in the unit of x. `Figure.parts` names the
    circles, and what all series exceed `Figure.y.top` by is marked.
    """

    name: str
    tone: str
    """The name of its colour: `s0` ... for policies, `l0` ... for levels, `j0` ... for jobs,
    `o0` ... for an order. Heat has a scale of its own."""
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
    wide: bool = False
    """The figure needs the whole width of the page, which draws bars in many groups wide anyway."""
    apart: bool = False
    """For lines: they hide each other, so each gets a panel, however few they are."""

    @property
    def panels(self) -> bool:
        """Whether each line gets a panel of its own, with the others in grey behind it."""
        count = len(self.series)
        return self.kind is Kind.LINES and (count > MOST_TOGETHER or (self.apart and count > 1))


def named(measure: str, *groups: str) -> str:
    """The name of a figure: what it shows, then of which setting and policy.

    The parts have no underscore, so no two figures get one name.
    """
    return "_".join((measure, *groups))


def time_unit(largest_s: float) -> tuple[float, str]:
    """A unit that suits times up to `largest_s`: its length in seconds, and its name."""
    if largest_s >= 3 * DAY:
        return DAY, "d"
    if largest_s >= 3 * HOUR:
        return HOUR, "h"
    if largest_s >= 180:
        return 60.0, "min"
    return 1.0, "s"


def largest(values: Sequence[Numbers]) -> float:
    """The largest of all values, 0 if there are none."""
    return max((float(v.max()) for v in values if len(v)), default=0.0)


def rounded(values: Numbers) -> list[float]:
    """The values with five significant digits: more cannot be seen and would enlarge the page."""
    return [float(f"{value:.5g}") for value in values.tolist()]
