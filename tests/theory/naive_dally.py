"""A naive simulator of Dally: its written rule, without any shortcut (see `naive.py`).

`Dally` has fixed timers. Every moment at which a timer expires is a question. `AutoDally` has tuned
timers: Algorithm 2 in full at every moment. Beyond the rule with fixed timers:

- A job that gets GPUs inside a machine or a rack has accepted an offer. The wait is recorded under
  that level and the number of GPUs: the time since the job entered the queue, and 0 if it moved.
- At every arrival, finish and lease end the timers are tuned from the waits recorded before, if
  these are not older than the window. They are tuned too when a job's timer expires, as it was
  tuned last, so that the job accepts the free GPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from naive import SECOND, Cluster, Gpus, Rules, Simulation, State

from artist.workload.job import Job


@dataclass(frozen=True, kw_only=True)
class DallyRules(Rules):
    """The options of Dally; times in ticks."""

    preemption: str = "lease"
    machine_timer: int
    rack_timer: int
    moves_for_shape: bool


class Dally(Simulation):
    """One run of Dally."""

    rules: DallyRules

    def times(self, here: list[State]) -> list[int]:
        """Also every moment at which a timer expires."""
        return super().times(here) + [
            self.entered(state) + wait
            for state in here
            if not state.gpus
            for wait in self.waits(state.job.gpus)
        ]

    def waits(self, gpus: int) -> list[int]:
        """How long a job of this many GPUs waits for each level, from the machine outwards."""
        waits = [0]
        for level in range(self.cluster.machine, self.cluster.root):
            too_large = self.cluster.best_level(gpus) > level
            waits.append(max(waits[-1], 0 if too_large else self.timer(level, gpus)))
        return waits

    def timer(self, level: int, gpus: int) -> int:
        """How long a job that fits a level waits for it."""
        machine = level == self.cluster.machine
        return self.rules.machine_timer if machine else self.rules.rack_timer

    def rank(self, state: State, now: int) -> tuple[Fraction, int, int]:
        """Nw_sens, then the time of entering the queue. A running job enters it now."""
        entered = now if state.gpus else self.entered(state)
        return self.sensitivity(state, now), entered, state.handle

    def sensitivity(self, state: State, now: int) -> Fraction:
        """Nw_sens: share of the iterations done / share of the ideal run time used."""
        if not state.held(now):
            return Fraction(0)
        done = Fraction(state.job.iterations - state.left(now), state.job.iterations)
        ideal = state.job.iterations * Fraction(str(state.job.compute_s)) * SECOND
        return done / (state.held(now) / ideal)

    def accept(self, state: State, free: Gpus, now: int) -> Gpus | None:
        """GPUs in the innermost level with room, if the job has waited long enough for it."""
        waited = 0 if state.gpus else now - self.entered(state)
        for level, wait in enumerate(self.waits(state.job.gpus), start=self.cluster.machine):
            gpus = self.cluster.in_level(free, level, state.job.gpus)
            if gpus is not None:
                return gpus if waited >= wait else None
        return None

    def stay(self, state: State, pool: Gpus, free: Gpus) -> Gpus:
        """A better level or shape if the pool has one, else its own GPUs; free GPUs first."""
        of_pool, of_free = self.improve(state, pool), self.improve(state, free)
        if of_pool is None:
            return state.gpus
        if of_free and self.cluster.level(of_free) <= self.cluster.level(of_pool):
            return of_free
        return of_pool

    def improve(self, state: State, pool: Gpus) -> Gpus | None:
        """GPUs in a better level or of a better shape; None if there are none."""
        own = self.cluster.level(state.gpus)
        for level in range(self.cluster.machine, own + 1):
            gpus = self.cluster.in_level(pool, level, state.job.gpus)
            if gpus is None:
                continue
            shape = self.rules.moves_for_shape and self.spread(gpus) < self.spread(state.gpus)
            if level < own or shape:
                return gpus
        return None

    def spread(self, gpus: Gpus) -> tuple[int, bool]:
        """Number of machines, and whether their shares differ. Smaller is better."""
        machines: Counter[int] = Counter()
        for leaf, count in gpus.items():
            machines[self.cluster.paths[leaf][self.cluster.machine]] += count
        return len(machines), len(set(machines.values())) > 1


@dataclass(frozen=True, kw_only=True)
class TunedRules(DallyRules):
    """The options of Algorithm 2 too; the window in ticks."""

    window: int
    deviations: float
    population: bool


class Wait(NamedTuple):
    """A recorded wait; times in ticks."""

    level: int
    gpus: int
    at: int
    waited: int


class AutoDally(Dally):
    """One run of Dally with tuned timers. The timers of `rules` hold where no wait is known."""

    rules: TunedRules

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], rules: TunedRules, slowdown: Sequence[float]
    ) -> None:
        super().__init__(cluster, jobs, rules, slowdown)
        self.recorded: list[Wait] = []
        # What the timers are tuned from until the next question.
        self.known: list[Wait] = []

    def times(self, here: list[State]) -> list[int]:
        """Also when a job will accept the free GPUs, by the timers as they are."""
        free = {
            leaf: size - sum(state.gpus.get(leaf, 0) for state in here)
            for leaf, size in enumerate(self.cluster.sizes)
        }
        times = Simulation.times(self, here)
        for state in here:
            room = None if state.gpus else self.level_with_room(free, state.job.gpus)
            if room is not None:
                wait = self.waits(state.job.gpus)[room - self.cluster.machine]
                times.append(self.entered(state) + wait)
        return times

    def level_with_room(self, free: Gpus, gpus: int) -> int | None:
        """The innermost level with a unit that has this many GPUs free."""
        for level in range(self.cluster.machine, self.cluster.root + 1):
            if self.cluster.in_level(free, level, gpus) is not None:
                return level
        return None

    def timer(self, level: int, gpus: int) -> int:
        """Algorithm 2."""
        waits = [wait.waited for wait in self.known if (wait.level, wait.gpus) == (level, gpus)]
        if not waits:
            return super().timer(level, gpus)
        mean = Fraction(sum(waits), len(waits))
        if len(waits) == 1:
            return round(mean)
        of = len(waits) - (0 if self.rules.population else 1)
        variance = sum((wait - mean) ** 2 for wait in waits) / of
        with localcontext() as context:
            context.prec = 60
            root = (Decimal(variance.numerator) / variance.denominator).sqrt()
            timer = Decimal(mean.numerator) / mean.denominator
            timer += Decimal(str(self.rules.deviations)) * root
            return int(timer.to_integral_value(ROUND_HALF_EVEN))

    def contest(self, here: list[State], now: int) -> dict[int, Gpus]:
        """Tune the timers first."""
        self.known = [wait for wait in self.recorded if wait.at >= now - self.rules.window]
        return super().contest(here, now)

    def change_hands(self, here: list[State], given: dict[int, Gpus], now: int) -> None:
        """Record the waits of those that accepted GPUs."""
        for state in here:
            gpus = given.get(state.handle, {})
            if gpus and gpus != state.gpus:
                level = self.cluster.level(gpus)
                waited = 0 if state.gpus else now - self.entered(state)
                if level < self.cluster.root:
                    self.recorded.append(Wait(level, state.job.gpus, now, waited))
        super().change_hands(here, given, now)
