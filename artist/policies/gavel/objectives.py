"""From the jobs that are here to their shares of time, by the objective that was chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.contract import JobView
from artist.policies.gavel.allocation import (
    Floats,
    Jobs,
    agnostic,
    fairest,
    isolated,
    least_attained_service,
    makespan,
    per_cost,
)
from artist.policies.options import GavelOptions
from artist.rng import Draws
from artist.units import TICKS_PER_S, Tick, ticks


class Objective:
    """An objective, and what finish-time fairness remembers of jobs: progress in isolation."""

    def __init__(self, options: GavelOptions, draws: Draws) -> None:
        self._options, self._random = options, draws.stream("gavel-fifo")
        self._isolated_s: dict[int, float] = {}
        """How long the work that a job has done would have taken in isolation."""
        self._last: dict[int, tuple[float, float]] = {}
        """Work left, and work per second in isolation, when shares were computed."""

    def forget(self, handle: int) -> None:
        """A job has finished."""
        self._isolated_s.pop(handle, None)
        self._last.pop(handle, None)

    def shares(
        self,
        states: Sequence[JobView],
        speeds: Sequence[Sequence[float]],
        capacity: Sequence[int],
        prices: Sequence[float],
        now: Tick,
    ) -> dict[int, Sequence[float]]:
        """Handle -> share of time on each kind. Every job can run on some kind.

        Work is counted in seconds on a job's fastest kind, in whole ticks: so it does not matter
        into which iterations a job is cut.
        """
        if not states:
            return {}
        gpus, sizes = np.array([x.job.gpus for x in states], float), np.array(capacity, float)
        known = np.array(speeds)
        best = known.max(axis=1)
        known /= best[:, None]
        known[gpus[:, None] > sizes[None, :]] = 0.0
        jobs = Jobs(known if self._options.aware else agnostic(known), gpus, sizes)
        rows: list[list[float]] = self._solved(jobs, states, best, prices, now).tolist()
        return {state.handle: row for state, row in zip(states, rows, strict=True)}

    def _solved(
        self,
        jobs: Jobs,
        states: Sequence[JobView],
        best: Floats,
        prices: Sequence[float],
        now: Tick,
    ) -> Floats:
        """[J, K] shares."""
        match self._options.objective:
            case "fifo":
                return _in_order(jobs, None if self._options.aware else self._random)
            case "las":
                return least_attained_service(jobs).shares
            case "cost":
                # Iterations per second count here, as in the authors' program.
                return per_cost(
                    jobs._replace(speeds=jobs.speeds * best[:, None]), np.array(prices)
                ).shares
            case "makespan":
                return makespan(jobs, _left_s(states, best, now)).shares
            case "ftf":
                return self._fairest(jobs, states, _left_s(states, best, now), now)

    def _fairest(self, jobs: Jobs, states: Sequence[JobView], steps: Floats, now: Tick) -> Floats:
        waited = [(now - ticks(x.job.arrival_s)) / TICKS_PER_S for x in states]
        isolated_s = self._in_isolation(states, steps, isolated(jobs))
        return fairest(jobs, steps, np.array(waited), isolated_s).shares

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
    """[J] how long each job would run on its fastest kind from now on, seconds; at least a tick."""
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
