"""A naive simulator of the classic policies: their written rules, without any shortcut.

- Nothing is remembered that can be counted again. Free GPUs are counted from the GPUs that jobs
  hold.
- Every arrival, finish and lease end is a contest, and every job that may come forward does.
- Progress is whole iterations; an iteration takes a fraction of ticks.
- Of artist's code only `Job` is used. A cluster is what a user writes: nested lists of GPU counts.

GPUs are a dict, leaf -> number of GPUs, whether a job holds them or they are free.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from artist.workload.job import Job

SECOND = 10**9
Nested: TypeAlias = "int | Sequence[Nested]"
Gpus = dict[int, int]


def ticks(seconds: float) -> int:
    """Seconds in whole nanoseconds."""
    return round(seconds * SECOND)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The options of a classic policy. The other naive simulators add theirs."""

    order: str = ""
    preemption: str = "never"
    strict: bool = False
    placement: str = ""
    lease: int = 0
    """In ticks."""


class Stay(NamedTuple):
    """A job's time on one placement, in ticks. `job` is its handle."""

    job: int
    gpus: Gpus
    start: int
    end: int
    iterations: int
    stalled: int
    how: str
    """How it ended: finished, preempted or migrated."""


class Cluster:
    """The leaves of a cluster. `paths` has per leaf the numbers of the units around it, by level.

    `turns` has per level and unit its turn in the visiting order.
    """

    def __init__(self, names: Sequence[str], spec: Nested, turns: Sequence[Sequence[int]]) -> None:
        self.machine = list(names).index("machine")
        self.root = len(names) - 1
        self.turns = turns
        self.sizes: list[int] = []
        self.paths: list[tuple[int, ...]] = []
        self._visit(spec, self.root, (), [0] * len(names))

    def _visit(self, spec: Nested, level: int, around: tuple[int, ...], next_: list[int]) -> None:
        path = (next_[level], *around)
        next_[level] += 1
        if isinstance(spec, int):
            self.sizes.append(spec)
            self.paths.append(path)
        else:
            for part in spec:
                self._visit(part, level - 1, path, next_)

    def units(self, level: int, inside: tuple[int, int] | None = None) -> list[int]:
        """Units of a level in visiting order: all, or those inside a unit (level, number)."""
        units = {
            path[level] for path in self.paths if inside is None or path[inside[0]] == inside[1]
        }
        return sorted(units, key=lambda unit: self.turns[level][unit])

    def count(self, gpus: Gpus, level: int, unit: int) -> int:
        """How many of these GPUs lie in a unit."""
        return sum(n for leaf, n in gpus.items() if self.paths[leaf][level] == unit)

    def level(self, gpus: Gpus) -> int:
        """The outermost level that these GPUs span: machine, rack or network."""
        spanned = (
            level
            for level in range(self.machine, self.root + 1)
            if len({self.paths[leaf][level] for leaf in gpus}) == 1
        )
        return min(spanned)

    def best_level(self, gpus: int) -> int:
        """The innermost level, machine or outer, with a unit of at least this many GPUs."""
        empty = dict(enumerate(self.sizes))
        return min(
            level
            for level in range(self.machine, self.root + 1)
            if max(self.count(empty, level, unit) for unit in self.units(level)) >= gpus
        )

    def place(self, placer: str, free: Gpus, gpus: int) -> Gpus | None:
        """GPUs for a job of this many; None if it waits."""
        if placer == "any":
            return self._any(free, gpus)
        if placer == "consolidate-or-wait":
            return self.in_level(free, self.best_level(gpus), gpus)
        for level in range(self.machine, self.root + 1):
            taken = self.in_level(free, level, gpus)
            if taken is not None:
                return taken
        return None

    def _any(self, free: Gpus, gpus: int) -> Gpus | None:
        if sum(free.values()) < gpus:
            return None
        taken: Gpus = {}
        for machine in self.units(self.machine):
            share = min(gpus - sum(taken.values()), self.count(free, self.machine, machine))
            self._pack(free, self.machine, machine, share, taken)
        return taken

    def in_level(self, free: Gpus, level: int, gpus: int) -> Gpus | None:
        """GPUs of the unit of a level with the fewest free GPUs that suffice; None if none has."""
        room = [unit for unit in self.units(level) if self.count(free, level, unit) >= gpus]
        if not room:
            return None
        taken: Gpus = {}
        fullest = min(room, key=lambda unit: self.count(free, level, unit))
        self._pack(free, level, fullest, gpus, taken)
        return taken

    def _pack(self, free: Gpus, level: int, unit: int, gpus: int, taken: Gpus) -> None:
        """Add GPUs of a unit to `taken`, child by child."""
        if gpus == 0:
            return
        if level == 0:
            taken[unit] = gpus
            return
        children = self.units(level - 1, inside=(level, unit))
        for child, share in self.shares(free, level - 1, children, gpus):
            self._pack(free, level - 1, child, share, taken)

    def shares(self, free: Gpus, level: int, units: list[int], gpus: int) -> list[tuple[int, int]]:
        """Which of the units a job takes one after the other, and how many GPUs of each.

        The next unit is the one with the fewest free GPUs that hold the rest. If no unit can hold
        the rest, the unit with most free GPUs is taken whole.
        """
        counts = {unit: self.count(free, level, unit) for unit in units}
        shares = []
        while gpus:
            enough = [unit for unit in counts if counts[unit] >= gpus]
            if enough:
                unit = min(enough, key=lambda unit: counts[unit])
            else:
                unit = max(counts, key=lambda unit: counts[unit])
            share = min(gpus, counts.pop(unit))
            shares.append((unit, share))
            gpus -= share
        return shares

    def machines(self, gpus: Gpus) -> set[int]:
        """The machines on which GPUs lie."""
        return {self.paths[leaf][self.machine] for leaf in gpus}


@dataclass
class State:
    """A job that has arrived and not finished."""

    job: Job
    handle: int
    gpus: Gpus = field(default_factory=dict)
    start: int = 0
    ready: int = 0
    """When it got its GPUs (`start`), and when it is restored and begins to iterate (`ready`)."""
    iteration: Fraction = Fraction(0)
    """In ticks."""
    done_before: int = 0
    held_before: int = 0
    """Whole iterations, and time with GPUs, before its present GPUs."""
    stays: list[Stay] = field(default_factory=list)

    def boundary(self, iterations: int) -> int:
        """When it has done this many iterations on its present GPUs."""
        return self.ready + math.ceil(iterations * self.iteration)

    def finish(self) -> int:
        """When it has done all its iterations."""
        return self.boundary(self.job.iterations - self.done_before)

    def done_here(self, now: int) -> int:
        """Whole iterations done on its present GPUs."""
        if not self.gpus:
            return 0
        done = 0
        while self.boundary(done + 1) <= now:
            done += 1
        return done

    def left(self, now: int) -> int:
        """Iterations that are not done."""
        return self.job.iterations - self.done_before - self.done_here(now)

    def held(self, now: int) -> int:
        """Time for which it has held GPUs."""
        return self.held_before + (now - self.start if self.gpus else 0)

    def lease_ends(self, lease: int) -> list[int]:
        """The first boundary at or after each multiple of the lease since it got its GPUs.

        The end of the last iteration is no boundary: the job finishes there.
        """
        ends = []
        for n in range(1, self.job.iterations - self.done_before):
            before = self.start if n == 1 else self.boundary(n - 1)
            multiples = (self.boundary(n) - self.start) // lease - (before - self.start) // lease
            if multiples:
                ends.append(self.boundary(n))
        return ends


class Simulation:
    """One run. `slowdown` is the time of an iteration per second of compute, by level spanned.

    `happened` counts by name how often a part of a rule decided something.
    """

    state = State
    rules: Any

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], rules: Rules, slowdown: Sequence[float]
    ) -> None:
        self.cluster = cluster
        self.rules = rules
        self.slowdown = slowdown
        self.jobs = [self.state(job, handle) for handle, job in enumerate(jobs)]
        self.happened: Counter[str] = Counter()

    def run(self) -> list[list[Stay]]:
        """The stays of every job, in order of time."""
        arriving = list(self.jobs)
        here: list[State] = []
        now = -1
        while arriving or here:
            running = [state for state in here if state.gpus]
            times = [ticks(state.job.arrival_s) for state in arriving]
            now = min(time for time in times + self.times(here) if time > now)
            for state in running:
                if state.finish() == now:
                    self.leave(state, now, "finished")
                    here.remove(state)
            here += [state for state in arriving if ticks(state.job.arrival_s) == now]
            arriving = [state for state in arriving if ticks(state.job.arrival_s) > now]
            self.change_hands(here, self.contest(here, now), now)
        return [state.stays for state in self.jobs]

    def times(self, here: list[State]) -> list[int]:
        """When running jobs finish or come to the end of a lease. `here`: jobs in the system."""
        running = [state for state in here if state.gpus]
        times = [state.finish() for state in running]
        if self.rules.preemption == "lease":
            times += [end for state in running for end in state.lease_ends(self.rules.lease)]
        return times

    def entered(self, state: State) -> int:
        """When a waiting job entered the queue: it arrived, or was preempted."""
        return state.stays[-1].end if state.stays else ticks(state.job.arrival_s)

    def rank(self, state: State, now: int) -> tuple[Any, ...]:
        """The job with the smallest rank comes forward first."""
        compute = Fraction(str(state.job.compute_s))
        first = {
            "arrival": Fraction(0),
            "length": state.job.iterations * compute,
            "remaining": state.left(now) * compute,
            "area": state.left(now) * compute * state.job.gpus,
            "service": Fraction(state.held(now) * state.job.gpus),
        }
        return first[self.rules.order], state.handle

    def contest(self, here: list[State], now: int) -> dict[int, Gpus]:
        """The GPUs that each job holds from now on, by handle. The other jobs hold none."""
        running = [state for state in here if state.gpus]
        if self.rules.preemption == "at-once":
            contestable = running
        elif self.rules.preemption == "lease":
            contestable = [state for state in running if now in state.lease_ends(self.rules.lease)]
        else:
            contestable = []
        given = {state.handle: state.gpus for state in running if state not in contestable}
        waiting = [state for state in here if not state.gpus]
        to_come = sorted(waiting + contestable, key=lambda state: self.rank(state, now))
        passing = True
        while to_come:
            state = to_come.pop(0)
            pool, free = self.left_over(given, to_come)
            if state.gpus and all(pool[leaf] >= n for leaf, n in state.gpus.items()):
                given[state.handle] = self.stay(state, pool, free)
                continue
            gpus = self.choose(state, pool, free, now) if passing or state.gpus else None
            if gpus is not None:
                given[state.handle] = gpus
            elif self.rules.strict:
                passing = False
        return given

    def left_over(self, given: dict[int, Gpus], to_come: list[State]) -> tuple[Gpus, Gpus]:
        """The pool, and the free GPUs in it: those that no job to come holds."""
        pool = {
            leaf: size - sum(gpus.get(leaf, 0) for gpus in given.values())
            for leaf, size in enumerate(self.cluster.sizes)
        }
        free = {
            leaf: max(0, left - sum(state.gpus.get(leaf, 0) for state in to_come))
            for leaf, left in pool.items()
        }
        return pool, free

    def stay(self, state: State, pool: Gpus, free: Gpus) -> Gpus:
        """The GPUs from now on of a contestable job that lost none of its GPUs."""
        return state.gpus

    def accept(self, state: State, free: Gpus, now: int) -> Gpus | None:
        """GPUs on which a job would start if these were free; None if it waits."""
        return self.cluster.place(self.rules.placement, free, state.job.gpus)

    def choose(self, state: State, pool: Gpus, free: Gpus, now: int) -> Gpus | None:
        """Free GPUs, unless the pool offers a better level."""
        of_pool = self.accept(state, pool, now)
        of_free = self.accept(state, free, now)
        if of_pool is None or of_free is None:
            return of_pool or of_free
        better = self.cluster.level(of_pool) < self.cluster.level(of_free)
        return of_pool if better else of_free

    def change_hands(self, here: list[State], given: dict[int, Gpus], now: int) -> None:
        """Stop the jobs that lose GPUs or move, and start the jobs that get GPUs or move."""
        for state in here:
            gpus = given.get(state.handle, {})
            if gpus == state.gpus:
                continue
            if state.gpus:
                self.leave(state, now, "migrated" if gpus else "preempted")
            if gpus:
                restart_s = state.job.restart_s if state.stays else 0
                state.gpus, state.start = gpus, now
                state.ready = now + ticks(restart_s)
                iteration_s = state.job.compute_s * self.slowdown[self.cluster.level(gpus)]
                state.iteration = Fraction(str(iteration_s)) * SECOND

    def leave(self, state: State, now: int, how: str) -> None:
        """A job leaves its GPUs. It keeps its whole iterations."""
        iterations, stalled = state.done_here(now), min(now, state.ready) - state.start
        stay = Stay(state.handle, state.gpus, state.start, now, iterations, stalled, how)
        state.stays.append(stay)
        state.done_before += iterations
        state.held_before += now - state.start
        state.gpus = {}
