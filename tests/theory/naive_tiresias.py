"""A naive simulator of Tiresias: its written rule, without any shortcut (see `naive.py`).

Service and run time are recomputed from the stays of a job. The Gittins index is its definition:
a sum over the sample. Every moment at which a waiting job is to be promoted is a question.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from naive import Cluster, Gpus, Rules, Simulation, State, ticks

from artist.workload.job import Job


@dataclass(frozen=True, kw_only=True)
class TiresiasRules(Rules):
    """The options of Tiresias; services in GPU-ticks. `placement` may be `skew`."""

    preemption: str = "lease"
    thresholds: tuple[int, ...]
    knob: Fraction | None
    past: tuple[int, ...]
    """Services of past jobs for the Gittins index; none for the order of starts."""
    skewed: frozenset[str]
    """Models whose jobs are consolidated."""


class Zero(NamedTuple):
    """When both clocks of a job began, and how long it had held its GPUs by then."""

    at: int
    held: int


class Tiresias(Simulation):
    """One run of Tiresias."""

    rules: TiresiasRules

    def __init__(
        self,
        cluster: Cluster,
        jobs: Sequence[Job],
        rules: TiresiasRules,
        slowdown: Sequence[float],
    ) -> None:
        super().__init__(cluster, jobs, rules, slowdown)
        self.zeros = [Zero(ticks(job.arrival_s), 0) for job in jobs]

    # -- clocks ----------------------------------------------------------------------

    def run_time(self, state: State, now: int) -> int:
        """How long a job has held GPUs since its clocks began."""
        return state.held(now) - self.zeros[state.handle].held

    def service(self, state: State, now: int) -> int:
        """GPUs x run time."""
        return self.run_time(state, now) * state.job.gpus

    def queue(self, state: State, now: int) -> int:
        """How many thresholds its service has reached."""
        return sum(self.service(state, now) >= limit for limit in self.rules.thresholds)

    def due(self, state: State, now: int) -> int | None:
        """The first tick at which a waiting job has waited long enough; None in the first queue."""
        if self.rules.knob is None or state.gpus or not self.queue(state, now):
            return None
        run_time = self.run_time(state, now)
        return self.zeros[state.handle].at + run_time + math.ceil(self.rules.knob * run_time)

    def promote(self, here: list[State], now: int) -> None:
        """The clocks of the jobs that have waited long enough begin again."""
        for state in here:
            due = self.due(state, now)
            if due is not None and due <= now:
                self.zeros[state.handle] = Zero(now, state.held(now))

    def times(self, here: list[State]) -> list[int]:
        """Also when a waiting job is to be promoted. Nothing that counts changes while it waits."""
        dues = [self.due(state, now=-1) for state in here if not state.gpus]
        return super().times(here) + [due for due in dues if due is not None]

    # -- order -----------------------------------------------------------------------

    def rank(self, state: State, now: int) -> tuple[Fraction | float, ...]:
        """Queue, the Gittins index if it is asked for, first start, arrival."""
        queue = self.queue(state, now)
        starts = [stay.start for stay in state.stays] + ([state.start] if state.gpus else [])
        order = (starts[0] if starts else math.inf, state.handle)
        if not self.rules.past:
            return (queue, *order)
        top = (*self.rules.thresholds, math.inf)[queue]
        return (queue, -self.gittins(self.service(state, now), top), *order)

    def gittins(self, attained: int, quantum: float) -> Fraction:
        """P(S - a <= quantum | S > a) / E[min(S - a, quantum) | S > a]."""
        left = [past - attained for past in self.rules.past if past > attained]
        if not left:
            return Fraction(0)
        ends = sum(service <= quantum for service in left)
        return Fraction(ends, sum(int(min(service, quantum)) for service in left))

    def contest(self, here: list[State], now: int) -> dict[int, Gpus]:
        """Promote first."""
        self.promote(here, now)
        return super().contest(here, now)

    def change_hands(self, here: list[State], given: dict[int, Gpus], now: int) -> None:
        """A job that has just lost its GPUs may have waited long enough before."""
        super().change_hands(here, given, now)
        self.promote(here, now)

    # -- placement -------------------------------------------------------------------

    def accept(self, state: State, free: Gpus, now: int) -> Gpus | None:
        """GPUs on which a job would start if these were free; None if it waits."""
        gpus = state.job.gpus
        if self.rules.placement != "skew":
            return super().accept(state, free, now)
        if state.job.model in self.rules.skewed:
            return self.on_fewest_machines(free, gpus)
        return self.cluster.place("any", free, gpus)

    def choose(self, state: State, pool: Gpus, free: Gpus, now: int) -> Gpus | None:
        """Free GPUs if the job accepts some."""
        return self.accept(state, free, now) or self.accept(state, pool, now)

    def on_fewest_machines(self, free: Gpus, gpus: int) -> Gpus | None:
        """In the innermost level that could hold the job, on as few machines as if all were free.

        A unit with the fewest free GPUs comes first, among equals in visiting order.
        """
        cluster = self.cluster
        level = cluster.best_level(gpus)
        empty = dict(enumerate(cluster.sizes))
        units = cluster.units(level)
        needed = [self.shares(empty, level, unit, gpus) for unit in units]
        fewest = min(len(shares) for shares in needed if shares)
        for unit in sorted(units, key=lambda unit: cluster.count(free, level, unit)):
            shares = self.shares(free, level, unit, gpus)
            if len(shares) == fewest:
                taken: Gpus = {}
                for machine, share in shares:
                    cluster._pack(free, cluster.machine, machine, share, taken)
                return taken
        return None

    def shares(self, free: Gpus, level: int, unit: int, gpus: int) -> list[tuple[int, int]]:
        """The machines of a unit that such a job takes, with GPUs; none if the unit has no room."""
        if self.cluster.count(free, level, unit) < gpus:
            return []
        machine = self.cluster.machine
        inside = [unit] if level == machine else self.cluster.units(machine, inside=(level, unit))
        return self.cluster.shares(free, machine, inside, gpus)
