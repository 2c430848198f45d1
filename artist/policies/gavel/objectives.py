"""Compute the shares of time of the present jobs, by the chosen objective."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.contract import JobView
from artist.policies.gavel.allocation import (
    Jobs,
    agnostic,
    fairest,
    isolated,
    least_attained_service,
    makespan,
    per_cost,
)
from artist.policies.gavel.cones import Floats
from artist.policies.gavel.options import GavelOptions
from artist.policies.gavel.space_sharing import Beside
from artist.policies.gavel.time_fractions import Combination
from artist.rng import Draws
from artist.units import TICKS_PER_S, Tick, ticks

FIFO_PACKS_ABOVE = 1.5
"""Default of the authors' program (fifo.py, `packing_threshold`)."""


class Objective:
    """The chosen objective. For finish-time fairness it remembers jobs' progress in isolation."""

    def __init__(self, options: GavelOptions, draws: Draws) -> None:
        self._options, self._random = options, draws.stream("gavel-fifo")
        self._isolated_s: dict[int, float] = {}
        """How long the work that a job has done would have taken in isolation."""
        self._last: dict[int, tuple[float, float]] = {}
        """Work left, and work per second in isolation, when shares were computed."""

    def forget(self, handle: int) -> None:
        """Forget a job that has finished."""
        self._isolated_s.pop(handle, None)
        self._last.pop(handle, None)

    def shares(
        self,
        states: Sequence[JobView],
        speeds: Sequence[Sequence[float]],
        capacity: Sequence[int],
        prices: Sequence[float],
        now: Tick,
        beside: Beside | None = None,
    ) -> dict[Combination, Sequence[float]]:
        """Shares of time on each kind: of jobs alone and, with `beside`, of pairs.

        Every job must be able to run on some kind. Work is counted in seconds on a job's fastest
        kind, in whole ticks, so that it does not matter into which iterations a job is cut.
        """
        if not states:
            return {}
        gpus, sizes = np.array([x.job.gpus for x in states], float), np.array(capacity, float)
        known = np.array(speeds)
        best = known.max(axis=1)
        known /= best[:, None]
        known[gpus[:, None] > sizes[None, :]] = 0.0
        jobs = Jobs(known if self._options.aware else agnostic(known), gpus, sizes)
        if beside is not None and self._options.objective == "fifo":
            return _packed(jobs, states, beside)
        jobs, found = self._solved(jobs, states, best, prices, now, beside)
        who = [(state.handle,) for state in states]
        if jobs.pairs is not None:
            found = found.round(6)  # equal shares are equal, whatever the programs' slack
            who += [tuple(sorted(who[one] + who[two])) for one, two in jobs.pairs.jobs.tolist()]
        rows: list[list[float]] = found.tolist()
        return dict(zip(who, rows, strict=True))

    def _solved(
        self,
        jobs: Jobs,
        states: Sequence[JobView],
        best: Floats,
        prices: Sequence[float],
        now: Tick,
        beside: Beside | None,
    ) -> tuple[Jobs, Floats]:
        """The jobs with their pairs, and the shares of both."""
        needs: tuple[Floats, ...] = ()
        match self._options.objective:
            case "fifo":
                return jobs, _in_order(jobs, None if self._options.aware else self._random)
            case "cost":
                # Iterations per second count here, as in the authors' program.
                jobs = jobs._replace(speeds=jobs.speeds * best[:, None])
            case "makespan":
                needs = (_left_s(states, best, now),)
            case "ftf":
                steps = _left_s(states, best, now)
                waited = [(now - ticks(x.job.arrival_s)) / TICKS_PER_S for x in states]
                isolated_s = self._in_isolation(states, steps, isolated(jobs))
                needs = (steps, np.array(waited), isolated_s)
        if beside is not None:
            jobs = beside.added(jobs, *needs)
        inner = self._options.optimum == "inner" and jobs.pairs is None
        match self._options.objective:
            case "cost":
                found = per_cost(jobs, np.array(prices))
            case "makespan":
                found = makespan(jobs, *needs)
            case "ftf":
                found = fairest(jobs, *needs, inner=inner)
            case _:
                found = least_attained_service(jobs, inner=inner)
        return jobs, found.shares

    def _in_isolation(self, jobs: Sequence[JobView], steps: Floats, speeds: Floats) -> Floats:
        """[J] how long each job would take in isolation, from its arrival to its finish."""
        for state, left, speed in zip(jobs, steps.tolist(), speeds.tolist(), strict=True):
            before, at = self._last.get(state.handle, (left, speed))
            done_s = self._isolated_s.get(state.handle, 0.0) + (before - left) / at
            self._isolated_s[state.handle] = done_s
            self._last[state.handle] = (left, speed)
        result: Floats = np.array([self._isolated_s[x.handle] for x in jobs]) + steps / speeds
        return result


def _left_s(states: Sequence[JobView], best: Floats, now: Tick) -> Floats:
    """[J] seconds that each job would still run on its fastest kind, at least a tick."""
    left = [x.job.iterations - x.iterations_done(now) - x.phase(now) for x in states]
    ticks_left = np.maximum(np.rint(np.array(left) / best * TICKS_PER_S), 1.0)
    result: Floats = ticks_left / TICKS_PER_S
    return result


def _in_order(jobs: Jobs, random: np.random.Generator | None) -> Floats:
    """In order of arrival, each job all the time on one kind with room, until one has none."""
    shares, left = np.zeros_like(jobs.speeds), jobs.capacity.copy()
    for row, (speeds, gpus) in enumerate(zip(jobs.speeds, jobs.gpus, strict=True)):
        able = np.flatnonzero((speeds > 0) & (left >= gpus))
        if not len(able):
            break
        kind = able[speeds[able].argmax()] if random is None else random.choice(able)
        shares[row, kind] = 1.0
        left[kind] -= gpus
    return shares


def _packed(
    jobs: Jobs, states: Sequence[JobView], beside: Beside
) -> dict[Combination, Sequence[float]]:
    """Shares as of `_in_order`, then one job after the other beside the job that suits it best.

    It ends at the first job that no other job suits.
    """
    alone = _in_order(jobs, None)
    kinds = {job: int(row.argmax()) for job, row in enumerate(alone) if row.any()}
    placed: dict[Combination, int] = {(job,): kind for job, kind in kinds.items()}
    for job in range(len(kinds), len(states)):
        gains = {
            one[0]: beside.together(jobs, one[0], job, kind)
            for one, kind in placed.items()
            if len(one) == 1 and jobs.gpus[one[0]] == jobs.gpus[job]
        }
        host = max(gains, key=lambda one: gains[one], default=None)
        if host is None or gains[host] <= FIFO_PACKS_ABOVE:
            break
        placed[host, job] = placed.pop((host,))
    whole = np.eye(len(jobs.capacity)).tolist()
    return {tuple(states[x].handle for x in one): whole[kind] for one, kind in placed.items()}
