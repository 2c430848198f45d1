"""Gavel's objectives as linear programs over time fractions.

    x[i, k]  share of the time in which job i runs on kind k
    sum over k of x[i, k]          <= 1      a job runs in one place at a time
    sum over i of gpus[i] x[i, k]  <= N[k]   a kind has N[k] GPUs
    what job i gets: sum over k of T[i, k] x[i, k], with its speed T[i, k] on kind k

With space sharing, two jobs with equal numbers of GPUs are a combination with a row of its own in
x. The first constraint and what a job gets then sum over all rows with the job, and a pair takes
the GPUs of one job.

Source: Narayanan et al., *Heterogeneity-aware cluster scheduling policies for deep learning
workloads*, OSDI 2020, sections 3 and 4, and its program (scheduler/policies).

| objective | program |
| --- | --- |
| `las` | maximise the least gpus x gets / (what an equal part of every kind gives) |
| `makespan` | maximise 1 / M, where every job gets at least its steps / M |
| `ftf` | minimise the largest finish-time fairness (`fairest`) |
| `cost` | maximise the sum of gets / price, per kind |

All but the last have one form: maximise z, where every job i gets at least z x need[i]. HiGHS
solves them, through SciPy; on one kind without pairs the optimum has a closed form. Optima are
often not unique. Of those with the largest z, `max_min` takes a vertex with the largest sum of what
jobs get over their needs, so no GPU that helps is left out. Under `las` and `ftf`, without pairs,
the optimum inside can be taken at which the authors' solver ends (`interior_point.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import PolicyError
from artist.policies.gavel.cones import Floats
from artist.policies.gavel.interior_point import inner_fairest, inner_max_min

Ints = npt.NDArray[np.int64]

_SLACK = 1e-9
"""By how much the second program may fall short of z: more than HiGHS's rounding."""

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""HiGHS's smallest tolerances."""

_CLOSE = 1e-8
"""The search for the finish-time fairness ends when it could fall by at most this share."""

_MOST_STEPS = 100


class Pairs(NamedTuple):
    """P pairs of jobs; the two jobs of a pair want equal numbers of GPUs."""

    jobs: Ints
    """[P, 2] the rows of the jobs"""
    speeds: Floats
    """[P, 2, K] iterations per second of each beside the other; both 0 where they do not pair."""


class Jobs(NamedTuple):
    """J jobs on K kinds of GPUs."""

    speeds: Floats
    """[J, K] iterations per second on each kind; 0 where a job cannot run. Each job can run on some
    kind that has GPUs."""
    gpus: Floats
    """[J]"""
    capacity: Floats
    """[K] GPUs of each kind."""
    pairs: Pairs | None = None
    """The pairs that may share GPUs; None without space sharing."""

    def members(self) -> tuple[Ints, Ints, Floats]:
        """Which jobs are in which rows of the shares: job, row, and speed there on each kind."""
        jobs, rows, speeds = np.arange(len(self.gpus)), np.arange(len(self.gpus)), self.speeds
        if self.pairs is not None:
            of_pairs = len(jobs) + np.arange(len(self.pairs.jobs))
            jobs = np.concatenate([jobs, self.pairs.jobs.ravel()])
            rows = np.concatenate([rows, np.repeat(of_pairs, 2)])
            both = self.pairs.speeds.reshape(-1, len(self.capacity))
            speeds = np.concatenate([speeds, both])
        return jobs, rows, speeds

    def best(self) -> Floats:
        """[J] the most that each job could get, iterations per second."""
        jobs, _, speeds = self.members()
        result = np.zeros(len(self.gpus))
        np.maximum.at(result, jobs, speeds.max(axis=1))
        return result

    def gets(self, shares: Floats) -> Floats:
        """[J] what each job gets, iterations per second."""
        jobs, rows, speeds = self.members()
        got = (speeds * shares[rows]).sum(axis=1)
        result: Floats = np.bincount(jobs, got, len(self.gpus)).astype(np.float64)
        return result


class Optimum(NamedTuple):
    """An optimal allocation and the value of its objective."""

    value: float
    shares: Floats
    """[J, K]; with pairs [J + P, K], first the shares of jobs alone, then those of pairs."""


def agnostic(speeds: Floats) -> Floats:
    """Speeds as if every kind were each job's best kind; 0 stays 0."""
    best = speeds.max(axis=1, keepdims=True)
    return np.where(speeds > 0, best, 0.0)


def equal_part(jobs: Jobs) -> Floats:
    """[J] what each job gets if its time on each kind is the kind's share of all GPUs."""
    result: Floats = jobs.speeds @ (jobs.capacity / jobs.capacity.sum())
    return result


def isolated(jobs: Jobs) -> Floats:
    """[J] what each job gets if it alone has 1 / J of every kind (Gavel, section 4.2)."""
    shares = jobs.capacity[None, :] / len(jobs.gpus) / jobs.gpus[:, None]
    shares = shares / np.maximum(shares.sum(axis=1), 1.0)[:, None]
    result: Floats = (jobs.speeds * shares).sum(axis=1)
    return result


def least_attained_service(jobs: Jobs, *, inner: bool = False) -> Optimum:
    """Max-min fairness: `value` is the least of gpus x gets / equal part.

    `inner`: the shares are those at which an interior point method ends.
    """
    needs = equal_part(jobs) / jobs.gpus
    return _inner(jobs, needs) if inner else max_min(jobs, needs)


def makespan(jobs: Jobs, steps: Floats) -> Optimum:
    """`value` is the least time in which all jobs can do their steps, seconds."""
    best = max_min(jobs, steps)
    return Optimum(1.0 / best.value, best.shares)


def fairest(
    jobs: Jobs, steps: Floats, waited_s: Floats, isolated_s: Floats, *, inner: bool = False
) -> Optimum:
    """`value` is the least that the largest finish-time fairness can be.

    `inner`: the shares are those at which an interior point method ends.

    The fairness of job i is (waited_s[i] + steps[i] / gets[i]) / isolated_s[i]: the time from its
    arrival to its finish over that in isolation. At a fairness r, job i needs steps / (r isolated_s
    - waited_s). The search halves the interval between the least value reached and a lower bound.
    The first bound is the largest fairness if every job had its best kind to itself. It is tried
    first, because it can mostly be reached.
    """
    if inner and (inside := _inner_fairest(jobs, steps, waited_s, isolated_s)) is not None:
        return inside
    shares = max_min(jobs, steps / isolated_s).shares
    value = _largest(jobs, shares, steps, waited_s, isolated_s)
    least = float(((waited_s + steps / jobs.best()) / isolated_s).max())
    tried = least * (1 + _CLOSE / 2)
    for _ in range(_MOST_STEPS):
        if least >= value * (1 - _CLOSE):
            break
        found = max_min(jobs, steps / (tried * isolated_s - waited_s))
        fairness = _largest(jobs, found.shares, steps, waited_s, isolated_s)
        if fairness < value:
            value, shares = fairness, found.shares
        if found.value < 1.0 - _SLACK:
            least = tried
        elif fairness > tried * (1 + _CLOSE):
            break  # rounding allows no closer search
        tried = (least + value) / 2
    if inner:
        shares = _inner(jobs, steps / (value * isolated_s - waited_s)).shares
    return Optimum(value, shares)


def _inner_fairest(
    jobs: Jobs, steps: Floats, waited_s: Floats, isolated_s: Floats
) -> Optimum | None:
    """`fairest` with the shares at which an interior point method ends; None if it gets stuck."""
    there, best = jobs.capacity > 0, jobs.best()
    # Where it ends depends on units. These are those in which rounding is smallest.
    found = inner_fairest(
        np.compress(there, jobs.speeds, axis=1) / best[:, None],
        jobs.gpus,
        jobs.capacity[there],
        steps / best / isolated_s,
        waited_s / isolated_s,
    )
    if found is None:
        return None
    shares = np.zeros(jobs.speeds.shape)
    shares[:, there] = found
    return Optimum(_largest(jobs, shares, steps, waited_s, isolated_s), shares)


def _inner(jobs: Jobs, needs: Floats) -> Optimum:
    """`max_min` with the optimal shares at which an interior point method ends.

    Kinds without GPUs are left out, because shares there cannot be inside their bounds.
    """
    there = jobs.capacity > 0
    gained = np.compress(there, jobs.speeds, axis=1) / needs[:, None]
    first, of, count = _classes(gained, jobs.gpus)
    found = inner_max_min(
        gained[first], jobs.gpus[first], jobs.capacity[there], count.astype(np.float64)
    )
    if found is None:
        return max_min(jobs, needs)
    shares = np.zeros(jobs.speeds.shape)
    shares[:, there] = found[of]
    return Optimum(float((jobs.gets(shares) / needs).min()), shares)


def _largest(
    jobs: Jobs, shares: Floats, steps: Floats, waited_s: Floats, isolated_s: Floats
) -> float:
    return float(((waited_s + steps / jobs.gets(shares)) / isolated_s).max())


def per_cost(jobs: Jobs, prices: Floats) -> Optimum:
    """`value` is the largest sum over jobs and kinds of gets / price. `prices`: [K] per GPU-hour.

    A job may get nothing.
    """
    of, rows, speeds = jobs.members()
    gains = _Gains(of, rows, speeds / prices[None, :])
    value, shares = _optimum(jobs, gains, -gains.sums(), None)
    return Optimum(-value, shares)


def max_min(jobs: Jobs, needs: Floats) -> Optimum:
    """The largest `value` so that every job gets at least value x its need; needs are above 0."""
    # HiGHS's tolerances are absolute. So needs are in units in which each job gets at least 1 if it
    # has its best kind all the time.
    unit = float((jobs.speeds.max(axis=1) / needs).min())
    if jobs.pairs is None:
        gained = jobs.speeds / (needs * unit)[:, None]
        if gained.shape[1] == 1:
            value, shares = _on_one_kind(gained[:, 0], jobs.gpus, float(jobs.capacity[0]))
            return Optimum(value * unit, shares[:, None])
        alone = _all_on_their_best(jobs, gained)
        value, shares = _of_classes(jobs, gained) if alone is None else (1.0, alone)
        return Optimum(value * unit, shares)
    of, rows, speeds = jobs.members()
    gains = _Gains(of, rows, speeds / (needs * unit)[of, None])
    value, shares = _largest_least(jobs, gains, gains.sums())
    return Optimum(value * unit, shares)


def _all_on_their_best(jobs: Jobs, gained: Floats) -> Floats | None:
    """Every job on its best kind all the time: the only optimum if the best kinds are unique.

    None if some are not unique, or the jobs do not fit.
    """
    best = gained == gained.max(axis=1, keepdims=True)
    fit = (jobs.gpus @ best <= jobs.capacity).all() and best.sum() == len(best)
    return best.astype(np.float64) if fit else None


def _of_classes(jobs: Jobs, gained: Floats) -> tuple[float, Floats]:
    """`_largest_least` with one row of shares for each class of jobs with equal gains and GPUs.

    Nothing is lost: the mean of two optima is an optimum, so the mean over all exchanges of such
    jobs is an optimum with equal shares. n such jobs are one job of n times as many GPUs. So the
    cost of a program depends on the number of classes: 1,000 jobs of 80 take 14 ms instead of 174.
    """
    first, of, count = _classes(gained, jobs.gpus)
    classes = Jobs(gained[first], jobs.gpus[first] * count, jobs.capacity)
    gains = _Gains(np.arange(len(first)), np.arange(len(first)), classes.speeds)
    sums = (classes.speeds * count[:, None]).ravel()
    value, shares = _of_most(classes, gains, sums) or _largest_least(classes, gains, sums)
    return value, shares[of]


def _classes(gained: Floats, gpus: Floats) -> tuple[Ints, Ints, Ints]:
    """Classes of equal jobs: the first job of each, the class of each job, how many are in each."""
    facts = np.column_stack([gained, gpus])
    _, first, of, count = np.unique(
        facts, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)  # as the jobs come
    return first[order], np.argsort(order)[of.ravel()], count[order]


def _of_most(jobs: Jobs, gains: _Gains, sums: Floats) -> tuple[float, Floats] | None:
    """`_largest_least` if the largest z is what the neediest job could have alone; else None.

    That is usual if there are enough GPUs. Then the second program suffices.
    """
    best = jobs.speeds.max(axis=1)
    most = float(best.min())
    if most * float((jobs.gpus / best).sum()) > float(jobs.capacity.sum()):
        return None  # not even if every GPU were of everyone's best kind
    found = _solved(jobs, gains, -sums, np.full(len(best), -most * (1 - _SLACK)))
    return None if found is None else (most, found[1])


def _largest_least(jobs: Jobs, gains: _Gains, sums: Floats) -> tuple[float, Floats]:
    """The largest z that all jobs gain, and among its shares those of the largest sum.

    `sums` is what all gain in each column.
    """
    # The variables are x and z; row i is z - sum over k of gains x <= 0.
    count = len(jobs.gpus)
    cost = np.zeros(len(sums) + 1)
    cost[-1] = -1.0
    value, shares = _optimum(jobs, gains, cost, np.zeros(count))
    # The second program: no job below z, and the largest sum.
    floor = np.full(count, -gains.least(shares) * (1 - _SLACK))
    second = _solved(jobs, gains, -sums, floor)
    return -value, shares if second is None else second[1]


def _on_one_kind(gains: Floats, gpus: Floats, capacity: float) -> tuple[float, Floats]:
    """`_largest_least` in closed form: GPUs left go to the jobs that gain most from a GPU."""
    value = min(capacity / float((gpus / gains).sum()), float(gains.min()))
    shares = value / gains
    left = capacity - float(gpus @ shares)
    for job in np.argsort(-gains / gpus, kind="stable").tolist():
        more = min(1.0 - shares[job], max(left, 0.0) / gpus[job])
        shares[job] += more
        left -= more * gpus[job]
    return value, shares


class _Gains:
    """What jobs gain in the rows of the shares that they are in (`Jobs.members`)."""

    def __init__(self, jobs: Ints, rows: Ints, speeds: Floats) -> None:
        self.jobs, self.rows, self.speeds = jobs, rows, speeds
        kinds = speeds.shape[1]
        # Columns of the programs: row x kind.
        self.columns = (rows[:, None] * kinds + np.arange(kinds)).ravel()

    def sums(self) -> Floats:
        """[rows x K] what all jobs together gain."""
        result: Floats = np.bincount(self.columns, self.speeds.ravel()).astype(np.float64)
        return result

    def least(self, shares: Floats) -> float:
        """The least gain of a job."""
        return float(np.bincount(self.jobs, (self.speeds * shares[self.rows]).sum(axis=1)).min())


def _optimum(jobs: Jobs, gains: _Gains, cost: Floats, floor: Floats | None) -> tuple[float, Floats]:
    """`_solved` of a program that has an optimum.

    Raises:
        PolicyError: HiGHS finds none.
    """
    found = _solved(jobs, gains, cost, floor)
    if found is None:
        raise PolicyError(f"HiGHS found no optimum for {len(jobs.gpus)} jobs")
    return found


def _solved(
    jobs: Jobs, gains: _Gains, cost: Floats, floor: Floats | None
) -> tuple[float, Floats] | None:
    """The minimum of cost x, and x as [rows, K]; a variable z may follow x. None if HiGHS finds
    none.

    With a floor, no job's -gain, plus z if there is one, may be above it.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    count, kinds = jobs.speeds.shape
    size = int(gains.columns.max()) + 1
    columns, members = np.arange(size), np.repeat(gains.jobs, kinds)
    gpus = np.empty(size // kinds)
    gpus[gains.rows] = jobs.gpus[gains.jobs]
    limits = [np.ones(count), jobs.capacity]
    blocks = [
        (np.ones(len(members)), members, gains.columns),  # a job is in one place at a time
        (np.repeat(gpus, kinds), count + columns % kinds, columns),  # jobs fit the kinds
    ]
    if floor is not None:
        limits.append(floor)
        blocks.append((-gains.speeds.ravel(), count + kinds + members, gains.columns))
    if len(cost) > size:
        rows = count + kinds + np.arange(count)
        blocks.append((np.ones(count), rows, np.full(count, size)))
    values, rows, at = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    bound = np.concatenate(limits)
    bounded = csr_array((values, (rows, at)), shape=(len(bound), len(cost)))
    runs = np.zeros(size)
    runs[gains.columns] = (gains.speeds > 0).ravel()
    most = np.append(runs, np.inf)[: len(cost)]
    bounds = np.column_stack([np.zeros(len(cost)), most])
    found = linprog(cost, A_ub=bounded, b_ub=bound, bounds=bounds, method="highs", options=_TIGHT)
    if found.status != 0:
        return None
    shares: Floats = np.clip(found.x[:size], 0.0, 1.0).reshape(-1, kinds)
    return float(found.fun), shares
