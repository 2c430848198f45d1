"""The optimum at which an interior point method ends.

Optima are often not unique: jobs that gain more than the least can have more or less. An interior
point method ends between the vertices, and where depends on the method. So this is that of ECOS,
the solver of Gavel's authors, for their programs: the shares are mostly the same to 1e-4. Identical
jobs have equal shares, and these do not jump from vertex to vertex when a number changes a little.

    minimise c y, where G y + s = h, s in cones        y: shares and what else is sought; s: slack

With multipliers u in the cones, its conditions become homogeneous by tau and kappa:

    G' u + c tau = 0,    G y + s = h tau,    c y + h u + kappa = 0,    s u = 0,    kappa tau = 0

and y / tau is optimal. Each step is Newton's to where all products are sigma mu. A step to where
they are 0, tried first, says how much smaller they can get (sigma), and what it misses (Mehrotra).

Source: A. Domahidi, E. Chu, S. Boyd, *ECOS: an SOCP solver for embedded systems*, ECC 2013, and the
constants of its program.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.policies.gavel.cone_program import Block, ConeProgram, NewtonSystem
from artist.policies.gavel.cones import (
    Floats,
    Scaling,
    inside_by,
    ones,
    product,
    quotient,
    speed_out,
)

_CLOSE, _CLOSE_ENOUGH = 1e-6, 1e-5
"""By which part of its value an optimum may be better: where the search ends, and where it may end
if rounding allows no further progress. ECOS goes on to 1e-8."""

_INSIDE = 0.99
"""The part of the way to the nearest bound that a step goes (ECOS: GAMMA); also how far inside the
search starts."""

_LEAST_SIGMA, _LONGEST = 1e-4, 0.999
"""ECOS: SIGMAMIN, STEPMAX."""

_MOST_STEPS = 100


class _SearchPoint(NamedTuple):
    """Where the search is, or a change of it."""

    y: Floats
    s: Floats
    u: Floats
    tau: float
    kappa: float


def inner_max_min(gains: Floats, gpus: Floats, capacity: Floats, count: Floats) -> Floats | None:
    """[J, K] shares of which the least gain, sum over k of gains[i, k] x[i, k], is largest.

    Each job gains something on some kind, and every kind has GPUs. `count`: [J] how many equal jobs
    each stands for. None if rounding ends the search too early.
    """
    jobs, kinds = gains.shape
    own, limits = _time_limits(gains, 1)
    own[:, -1, :kinds], own[:, -1, kinds] = -gains, 1.0
    block = Block(own, limits, np.empty((jobs, 0, kinds + 1)), np.empty((jobs, 0)))
    shares, value = _shares(block, gains > 0, gpus, capacity, count, -1.0)
    return None if math.isnan(value) else shares


def inner_fairest(
    speeds: Floats, gpus: Floats, capacity: Floats, steps: Floats, waited: Floats
) -> Floats | None:
    """[J, K] shares of which the largest waited[i] + steps[i] / (sum over k of speeds x) is least.

    None if rounding ends the search too early, as where a job has waited thousands of times longer
    than others. As in the authors' program, each job has a variable q of at least 1 / speed: the
    triple (speed + q, speed - q, 2) is in the cone.
    """
    jobs, kinds = speeds.shape
    own, limits = _time_limits(speeds, 2)
    own[:, -1, kinds], own[:, -1, kinds + 1], limits[:, -1] = steps, -1.0, -waited
    cones, cone_limits = np.zeros((jobs, 3, kinds + 2)), np.zeros((jobs, 3))
    cones[:, :2, :kinds] = -speeds[:, None, :]
    cones[:, 0, kinds], cones[:, 1, kinds] = -1.0, 1.0
    cone_limits[:, 2] = 2.0
    block = Block(own, limits, cones, cone_limits)
    shares, value = _shares(block, speeds > 0, gpus, capacity, np.ones(jobs), 1.0)
    with np.errstate(divide="ignore"):
        reached = (waited + steps / (speeds * shares).sum(axis=1)).max()
    return shares if reached <= value * (1 + _CLOSE_ENOUGH) else None


def _time_limits(speeds: Floats, others: int) -> tuple[Floats, Floats]:
    """The rows of jobs that say: shares are at least 0, their sum is at most 1; the last is empty.

    `others`: how many variables there are besides shares.
    """
    jobs, kinds = speeds.shape
    each, runs = np.arange(kinds), speeds > 0
    own, limits = np.zeros((jobs, kinds + 2, kinds + others)), np.zeros((jobs, kinds + 2))
    own[:, each, each] = -1.0 * runs
    limits[:, :kinds] = ~runs  # a share that is not there: 0 <= 1
    own[:, kinds, :kinds], limits[:, kinds] = runs, 1.0
    return own, limits


def _shares(
    block: Block,
    runs: npt.NDArray[np.bool_],
    gpus: Floats,
    capacity: Floats,
    count: Floats,
    cost: float,
) -> tuple[Floats, float]:
    """The shares at the end of the search, made to fit, and its value; nan if it got stuck."""
    uses = np.where(runs, gpus[:, None], 0.0)
    program = ConeProgram(block, uses, capacity, count, cost)
    point = _end(program)
    shares = program.variables(point.y / point.tau)[:, : len(capacity)]
    shares = np.where(runs, shares, 0.0).clip(0.0, 1.0)
    used = (count * gpus) @ shares / capacity
    shares = shares / max(1.0, shares.sum(axis=1).max(), used.max())
    close = _is_close(program, point, _CLOSE_ENOUGH)
    return shares, program.value(point.y) / point.tau if close else math.nan


def _end(program: ConeProgram) -> _SearchPoint:
    point = _start(program)
    for _ in range(_MOST_STEPS):
        if _is_close(program, point, _CLOSE):
            break
        try:
            with np.errstate(divide="raise", invalid="raise"):
                ahead = _next(program, point)
        except (np.linalg.LinAlgError, FloatingPointError):
            break  # rounding allows no closer search
        if not _mu(program, ahead) < _mu(program, point):
            break
        point = ahead
    return point


def _start(program: ConeProgram) -> _SearchPoint:
    h, c = program.h, program.c
    one = ones(program.linear, program.triples)
    newton = NewtonSystem(program, Scaling(program.linear, one, one))
    y, u = newton.solve(np.zeros_like(c), h)
    _, multipliers = newton.solve(-c, np.zeros_like(h))
    return _SearchPoint(y, _inside(program, -u), _inside(program, multipliers), 1.0, 1.0)


def _inside(program: ConeProgram, numbers: Floats) -> Floats:
    """Numbers moved into the cones."""
    by = inside_by(program.linear, numbers)
    more = 1.0 + (-_INSIDE if by > 0 else max(-_INSIDE, -by))
    return numbers + more * ones(program.linear, program.triples)


def _mu(program: ConeProgram, point: _SearchPoint) -> float:
    """The mean of all products."""
    gap = program.over_rows(point.s, point.u)
    return (gap + point.kappa * point.tau) / (program.degree + 1)


def _is_close(program: ConeProgram, point: _SearchPoint, by: float) -> bool:
    """Whether the value is as close to the best, and no inequality is missed by more."""
    off = program.times(point.y) + point.s - point.tau * program.h
    size = max(1.0, program.over_rows(program.h, program.h))
    if program.over_rows(off, off) > size * (by * point.tau) ** 2:
        return False
    return program.over_rows(point.s, point.u) < by * point.tau * abs(program.value(point.y))


def _next(program: ConeProgram, point: _SearchPoint) -> _SearchPoint:
    """The point after one step."""
    y, s, u, tau, kappa = point
    h, c, linear = program.h, program.c, program.linear
    scaling = Scaling(linear, s, u)
    newton = NewtonSystem(program, scaling)
    root = scaling.times(u)
    off_u = -program.transposed(u) - tau * c
    off_s = s + program.times(y) - tau * h
    off = kappa + program.value(y) + program.over_rows(h, u)
    of_tau = newton.solve(-c, h)
    slope = kappa / tau - program.value(of_tau[0]) - program.over_rows(h, of_tau[1])

    def step(left: float, products: Floats, lone: float) -> _SearchPoint:
        """Newton's step that leaves a part of the residuals, and lessens the products so much."""
        lessened = scaling.times(quotient(linear, products, root))
        towards = newton.solve((1 - left) * off_u, lessened - (1 - left) * off_s)
        ahead = (1 - left) * off - lone / tau
        ahead += program.value(towards[0]) + program.over_rows(h, towards[1])
        by_tau = ahead / slope
        by_y, by_u = (now + by_tau * also for now, also in zip(towards, of_tau, strict=True))
        # Not -lessened - W^2 by_u: there, rounding is larger.
        by_s = by_tau * h - program.times(by_y) - (1 - left) * off_s
        return _SearchPoint(by_y, by_s, by_u, by_tau, -(lone + kappa * by_tau) / tau)

    tried = step(0.0, product(linear, root, root), kappa * tau)
    sigma = min(max((1 - _longest(linear, point, tried)) ** 3, _LEAST_SIGMA), 1.0)
    aim = sigma * _mu(program, point)
    missed = product(linear, scaling.over(tried.s), scaling.times(tried.u))
    products = product(linear, root, root) + missed - aim * ones(linear, program.triples)
    chosen = step(sigma, products, kappa * tau + tried.kappa * tried.tau - aim)
    part = _INSIDE * _longest(linear, point, chosen)
    return _SearchPoint(
        y + part * chosen.y,
        s + part * chosen.s,
        u + part * chosen.u,
        tau + part * chosen.tau,
        kappa + part * chosen.kappa,
    )


def _longest(linear: int, point: _SearchPoint, by: _SearchPoint) -> float:
    """The part of a step that stays in the cones."""
    out = max(
        speed_out(linear, point.s, by.s), speed_out(linear, point.u, by.u),
        -by.tau / point.tau, -by.kappa / point.kappa,
    )  # fmt: skip
    return min(1 / out, _LONGEST) if out > 0 else _LONGEST
