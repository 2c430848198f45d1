"""Rare catastrophes: replicates far off the rest, and what few replicates cannot show.

A policy that is 5 % faster in most runs, and takes three times as long in 15 % of them, is slower
on average. But 0.85^5 = 44 % of samples of five have no such run. They all show that it is faster,
significantly, since nothing else varies much. No test of the sample can reveal this. So artist says
two things.

- A catastrophe that did occur makes the interval wide, and is named: `far_off`.
- One that did not occur may still be there, in up to `unseen` of the runs:

    (1 - share)^n = 1 - level,  share = 1 - (1 - level)^(1 / n)

| n | 5 | 8 | 20 | 60 |
|---|---|---|---|---|
| share, level .95 | .45 | .31 | .14 | .05 |
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

FAR = 1.5
"""A catastrophe makes a value at least this many times the median. Orders of machines alone move a
makespan by a third (studies/dally-paper/tables.md, machine order)."""

DEVIATIONS = 6.0
"""How many robust deviations off the median it is, at least. So at most 3 % of samples of 5 to 20
log-normal values with a deviation of 30 % have one, and none with a deviation of 10 %
(`tests/results/test_catastrophes.py`)."""

_PER_MAD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


class FarOff(NamedTuple):
    """The replicate that lies farthest above the others."""

    at: int
    """Its position."""
    factor: float
    """Its value over the median."""


def far_off(values: Sequence[float]) -> FarOff | None:
    """The largest value, if it is far off the rest; None if not, or if a value is not positive.

    The median absolute deviation is that of logarithms, since times differ by factors.
    """
    if len(values) < 3 or min(values) <= 0:
        return None
    logs = [math.log(value) for value in values]
    middle = median(logs)
    index = max(range(len(logs)), key=logs.__getitem__)
    deviation = _PER_MAD * median(abs(log - middle) for log in logs)
    distance = logs[index] - middle
    if distance <= max(math.log(FAR), DEVIATIONS * deviation):
        return None
    return FarOff(index, math.exp(distance))


def unseen(count: int) -> float:
    """The largest share of runs in which something may happen that `count` runs did not show, at
    95 % confidence.
    """
    return float(1 - (1 - 0.95) ** (1 / count))
