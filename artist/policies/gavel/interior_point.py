"""The optimal shares at which an interior point method ends.

    maximise z, where sum over k of gains[i, k] x[i, k] >= z for every job i, and x fits

Optima are often not unique: jobs that gain more than z can have more or less. An interior point
method ends between the vertices, and where depends on the method. So this is that of ECOS, the
solver of Gavel's authors: the shares are the same to 1e-4, and thus the schedules are those that
they published. Jobs of which all is equal have equal shares, and these do not jump from vertex to
vertex when a number changes a little.

    minimise c y, where G y + s = h, s >= 0         y: all shares, then z; s: slack

With multipliers u >= 0, its conditions become homogeneous by tau and kappa:

    G' u + c tau = 0,    G y + s = h tau,    c y + h u + kappa = 0,    s u = 0,    kappa tau = 0

and y / tau is optimal. Each step is Newton's to where all products are sigma mu. A step to where
they are 0, tried first, says how much smaller they can get (sigma), and what it misses (Mehrotra).

Source: A. Domahidi, E. Chu, S. Boyd, *ECOS: an SOCP solver for embedded systems*, ECC 2013; for
linear programs its cones are single numbers. Rows and columns are scaled first, as in its program:
D. Ruiz, *A scaling algorithm to equilibrate both rows and columns norms in matrices*, 2001.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_CLOSE = 3e-7
"""By which part of z an optimum may be larger. ECOS goes on to 1e-8, by then against rounding; the
shares differ less than from it."""

_SCALINGS = 3
"""How often rows and columns are scaled (ECOS: EQUIL_ITERS)."""

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


class _ScaledProgram:
    """The program for J jobs on K kinds, scaled.

    Each job has K + 2 inequalities of its own: its shares are at least 0, their sum is at most 1,
    and it gains at least z. Then there is one for the GPUs of each kind. `count` equal jobs are one
    job here: their numbers are equal in every step, so they are summed where jobs meet.
    """

    def __init__(self, gains: Floats, gpus: Floats, capacity: Floats, count: Floats) -> None:
        jobs, kinds = gains.shape
        each, self.runs = np.arange(kinds), gains > 0
        own = np.zeros((jobs, kinds + 2, kinds + 1))  # columns: shares, z
        own[:, each, each] = -1.0 * self.runs
        own[:, kinds, :kinds] = self.runs
        own[:, kinds + 1, :kinds] = -gains
        own[:, kinds + 1, kinds] = 1.0
        uses = np.where(self.runs, gpus[:, None], 0.0)
        limits = np.zeros((jobs, kinds + 2))
        limits[:, :kinds] = ~self.runs  # a share that is not there: 0 <= 1
        limits[:, kinds] = 1.0
        sizes, self._unit_of_shares, unit_of_z = capacity, np.ones_like(gains), 1.0
        for _ in range(_SCALINGS):
            rows, of_kinds = _root(np.abs(own).max(axis=2)), _root(uses.max(axis=0))
            shares = _root(np.maximum(np.abs(own[:, :, :kinds]).max(axis=1), uses))
            z = math.sqrt(own[:, kinds + 1, kinds].max())
            own[:, :, :kinds] /= shares[:, None, :]
            own[:, :, kinds] /= z
            own /= rows[:, :, None]
            uses = uses / (of_kinds * shares)
            limits, sizes = limits / rows, sizes / of_kinds
            self._unit_of_shares, unit_of_z = self._unit_of_shares * shares, unit_of_z * z
        self.own, self.uses, self.count = own, uses, count[:, None]
        self.h = np.append(limits, sizes)
        self.c = np.zeros(gains.size + 1)
        self.c[-1] = -1 / unit_of_z
        self._facts = gpus, capacity
        self._rows = np.append(np.repeat(count, kinds + 2), np.ones(kinds))
        self._columns = np.append(np.repeat(count, kinds), 1.0)

    def times(self, y: Floats) -> Floats:
        """G y."""
        shares = y[:-1].reshape(self.uses.shape)
        own = (self.own[:, :, :-1] @ shares[:, :, None])[:, :, 0] + self.own[:, :, -1] * y[-1]
        return np.append(own, (self.count * self.uses * shares).sum(axis=0))

    def transposed(self, u: Floats) -> Floats:
        """G' u."""
        of_jobs, of_kinds = self.split(u)
        shares = (of_jobs[:, None, :] @ self.own[:, :, :-1])[:, 0] + self.uses * of_kinds
        return np.append(shares, (self.count * self.own[:, :, -1] * of_jobs).sum())

    def split(self, rows: Floats) -> tuple[Floats, Floats]:
        """Numbers of inequalities: [J, K + 2] of jobs, [K] of kinds."""
        kinds = self.uses.shape[1]
        return rows[:-kinds].reshape(-1, kinds + 2), rows[-kinds:]

    def over_rows(self, a: Floats, b: Floats) -> float:
        """The inner product of two numbers of each inequality."""
        return float((self._rows * a * b).sum())

    def mu(self, point: _SearchPoint) -> float:
        """The mean of all products."""
        products = self.over_rows(point.s, point.u) + point.kappa * point.tau
        return products / (float(self._rows.sum()) + 1)

    def is_close(self, point: _SearchPoint) -> bool:
        """Whether z is close enough to the optimum, and no inequality is missed by more."""
        gap = self.over_rows(point.s, point.u)
        off = self.times(point.y) + point.s - point.tau * self.h
        size = max(1.0, self.over_rows(self.h, self.h))
        far = self.over_rows(off, off) > size * (_CLOSE * point.tau) ** 2
        return not far and gap < -_CLOSE * point.tau * float(self.c @ point.y)

    def shares(self, point: _SearchPoint) -> Floats:
        """[J, K] the shares at a point, made to fit."""
        gpus, capacity = self._facts
        shares = point.y[:-1].reshape(self.uses.shape) / point.tau / self._unit_of_shares
        shares = np.where(self.runs, shares, 0.0).clip(0.0, 1.0)
        used = (self.count[:, 0] * gpus) @ shares / capacity
        result: Floats = shares / max(1.0, shares.sum(axis=1).max(), used.max())
        return result


class _Newton:
    """Solves G' u = a, G y - u / weights = b.

    Jobs meet in the GPUs of a kind and in z only. So each job's K shares follow from a system of
    its own, in terms of the GPUs of kinds in use and z; and these from one of K + 1.
    """

    def __init__(self, program: _ScaledProgram, weights: Floats) -> None:
        self._program, self._weights = program, weights
        of_jobs, of_kinds = program.split(weights)
        shares, z, uses, count = (
            program.own[:, :, :-1],
            program.own[:, :, -1],
            program.uses,
            program.count,
        )
        kinds = len(of_kinds)
        weighted = shares * of_jobs[:, :, None]
        own = np.swapaxes(weighted, 1, 2) @ shares + np.eye(kinds) * ~program.runs[:, :, None]
        self._inverse = np.linalg.inv(own)
        self._z = (weighted * z[:, :, None]).sum(axis=1)
        self._with_z = (self._inverse @ self._z[:, :, None])[:, :, 0]
        self._with_gpus = self._inverse * (uses[:, None, :] * of_kinds)
        shared = np.empty((kinds + 1, kinds + 1))
        shared[:kinds, :kinds] = np.eye(kinds) + ((count * uses)[:, :, None] * self._with_gpus).sum(
            axis=0
        )
        shared[:kinds, kinds] = (count * uses * self._with_z).sum(axis=0)
        shared[kinds, :kinds] = -((count * self._z)[:, :, None] * self._with_gpus).sum(axis=(0, 1))
        shared[kinds, kinds] = (count * (z * z * of_jobs)).sum() - (
            count * self._z * self._with_z
        ).sum()
        self._shared = shared

    def solve(self, a: Floats, b: Floats) -> tuple[Floats, Floats]:
        """y and u."""
        program, kinds = self._program, len(self._shared) - 1
        right = a + program.transposed(self._weights * b)
        alone = (self._inverse @ right[:-1].reshape(-1, kinds, 1))[:, :, 0]
        uses = (program.count * program.uses * alone).sum(axis=0)
        z = right[-1] - (program.count * self._z * alone).sum()
        both = np.linalg.solve(self._shared, np.append(uses, z))
        shares = alone - self._with_z * both[-1] - self._with_gpus @ both[:-1]
        y = np.append(shares, both[-1])
        return y, self._weights * (program.times(y) - b)


def interior_optimum(gains: Floats, gpus: Floats, capacity: Floats, count: Floats) -> Floats:
    """[J, K] shares for jobs that each gain something on some kind; every kind has GPUs.

    `count`: [J] how many equal jobs each stands for.
    """
    program = _ScaledProgram(gains, gpus, capacity, count)
    point = _start(program)
    for _ in range(_MOST_STEPS):
        if program.is_close(point):
            break
        try:
            ahead = _next(program, point)
        except np.linalg.LinAlgError:
            break  # rounding allows no closer search
        if not program.mu(ahead) < program.mu(point):
            break
        point = ahead
    return program.shares(point)


def _start(program: _ScaledProgram) -> _SearchPoint:
    h, c = program.h, program.c
    newton = _Newton(program, np.ones_like(h))
    y, u = newton.solve(np.zeros_like(c), h)
    _, multipliers = newton.solve(-c, np.zeros_like(h))
    return _SearchPoint(y, _inside(-u), _inside(multipliers), 1.0, 1.0)


def _inside(numbers: Floats) -> Floats:
    """Numbers moved above 0."""
    return numbers + 1 + max(-_INSIDE, -float(numbers.min()))


def _next(program: _ScaledProgram, point: _SearchPoint) -> _SearchPoint:
    """The point after one step."""
    y, s, u, tau, kappa = point
    h, c = program.h, program.c
    root, half = np.sqrt(s * u), np.sqrt(s / u)
    newton = _Newton(program, u / s)
    off_u = -program.transposed(u) - tau * c
    off_s = s + program.times(y) - tau * h
    off = kappa + float(c @ y) + program.over_rows(h, u)
    of_tau = newton.solve(-c, h)
    slope = kappa / tau - float(c @ of_tau[0]) - program.over_rows(h, of_tau[1])

    def step(left: float, products: Floats, product: float) -> _SearchPoint:
        """Newton's step that leaves a part of what is off, and lessens the products so much."""
        towards = newton.solve((1 - left) * off_u, half * products / root - (1 - left) * off_s)
        ahead = (1 - left) * off - product / tau
        ahead += float(c @ towards[0]) + program.over_rows(h, towards[1])
        by_tau = ahead / slope
        by_y, by_u = (now + by_tau * also for now, also in zip(towards, of_tau, strict=True))
        by_s = -half * (products / root + half * by_u)
        return _SearchPoint(by_y, by_s, by_u, by_tau, -(product + kappa * by_tau) / tau)

    tried = step(0.0, s * u, kappa * tau)
    sigma = min(max((1 - _longest(point, tried)) ** 3, _LEAST_SIGMA), 1.0)
    aim = sigma * program.mu(point)
    chosen = step(
        sigma, s * u + tried.s * tried.u - aim, kappa * tau + tried.kappa * tried.tau - aim
    )
    part = _INSIDE * _longest(point, chosen)
    return _SearchPoint(
        y + part * chosen.y,
        s + part * chosen.s,
        u + part * chosen.u,
        tau + part * chosen.tau,
        kappa + part * chosen.kappa,
    )


def _longest(point: _SearchPoint, by: _SearchPoint) -> float:
    """The part of a step that keeps all numbers above 0."""
    worst = max(
        float((-by.s / point.s).max()), float((-by.u / point.u).max()),
        -by.tau / point.tau, -by.kappa / point.kappa,
    )  # fmt: skip
    return min(1 / worst, _LONGEST) if worst > 0 else _LONGEST


def _root(sizes: Floats) -> Floats:
    """What to divide by; 1 where all is 0."""
    return np.sqrt(np.where(sizes > 0, sizes, 1.0))
