"""The centre of the optimal shares, where an interior point method ends.

    maximise z, where sum over k of gains[i, k] x[i, k] >= z for every job i, and x fits

Optima are often not unique: jobs that gain more than z can have more or less. The path on which
each inequality's slack times its multiplier is the same number mu ends, as mu falls to 0, at one
optimum: the analytic centre of all of them (S. J. Wright, *Primal-dual interior-point methods*,
1997, chapters 2 and 5). Jobs of which all is equal have equal shares there, and it does not jump
from vertex to vertex when a number changes a little. The solver of Gavel's authors, ECOS, follows
such a path, too.

Here x is always possible, so a search that ends early still returns shares that fit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_CLOSE = 1e-8
"""By which part of z an optimum may be larger."""

_SHRINK, _NOT_TO_THE_EDGE = 0.15, 0.95
"""The next mu over that of now; the part of the way to the nearest bound that a step goes."""

_CENTRAL = 1e-3
"""How far a product may be from mu at the end, as a part of it."""

_MOST_STEPS = 100

_REGULAR = 1e-14
"""Added to the diagonal of each job's system, over its largest entry: rounding makes it singular
where mu is small."""


class _CentreProgram(NamedTuple):
    """J jobs on K kinds."""

    gains: Floats
    """[J, K] of the share of time on a kind; 0 where the job cannot run."""
    uses: Floats
    """[J, K] GPUs per share; 0 where the job cannot run."""
    capacity: Floats
    """[K] GPUs of each kind."""
    runs: npt.NDArray[np.bool_]
    """[J, K] whether a job runs on a kind."""


class _Point(NamedTuple):
    """Shares and multipliers, all inside their bounds; or the change of each."""

    shares: Floats
    least: float
    """z."""
    of_shares: Floats
    """[J, K] multipliers of shares >= 0, and so on."""
    of_time: Floats
    of_gpus: Floats
    of_least: Floats


class _Slack(NamedTuple):
    time: Floats
    """[J] of each job, that it does not run."""
    gpus: Floats
    """[K] of each kind, that nobody uses."""
    least: Floats
    """[J] by how much a job gains more than z."""


def centre(gains: Floats, gpus: Floats, capacity: Floats) -> Floats:
    """[J, K] shares for jobs that each gain something on some kind; every kind has GPUs."""
    runs = gains > 0
    program = _CentreProgram(gains, np.where(runs, gpus[:, None], 0.0), capacity, runs)
    kinds = gains.shape[1]
    room = np.minimum(0.5 / kinds, 0.5 * capacity[None, :] / gpus.sum())
    shares = np.where(runs, room, 0.0)
    least = 0.5 * float((gains * shares).sum(axis=1).min())
    slack = _slack(program, shares, least)
    point = _Point(
        shares, least, 1 / np.where(runs, shares, 1.0), 1 / slack.time, 1 / slack.gpus,
        1 / slack.least,
    )  # fmt: skip
    for _ in range(_MOST_STEPS):
        products = _products(program, point, slack)
        mu = float(products.mean())
        small = mu * len(products) < _CLOSE * point.least
        if not small:
            mu *= _SHRINK
        elif np.abs(products / mu - 1).max() < _CENTRAL and _off_balance(program, point) < _CLOSE:
            break
        step = _step(program, point, slack, mu)
        change = _change(program, step.shares, step.least)
        ahead = _within(program, (point, step), (slack, change))
        point = _ahead(point, step, ahead)
        # Not recomputed from the shares: there, rounding is larger than what is left.
        slack = _Slack(*(now + ahead * by for now, by in zip(slack, change, strict=True)))
    return point.shares


def _slack(program: _CentreProgram, shares: Floats, least: float) -> _Slack:
    return _Slack(
        1 - shares.sum(axis=1),
        program.capacity - (program.uses * shares).sum(axis=0),
        (program.gains * shares).sum(axis=1) - least,
    )


def _ahead(point: _Point, step: _Point, part: float) -> _Point:
    return _Point(
        point.shares + part * step.shares,
        point.least + part * step.least,
        point.of_shares + part * step.of_shares,
        point.of_time + part * step.of_time,
        point.of_gpus + part * step.of_gpus,
        point.of_least + part * step.of_least,
    )


def _products(program: _CentreProgram, point: _Point, slack: _Slack) -> Floats:
    """Slack times multiplier of every inequality. Their sum is how much larger z could be."""
    return np.concatenate(
        [
            (point.of_shares * point.shares)[program.runs],
            point.of_time * slack.time,
            point.of_gpus * slack.gpus,
            point.of_least * slack.least,
        ]
    )


def _off_balance(program: _CentreProgram, point: _Point) -> float:
    """By how much multipliers miss the conditions of an optimum."""
    prices = point.of_time[:, None] + program.uses * point.of_gpus
    worth = program.gains * point.of_least[:, None] + point.of_shares
    missed = np.abs(prices - worth)[program.runs].max()
    return float(max(missed, abs(point.of_least.sum() - 1)))


def _step(program: _CentreProgram, point: _Point, slack: _Slack, mu: float) -> _Point:
    """Newton's step to where all products are mu.

    Jobs meet in the GPUs of a kind and in z only. So each job's K shares follow from a system of
    its own, in terms of how the multipliers of GPUs and z change; and these from one of K + 1.
    """
    gains, uses, capacity, runs = program
    kinds = len(capacity)
    shares = np.where(runs, point.shares, 1.0)
    time, least = point.of_time / slack.time, point.of_least / slack.least
    each = np.eye(kinds)
    both = runs[:, :, None] & runs[:, None, :]
    own = each * np.where(runs, point.of_shares / shares, 1.0)[:, :, None]
    own += time[:, None, None] * both
    own += least[:, None, None] * gains[:, :, None] * gains[:, None, :]
    own += each * (_REGULAR * own.max(axis=(1, 2)))[:, None, None]
    pull = 1 / shares - (1 / slack.time)[:, None] - uses / slack.gpus
    pull = mu * np.where(runs, pull + gains * (1 / slack.least)[:, None], 0.0)
    of_z = gains * least[:, None]
    sides = np.concatenate([pull[:, :, None], of_z[:, :, None], uses[:, :, None] * each], axis=2)
    solved = np.linalg.solve(own, sides)
    alone, with_z, with_gpus = solved[:, :, 0], solved[:, :, 1], solved[:, :, 2:]
    shared, right = np.zeros((kinds + 1, kinds + 1)), np.zeros(kinds + 1)
    shared[:kinds, :kinds] = np.diag(slack.gpus / point.of_gpus)
    shared[:kinds, :kinds] += (uses[:, :, None] * with_gpus).sum(axis=0)
    shared[:kinds, kinds] = -(uses * with_z).sum(axis=0)
    shared[kinds, :kinds] = (of_z[:, :, None] * with_gpus).sum(axis=(0, 1))
    shared[kinds, kinds] = least.sum() - (of_z * with_z).sum()
    right[:kinds] = (uses * alone).sum(axis=0)
    right[kinds] = 1 - (mu / slack.least).sum() + (of_z * alone).sum()
    found = np.linalg.solve(shared, right)
    z = float(found[kinds])
    by = np.where(runs, alone + with_z * z - with_gpus @ found[:kinds], 0.0)
    change = _change(program, by, z)
    return _Point(
        by,
        z,
        np.where(runs, (mu - point.of_shares * by) / shares - point.of_shares, 0.0),
        (mu - point.of_time * change.time) / slack.time - point.of_time,
        (mu - point.of_gpus * change.gpus) / slack.gpus - point.of_gpus,
        (mu - point.of_least * change.least) / slack.least - point.of_least,
    )


def _change(program: _CentreProgram, by: Floats, z: float) -> _Slack:
    """How slack changes with shares and z."""
    return _Slack(
        -by.sum(axis=1),
        -(program.uses * by).sum(axis=0),
        (program.gains * by).sum(axis=1) - z,
    )


def _within(
    program: _CentreProgram, point: tuple[_Point, _Point], slack: tuple[_Slack, _Slack]
) -> float:
    """The part of a step that keeps all numbers above 0; what is, and how it changes."""
    (now, by), (room, less), runs = point, slack, program.runs
    worst = max(
        float((-change / number).max())
        for number, change in (
            (now.shares[runs], by.shares[runs]),
            (now.of_shares[runs], by.of_shares[runs]),
            (now.of_time, by.of_time),
            (now.of_gpus, by.of_gpus),
            (now.of_least, by.of_least),
            *zip(room, less, strict=True),
        )
    )
    return min(1.0, _NOT_TO_THE_EDGE / worst) if worst > 0 else 1.0
