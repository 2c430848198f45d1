"""Fitting the scales of one model to its measured communication shares.

With one measurement the compute scale s solves share(s) = measured. The exact share
falls strictly with s (compute grows, what it leaves exposed does not), from infinity to
0, so every measured share above 0 has one solution, found by bisection. What whole
microseconds then leave is taken up by the bytes, half a percent at most. With two or more
measurements the compute and the communication scale minimise the sum of squared

    log(share(s, c) / measured)

over all rows, by a pattern search. Both work on exact shares; whole microseconds
then decide which of the scales next to the solution a run reproduces best.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artist.calibrate.shares import Scales, ShareModel
from artist.errors import TraceError
from artist.estimates.calibration import FitPoint, ModelCalibration

GOOD_ENOUGH = 1e-3
"""Relative error at which the search among neighbouring scales stops."""

TRIM_ABOVE = 5e-3
"""Relative error above which communication is trimmed as well."""

_DIGITS = 8
# Neighbours of the solution: up to so much compute per iteration, in so many steps.
_REACH_US = 5.0
_STEPS = 60
_LARGEST_LOG = math.log(1e9)


@dataclass(frozen=True, slots=True)
class Target:
    """A measured share and the simulation of the same placement."""

    placement: str
    share: float
    model: ShareModel


def fit(targets: Sequence[Target]) -> ModelCalibration:
    """The scales that reproduce the targets.

    Raises:
        TraceError: a measured share that no compute scale gives.
    """
    scales = _one(targets[0]) if len(targets) == 1 else _two(targets)
    best = _nearest(targets, scales)
    if len(targets) == 1:
        best = _trimmed(targets[0], best)
    points = tuple(_point(target, best) for target in targets)
    return ModelCalibration(compute_scale=best.compute, comm_scale=best.comm, fit=points)


def _one(target: Target) -> Scales:
    """Bisection in the logarithm of the compute scale."""

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


def _two(targets: Sequence[Target]) -> Scales:
    """Both scales, from the best start of a coarse grid over the communication scale."""

    def cost(point: tuple[float, float]) -> float:
        scales = Scales(math.exp(point[0]), math.exp(point[1]))
        return sum(
            math.log(max(target.model.exact(scales), 1e-300) / target.share) ** 2
            for target in targets
        )

    start = math.log(_one(targets[0]).compute)
    grid = [(start + step, step) for step in (-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0)]
    found = pattern_search(cost, min(grid, key=cost))
    return Scales(math.exp(found[0]), math.exp(found[1]))


def pattern_search(
    cost: Callable[[tuple[float, float]], float], start: tuple[float, float]
) -> tuple[float, float]:
    """A minimum near `start`: eight directions, the step halved where none is better."""
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


def _nearest(targets: Sequence[Target], scales: Scales) -> Scales:
    """The solution or a neighbour: which of them whole microseconds reproduce best."""

    def worst(candidate: Scales) -> float:
        ratios = (target.model.rounded(candidate) / target.share for target in targets)
        return max(abs(ratio - 1) for ratio in ratios)

    total_us = targets[0].model.compute_us(scales)
    best, least = scales, math.inf
    for step in sorted(range(-_STEPS, _STEPS + 1), key=abs):
        change = step / _STEPS * min(0.02, _REACH_US / total_us)
        candidate = Scales(_digits(scales.compute * (1 + change)), _digits(scales.comm))
        error = worst(candidate)
        if error < least:
            best, least = candidate, error
        if least <= GOOD_ENOUGH:
            break
    return best


def _trimmed(target: Target, scales: Scales) -> Scales:
    """Up to half a percent more or less communication, where whole microseconds miss the share.

    An iteration of 435 us with 30 us exposed has no neighbour within 1 %: its share moves
    in steps of 3 %. Bytes move it finely. Secant steps on the communication scale.
    """

    def excess(comm: float) -> float:
        return target.model.rounded(Scales(scales.compute, comm)) / target.share - 1

    last, comm = scales.comm, scales.comm * 1.001
    last_excess = excess(last)
    if abs(last_excess) <= TRIM_ABOVE:
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
    """What is written to the file is what was tried."""
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
