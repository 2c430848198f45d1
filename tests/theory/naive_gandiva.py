"""A naive simulator of Gandiva: its written rule, without any shortcut (see `naive.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from naive import Cluster, Gpus, Rules, Simulation, State

from artist.workload.job import Job


@dataclass(frozen=True, kw_only=True)
class GandivaRules(Rules):
    """The options of Gandiva; a `placement` of "affinity" is the paper's.

    A slice lasts `quantum` ticks. Slices are counted from the tick `origin`. `draw` draws the
    order of machines of a job that fits no machine.
    """

    quantum: int
    migrate: bool
    fragmented_share: Fraction
    draw: Callable[[], Sequence[int]]
    origin: int


class Gandiva(Simulation):
    """One run of Gandiva."""

    rules: GandivaRules

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Job], rules: GandivaRules, slowdown: Sequence[float]
    ) -> None:
        super().__init__(cluster, jobs, rules, slowdown)
        self.drawn: Sequence[int] | None = None
        self.slice_ends: set[int] = set()
        self.demand: dict[int, int] = {}
        """The affinity of a machine. An idle machine has none, whatever stands here."""

    # -- time slices -----------------------------------------------------------------

    def times(self, here: list[State]) -> list[int]:
        """Also the ends of slices."""
        return [*super().times(here), *self.slice_ends]

    def contest(self, here: list[State], now: int) -> dict[int, Gpus]:
        """Serve the waiting jobs, then migrate."""
        given = self.serve(here, now)
        finished = any(job.stays and job.stays[-1][3::3] == (now, "finished") for job in self.jobs)
        if self.rules.migrate and (finished or now in self.slice_ends):
            self.come_closer(here, given)
            self.empty(here, given)
        if len(given) < len(here):  # a job waits: the slice will end
            quantum, origin = self.rules.quantum, self.rules.origin
            self.slice_ends.add(origin + ((now - origin) // quantum + 1) * quantum)
        return given

    def serve(self, here: list[State], now: int) -> dict[int, Gpus]:
        """The GPUs of each job after one round of competition, by handle."""
        contestable = [
            state
            for state in here
            if state.gpus and now in self.slice_ends and state.done_here(now) > 0
        ]
        waiting = [state for state in here if not state.gpus]
        given = {
            state.handle: state.gpus for state in here if state.gpus and state not in contestable
        }
        if not waiting:  # no job competes: every job keeps its GPUs
            return {state.handle: state.gpus for state in here}
        to_come = sorted(waiting, key=lambda state: (self.entered(state), state.handle))
        to_come += sorted(contestable, key=lambda state: (-self.running_since(state), state.handle))
        while to_come:
            state = to_come.pop(0)
            self.drawn = None
            pool, free = self.left_over(given, to_come)
            if state.gpus and all(pool[leaf] >= n for leaf, n in state.gpus.items()):
                given[state.handle] = state.gpus
                self.happened["keeps its GPUs at the end of a slice"] += 1
                continue
            gpus = self.choose(state, pool, free, now)
            if gpus is not None:
                given[state.handle] = gpus
                self.settle(state, gpus, pool)
            self.note(state, gpus, free)
        return given

    def running_since(self, state: State) -> int:
        """When a job that runs last started. A migration does not interrupt its run."""
        since = state.start
        for stay in reversed(state.stays):
            if stay.how != "migrated":
                break
            since = stay.start
        return since

    # -- affinity --------------------------------------------------------------------

    def accept(self, state: State, free: Gpus, now: int) -> Gpus | None:
        """GPUs by affinity, or by one placer."""
        if self.rules.placement != "affinity":
            return super().accept(state, free, now)
        gpus = state.job.gpus
        if sum(free.values()) < gpus:
            return None
        machine = self.machine_for(state, free)
        if machine is not None:
            return self.inside(free, machine, gpus)
        if self.drawn is None:
            self.drawn = self.rules.draw()
        taken: Gpus = {}
        for unit in self.drawn:
            share = min(self.room(free, unit), gpus - sum(taken.values()))
            taken |= self.inside(free, unit, share)
        return taken

    def machine_for(self, state: State, free: Gpus) -> int | None:
        """The machine that a job gets; None if no machine has room."""
        gpus, empty = state.job.gpus, dict(enumerate(self.cluster.sizes))
        machines = [
            unit
            for unit in self.cluster.units(self.cluster.machine)
            if self.room(free, unit) >= gpus
        ]
        idle = [unit for unit in machines if self.room(free, unit) == self.room(empty, unit)]
        busy = [unit for unit in machines if unit not in idle]
        alike = [unit for unit in busy if self.demand[unit] == gpus]
        if self.home(state) in machines:
            self.happened["former machine"] += 1
            return self.home(state)
        # Python's `max` and `min` take the first among equals.
        for kind, units, pick in (
            ("its affinity", alike, max),
            ("idle", idle, min),
            ("other affinity", busy, max),
        ):
            if units:
                self.happened[kind] += 1
                return pick(units, key=lambda unit: self.room(free, unit))
        return None

    def home(self, state: State) -> int | None:
        """The machine on which a job lies, or lay last; None if it had none or several."""
        gpus = state.gpus or (state.stays[-1].gpus if state.stays else {})
        machines = self.cluster.machines(gpus)
        return machines.pop() if len(machines) == 1 else None

    def settle(self, state: State, gpus: Gpus, pool: Gpus) -> None:
        """A job takes GPUs of the pool: an idle machine gets its demand as affinity."""
        empty = dict(enumerate(self.cluster.sizes))
        for unit in self.cluster.machines(gpus):
            if self.room(pool, unit) == self.room(empty, unit):
                self.demand[unit] = state.job.gpus

    # -- migration -------------------------------------------------------------------

    def come_closer(self, here: list[State], given: dict[int, Gpus]) -> None:
        """Jobs on several machines move to a better level, or to fewer machines of it."""
        machine = self.cluster.machine
        spread = [
            state
            for state in self.untouched(here, given)
            if self.cluster.level(state.gpus) > machine
        ]
        for state in sorted(spread, key=lambda s: (-self.cluster.level(s.gpus), s.handle)):
            free, _ = self.left_over({k: v for k, v in given.items() if k != state.handle}, [])
            best = self.cluster.place("pack", free, state.job.gpus)
            assert best is not None  # its own GPUs are free
            if self.spread(best) < self.spread(state.gpus):
                fewer = self.cluster.level(best) == self.cluster.level(state.gpus)
                self.happened["to fewer machines" if fewer else "to a better level"] += 1
                given[state.handle] = best
                self.settle(state, best, free)

    def empty(self, here: list[State], given: dict[int, Gpus]) -> None:
        """Move the jobs of nearly empty machines to fuller ones."""
        free, _ = self.left_over(given, [])
        empty = dict(enumerate(self.cluster.sizes))
        share = self.rules.fragmented_share
        sources = [
            unit
            for unit in self.cluster.units(self.cluster.machine)
            if share * self.room(empty, unit) <= self.room(free, unit) < self.room(empty, unit)
        ]
        # Python's sort is stable: among equals the first in visiting order.
        for source in sorted(sources, key=lambda unit: -self.room(free, unit)):
            inside = [
                s for s in self.untouched(here, given) if self.cluster.machines(s.gpus) == {source}
            ]
            for state in sorted(inside, key=lambda s: (s.job.gpus, s.handle)):
                now_free, _ = self.left_over(given, [])
                targets = [
                    unit
                    for unit in self.cluster.units(self.cluster.machine)
                    if state.job.gpus <= self.room(now_free, unit) < self.room(now_free, source)
                    and self.room(now_free, unit) < self.room(empty, unit)
                ]
                if targets:
                    target = min(targets, key=lambda unit: self.room(now_free, unit))
                    given[state.handle] = self.inside(now_free, target, state.job.gpus)
                    self.settle(state, given[state.handle], now_free)
                    self.happened["out of a nearly empty machine"] += 1

    def untouched(self, here: list[State], given: dict[int, Gpus]) -> list[State]:
        """Running jobs that nothing happened to at this question."""
        return [s for s in here if s.gpus and given.get(s.handle) == s.gpus]

    # -- GPUs ------------------------------------------------------------------------

    def spread(self, gpus: Gpus) -> tuple[int, int]:
        """Level, then number of machines. Smaller is better."""
        return self.cluster.level(gpus), len(self.cluster.machines(gpus))

    def room(self, free: Gpus, machine: int) -> int:
        return self.cluster.count(free, self.cluster.machine, machine)

    def inside(self, free: Gpus, machine: int, gpus: int) -> Gpus:
        taken: Gpus = {}
        self.cluster._pack(free, self.cluster.machine, machine, gpus, taken)
        return taken

    def note(self, state: State, gpus: Gpus | None, free: Gpus) -> None:
        """Count what happened to a job that came forward."""
        if gpus is None:
            self.happened["suspended" if state.gpus else "passed"] += 1
            return
        if state.gpus:
            self.happened["moves in a contest"] += 1
        if any(free[leaf] < n for leaf, n in gpus.items()):
            self.happened["takes GPUs of a running job"] += 1
        if self.drawn is not None:
            self.happened["scattered"] += 1
