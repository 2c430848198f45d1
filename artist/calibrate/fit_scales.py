"""Fits the numbers of one model to its measured communication shares.

The compute scale s multiplies compute times, the communication scale c multiplies bytes. The
constant share k is exposed on every placement of more than one GPU:

    share(s, c, k) = k + exposed communication / compute of the scaled iteration

One measurement determines the compute scale: s solves share(s, 1, 0) = measured. The exact share
falls strictly with s, from infinity to 0: more compute hides more communication, and compute is the
denominator of the share. So every measured share above 0 has exactly one solution. Bisection finds
it.

Two or more measurements determine two numbers, s > 0 and a second one. They minimise the sum, over
all rows, of

    log(share(s, c, k) / measured)^2

The second number is the constant, k >= 0 with c = 1, if that meets every row within `MET_WITHIN`.
Otherwise the communication scale, c > 0 with k = 0, is fitted too, and the pair with the smaller
sum is taken. The constant comes first because bytes are known from the layer table, and the work
around a collective is not. It is considered only if the rows distinguish it from a slow network: in
one of them, the scaled iteration itself gives at least `LEAST_SIMULATED` of the share. Rows that
are all alike cannot determine both a compute scale and a constant.

All methods use the exact share. A run computes in whole microseconds, so its share differs a
little. Therefore scales near the solution are tried, and the one whose run comes closest is taken.
With one measurement, c then absorbs the remaining error; it changes by at most 0.5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from artist.calibrate.communication_shares import Scales, ShareModel
from artist.errors import TraceError
from artist.estimates.calibration import FitPoint, ModelCalibration

GOOD_ENOUGH = 1e-3
"""The search among neighbouring scales stops at this relative error."""

ADJUST_ABOVE = 5e-3
"""Above this relative error the communication scale is changed as well."""

MET_WITHIN = 0.05
"""A fit that meets every row within this relative error is good enough. Our choice: step times of
one machine repeat within a few percent."""

LEAST_SIMULATED = 0.05
"""A constant counts as identified if the iteration gives at least this part of one row's share. Our
choice, as `MET_WITHIN`: less is within the scatter of the measurement."""

_DIGITS = 8
# Neighbours of the solution change the compute of an iteration by up to 5 us (and at most 2 %), in
# 60 steps each way.
_REACH_US = 5.0
_STEPS = 60
# Scales are searched between 1e-9 and 1e9.
_LARGEST_LOG = math.log(1e9)
# The search for a constant: compute scales of the grid, and steps of a golden-section search, each
# of which leaves 62 % of the interval.
_GRID = 50
_GOLDEN_STEPS = 40
# A smaller constant, less than a nanosecond per second, is a rounding error of the search.
_NO_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class Target:
    """A measured share, and the model of the simulated share on the same placement."""

    placement: str
    share: float
    model: ShareModel


def fit(targets: Sequence[Target]) -> ModelCalibration:
    """The numbers that reproduce the targets best.

    Raises:
        TraceError: no compute scale gives a measured share.
    """
    scales = _compute_scale(targets[0]) if len(targets) == 1 else _two_numbers(targets)
    best = _best_neighbour(targets, scales)
    if len(targets) == 1:
        best = _adjusted_bytes(targets[0], best)
    points = tuple(_point(target, best) for target in targets)
    return ModelCalibration(
        compute_scale=best.compute,
        comm_scale=best.comm,
        constant_share=best.constant,
        fit=points,
    )


def _compute_scale(target: Target) -> Scales:
    """The compute scale that gives the measured share, by bisection in its logarithm."""

    def excess(log_scale: float) -> float:
        return math.log(target.model.exact(Scales(math.exp(log_scale))) / target.share)

    low, high = -_LARGEST_LOG, _LARGEST_LOG
    if not excess(low) > 0 > excess(high):
        raise TraceError(
            f"placement {target.placement}: no compute scale gives a communication share of "
            f"{100 * target.share:g} %; check the measurement and its placement"
        )
    while high - low > 1e-12:
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return Scales(math.exp((low + high) / 2))


def _two_numbers(targets: Sequence[Target]) -> Scales:
    """The compute scale and a constant share, or else a communication scale."""
    constant = with_constant(targets)
    if not _identified(targets, constant):
        return _both_scales(targets)
    errors = (target.model.exact(constant) / target.share - 1 for target in targets)
    if max(abs(error) for error in errors) <= MET_WITHIN:
        return constant
    return min((constant, _both_scales(targets)), key=lambda one: _cost(targets, one))


def _cost(targets: Sequence[Target], scales: Scales) -> float:
    """Sum of the squared logarithms of simulated over measured shares."""
    return sum(
        math.log(max(target.model.exact(scales), 1e-300) / target.share) ** 2 for target in targets
    )


def _identified(targets: Sequence[Target], scales: Scales) -> bool:
    """Whether some target's share has both parts, so that the constant is not a slow network."""
    simulated = (1 - scales.constant / target.model.exact(scales) for target in targets)
    return max(simulated) >= LEAST_SIMULATED


def with_constant(targets: Sequence[Target]) -> Scales:
    """The compute scale and constant share with the least sum.

    Compute scales are searched from the one below which every share is too large up to the one
    above which no share has `LEAST_SIMULATED` of its own. Each is taken with its best constant.
    """
    solutions = [
        math.log(_compute_scale(replace(target, share=part * target.share)).compute)
        for target in targets
        for part in (1.0, LEAST_SIMULATED)
    ]
    shares = [target.share for target in targets]

    def scales_at(log_compute: float) -> Scales:
        compute = math.exp(log_compute)
        simulated = [target.model.exact(Scales(compute)) for target in targets]
        return Scales(compute, constant=_best_constant(simulated, shares))

    def cost(log_compute: float) -> float:
        return _cost(targets, scales_at(log_compute))

    low, width = min(solutions), (max(solutions) - min(solutions)) / _GRID
    costs = [cost(low + width * i) for i in range(_GRID + 1)]
    best = low + width * costs.index(min(costs))
    return scales_at(_minimum(cost, best - width, best + width))


def _best_constant(simulated: Sequence[float], measured: Sequence[float]) -> float:
    """The constant >= 0 with the least sum of log((simulated + constant) / measured)^2.

    As the constant grows, every term falls up to the least difference of measured and simulated
    share, and rises from the largest on. So the best constant is a difference or lies between two.
    """

    def cost(constant: float) -> float:
        pairs = zip(simulated, measured, strict=True)
        return sum(math.log((constant + ours) / theirs) ** 2 for ours, theirs in pairs)

    edges = sorted(max(t - s, 0.0) for s, t in zip(simulated, measured, strict=True))
    inside = [_minimum(cost, low, high) for low, high in pairwise(edges)]
    best = min([*edges, *inside], key=cost)
    return best if best > _NO_CONSTANT else 0.0


def _minimum(cost: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of `cost` between two points, by golden-section search."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = cost(left), cost(right)
    for _ in range(_GOLDEN_STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = cost(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = cost(right)
    return (low + high) / 2.0


def _both_scales(targets: Sequence[Target]) -> Scales:
    """Both scales, by a pattern search that starts at the best point of a coarse grid.

    At all grid points, compute scale over communication scale is the first target's solution.
    """

    def scales_at(point: tuple[float, float]) -> Scales:
        return Scales(math.exp(point[0]), math.exp(point[1]))

    def cost(point: tuple[float, float]) -> float:
        return _cost(targets, scales_at(point))

    start = math.log(_compute_scale(targets[0]).compute)
    grid = [(start + step, step) for step in (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)]
    return scales_at(pattern_search(cost, min(grid, key=cost)))


def pattern_search(
    cost: Callable[[tuple[float, float]], float], start: tuple[float, float]
) -> tuple[float, float]:
    """A minimum of `cost` near `start`.

    Each round tries one step in eight directions. If none is better, the step is halved.
    """
    best, lowest, step = start, cost(start), 0.5
    directions = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]
    while step > 1e-7:
        points = [(best[0] + step * x, best[1] + step * y) for x, y in directions]
        costs = [cost(point) for point in points]
        least = min(costs)
        if least < lowest:
            best, lowest = points[costs.index(least)], least
        else:
            step /= 2
    return best


def _best_neighbour(targets: Sequence[Target], scales: Scales) -> Scales:
    """The solution or one of its neighbours: the one whose run comes closest to the targets."""

    def worst(candidate: Scales) -> float:
        ratios = (target.model.rounded(candidate) / target.share for target in targets)
        return max(abs(ratio - 1) for ratio in ratios)

    total_us = targets[0].model.compute_us(scales)
    best, least = scales, math.inf
    # The nearest neighbours come first, so of equal errors the one nearest to the solution wins.
    for step in sorted(range(-_STEPS, _STEPS + 1), key=abs):
        change = step / _STEPS * min(0.02, _REACH_US / total_us)
        candidate = Scales(
            _digits(scales.compute * (1 + change)), _digits(scales.comm), _digits(scales.constant)
        )
        error = worst(candidate)
        if error < least:
            best, least = candidate, error
        if least <= GOOD_ENOUGH:
            break
    return best


def _adjusted_bytes(target: Target, scales: Scales) -> Scales:
    """Change the communication scale by at most 0.5 % if whole microseconds miss the share.

    Example: in an iteration of 435 us with 30 us exposed, one microsecond changes the share by 3 %.
    So no compute scale may come within 1 %, but bytes change the share in fine steps. The secant
    method solves for the communication scale.
    """

    def excess(comm: float) -> float:
        return target.model.rounded(Scales(scales.compute, comm)) / target.share - 1

    last, comm = scales.comm, scales.comm * 1.001
    last_excess = excess(last)
    if abs(last_excess) <= ADJUST_ABOVE:
        return scales
    best = (abs(last_excess), last)
    for _ in range(6):
        now_excess = excess(comm)
        best = min(best, (abs(now_excess), comm))
        if best[0] <= GOOD_ENOUGH or now_excess == last_excess:
            break
        step = now_excess * (comm - last) / (now_excess - last_excess)
        last, last_excess = comm, now_excess
        comm = _digits(min(max(comm - step, 0.995), 1.005))
    return Scales(scales.compute, best[1])


def _digits(scale: float) -> float:
    """The scale rounded as in the file, so that the file holds exactly what was tried."""
    return float(f"{scale:.{_DIGITS}g}")


def _point(target: Target, scales: Scales) -> FitPoint:
    simulated, exact = target.model.simulated(scales), target.model.exact(scales)
    return FitPoint(
        placement=target.placement,
        measured_percent=_digits(100 * target.share),
        simulated_percent=_digits(100 * simulated),
        error=_digits(abs(simulated / target.share - 1)),
        quantisation=_digits(abs(simulated / exact - 1)),
    )
