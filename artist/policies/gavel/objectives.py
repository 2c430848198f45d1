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
        """How long the iterations that a job has done would have taken in isolation."""
        self._last: dict[int, tuple[float, float]] = {}
        """Iterations left, and iterations per second in isolation, when shares were computed."""

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
        """Handle -> share of time on each kind. Every job can run on some kind."""
        if not states:
            return {}
        gpus, sizes = np.array([x.job.gpus for x in states], float), np.array(capacity, float)
        known = np.array(speeds)
        known[gpus[:, None] > sizes[None, :]] = 0.0
        jobs = Jobs(known if self._options.aware else agnostic(known), gpus, sizes)
        rows: list[list[float]] = self._solved(jobs, states, np.array(prices), now).tolist()
        return {state.handle: row for state, row in zip(states, rows, strict=True)}

    def _solved(self, jobs: Jobs, states: Sequence[JobView], prices: Floats, now: Tick) -> Floats:
        """[J, K] shares."""
        match self._options.objective:
            case "fifo":
                return _in_order(jobs, None if self._options.aware else self._random)
            case "las":
                return least_attained_service(jobs).shares
            case "cost":
                return per_cost(jobs, prices).shares
            case "makespan":
                return makespan(jobs, _steps_left(states, now)).shares
            case "ftf":
                return self._fairest(jobs, states, now)

    def _fairest(self, jobs: Jobs, states: Sequence[JobView], now: Tick) -> Floats:
        steps = _steps_left(states, now)
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


def _steps_left(states: Sequence[JobView], now: Tick) -> Floats:
    """[J] iterations that are not done; at least one, since the jobs are here."""
    left = [state.job.iterations - state.iterations_done(now) for state in states]
    return np.array([max(count, 1) for count in left], float)


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
