"""Corrects forecasts by the errors of earlier forecasts of the same log.

Futures show how run times and arrivals vary. They do not show how a cluster differs from its model:
another order, a night reserved for wide jobs. Earlier forecasts do. So the low end, the median and
the high end of an interval are moved by the 10th, 50th and 90th percentile of their earlier errors,
as shares of a scale (split conformal prediction; Romano, Patterson and Candès, *Conformalized
quantile regression*, 2019). The scale is the median plus a cycle plus the mean time until the
earlier starts: without the last, a job that is expected at once but starts hours later would be
hundreds of scales off, and push the ends of all others as far. Only what the log knew by then
counts: of a job that has not started, only that it starts later is known (the product-limit
estimator; Kaplan and Meier, 1958).

Intervals move only if earlier ones held fewer starts than they should, by two standard errors over
moments, since the jobs of a queue start late together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from artist.results.statistics.paired_input import Floats

HELD = 0.8
LEAST_MOMENTS = 5
"""Of fewer moments, no standard error."""

_PERCENTILES = (0.1, 0.5, 0.9)

Interval: TypeAlias = tuple[float, float, float]
"""Low end, median and high end; infinite where a job does not start before the horizon."""


@dataclass(frozen=True)
class Earlier:
    """An interval that was forecast for a start. Times count from the moment `at_s` on."""

    at_s: float
    interval_s: Interval
    horizon_s: float
    cycle_s: float
    start_s: float
    """Infinite if the log does not have it."""
    gone_s: float = math.inf
    """When it was cancelled instead."""

    def seen_s(self, at_s: float) -> float:
        """Its start, or the latest time until which a moment shows that it had not started."""
        return min(self.start_s, self.gone_s, at_s - self.at_s, self.horizon_s)


class Margins:
    """What forecasts before a moment (Unix time) move an interval by: shares of its scale."""

    def __init__(self, earlier: Sequence[Earlier], at_s: float) -> None:
        self.shares: Interval = (0.0, 0.0, 0.0)
        self._typical_s = 0.0  # the mean of the starts that came
        before = [x for x in earlier if x.at_s < at_s]
        if not _held_too_few(before, at_s):
            return
        seen_s = [x.seen_s(at_s) for x in before]
        known = np.array([x.start_s <= y for x, y in zip(before, seen_s, strict=True)])
        self._typical_s = float(np.mean(np.array(seen_s)[known])) if known.any() else 0.0
        off = np.array(
            [
                [
                    (y - end) / self._scale_s(x.interval_s, x.horizon_s, x.cycle_s)
                    for end in _within(x.interval_s, x.horizon_s)
                ]
                for x, y in zip(before, seen_s, strict=True)
            ]
        )
        low, median, high = (
            _percentile(off[:, nth], known, share) for nth, share in enumerate(_PERCENTILES)
        )
        self.shares = low, median, high

    def moved(self, interval_s: Interval, horizon_s: float, cycle_s: float) -> Interval:
        """An interval, moved."""
        if not any(self.shares):
            return interval_s
        scale_s = self._scale_s(interval_s, horizon_s, cycle_s)
        ends = zip(_within(interval_s, horizon_s), self.shares, strict=True)
        low, median, high = sorted(max(0.0, end + share * scale_s) for end, share in ends)
        return _beyond(low, horizon_s), _beyond(median, horizon_s), _beyond(high, horizon_s)

    def _scale_s(self, interval_s: Interval, horizon_s: float, cycle_s: float) -> float:
        return min(interval_s[1], horizon_s) + cycle_s + self._typical_s


def _held_too_few(before: Sequence[Earlier], at_s: float) -> bool:
    """Whether earlier intervals surely held less than the share `HELD` of starts."""
    held: dict[float, list[bool]] = {}
    for one in before:
        low, _, high = one.interval_s
        seen_s = one.seen_s(at_s)
        if one.start_s <= seen_s or high < seen_s:
            held.setdefault(one.at_s, []).append(low <= one.start_s <= high)
    if len(held) < LEAST_MOMENTS:
        return False
    share, error = share_and_error(list(held.values()))
    return share + 2 * error < HELD


def share_and_error(held: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """The share of intervals that held, by moment, and its standard error.

    The error is that of a ratio whose clusters are the moments (Cochran, *Sampling Techniques*,
    1977, section 2.11).
    """
    counts = np.array([len(x) for x in held])
    inside = np.array([sum(x) for x in held])
    share = float(inside.sum() / counts.sum())
    spread = float(np.square(inside - share * counts).sum())
    moments = len(held)
    return share, math.sqrt(spread * moments / max(1, moments - 1)) / float(counts.sum())


def _within(interval_s: Interval, horizon_s: float) -> Interval:
    low, median, high = interval_s
    return min(low, horizon_s), min(median, horizon_s), min(high, horizon_s)


def _beyond(time_s: float, horizon_s: float) -> float:
    return time_s if time_s < horizon_s else math.inf


def _percentile(values: Floats, known: np.ndarray, share: float) -> float:
    """A percentile of values, some of which are only lower bounds (not `known`)."""
    order = np.lexsort((~known, values))
    at_risk = np.arange(len(values), 0, -1)
    left = np.cumprod(1 - known[order] / at_risk)
    first = int(np.searchsorted(-left, -(1 - share) - 1e-9))
    return float(values[order][first]) if first < len(values) else math.inf
