"""Gavel: shares of time on kinds of GPUs by linear programs, kept by rounds.

Source: Narayanan et al., *Heterogeneity-aware cluster scheduling policies for deep learning
workloads*, OSDI 2020; rules that the paper leaves open are those of its program (scheduler.py).

**What is where.** Sections 3 and 4, objectives: `allocation.py`. Section 5, rounds: here and in
`time_fractions.py`. Section 3.1, pairs of jobs: `space_sharing.py`.

**Allocation.** The objective gives each job a share of time on each kind. It is computed at the
beginning of a round if jobs (under `fifo` and `cost`, also GPUs) have come or gone since, and the
last time is at least `reset_s` ago or no job runs. Then the time that jobs have received is counted
from zero. The speed of a job on a kind is that of the estimate on the closest GPUs of an empty
cluster; 0 on kinds that the job does not accept or that have too few GPUs.

| option `objective` | rule |
| --- | --- |
| `las` | max-min fairness: the least of GPUs x speed / (speed with an equal part of every kind) |
| `ftf` | the smallest maximum of finish-time fairness |
| `makespan` | all jobs that are here finish as early as possible |
| `fifo` | in order of arrival, each job gets its fastest kind with room; none passes |
| `cost` | the largest sum of speed / price (scenario setting `prices`) |

With `aware=false` all kinds count as equally fast, and kinds are visited in random order.

**Rounds.** All jobs are placed together every `round_s`. On each kind, the one with the fastest
speeds first, jobs come forward by

    priority = share / part received,    part received = its time on the kind / that of all jobs

and start if enough GPUs of the kind are left. Among equals, those that were owed most time at
earlier allocations come first, then those with the larger share. Jobs without a share on a kind
only get what others leave there, even if they have one on a kind that comes later; under `fifo`
and `cost` they get nothing there. A job keeps its GPUs if it stays on their kind and no larger job
took them. Others are packed, the largest first. A job that arrives during a round waits for the
next one, and GPUs that become free stay free until then. If no job runs, a round begins at once.

**Space sharing** (`space_sharing`, off by default). Two jobs of as many GPUs may hold the same
ones. The programs give shares of time to such pairs, too, by how fast the jobs are beside each
other (`interference`). A pair with a share comes forward as a job does, unless one of its jobs has
a place already; then the jobs of a pair in place come forward no more. It lies where one of its
jobs lies, if that is possible. Under `fifo`, once a job has no room, it and those after it join the
job with which they do most together, each over alone, if that is more than 1.5, until one finds
none.

**Checked.** `las`, `ftf`, `makespan` and `cost` have the optimum of the authors' program on random
instances of its throughputs (tests/policies/gavel); with space sharing that of the program over
all pairs.

**Deviations.**

- A round lasts `round_s`, not until the last job of it has done a whole number of steps.
- Of several optima, `las` and `ftf` take the one at which the authors' solver ends, `ftf` with
  speeds over the job's best. With space sharing or `optimum=vertex`, they take the one where jobs
  do most.
- A job that has come since shares were computed gets GPUs that are left, but for `fifo` and `cost`.
  In the authors' program it waits for shares, and the GPUs stay free.
- Under `cost`, jobs get only kinds on which they have a share. In the authors' program they get all
  that are left, at any price. On two of its traces of 800 jobs, with gangs and without, GPU time
  costs 19 and 22 % less than under `las`.
- With `aware=false`, work is time on a job's fastest kind under `ftf` and `makespan`. In the
  authors' program it is time on V100s.
- `makespan` is the optimum, which the authors' program searches within 5 %.
- Under `fifo` with `aware=false` a job gets a random kind with room at each allocation, not once.
- A pair without a share does not come forward. In the authors' program it may get what others
  leave. There the first job without room under `fifo` joins nobody, if nobody suits, and is lost to
  the search for the others; here the search ends.
- If one job of a pair finishes, the time since the begin of the round counts for the other alone,
  which has their share until the next allocation. In the authors' program it is lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.kinds import free_of_kinds, prices_of
from artist.cluster.placement import Placement
from artist.cluster.tree import gpus_by_kind
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wake,
)
from artist.errors import ConfigError
from artist.io.optional_libraries import check_extra
from artist.policies.gavel.objectives import Objective
from artist.policies.gavel.options import GavelOptions
from artist.policies.gavel.space_sharing import JOBS_PER_GPU, SpeedsBeside
from artist.policies.gavel.time_fractions import Combination, TimeFractions
from artist.policies.shared.closest import ClosestGpus, refuse_unplaceable
from artist.policies.shared.placers import PackPlacer
from artist.policies.shared.round_waits import RoundWaits
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks
from artist.workload.job import Job


class Gavel(BasePolicy):
    """Gavel; jobs share GPUs with `space_sharing`."""

    Options: ClassVar = GavelOptions
    reads_gpu_kinds = True

    def __init__(
        self,
        options: GavelOptions,
        draws: Draws = FIRST_DRAWS,
        prices: Mapping[str, float] | float | None = None,
    ) -> None:
        check_extra("policy gavel", "scipy", extra="exact")
        self.options, self._prices = options, prices
        self._price_of: Sequence[float] = ()
        """The price of a GPU-hour of each kind; all 1 unless the objective is cost."""
        self._random = draws.stream("gavel-kinds")
        self._round, self._reset = ticks(options.round_s), ticks(options.reset_s)
        self._round_end: Tick = 0
        self._kinds: tuple[str, ...] = ()
        self._kind_of_leaf: tuple[int, ...] = ()
        """The index of the kind of each leaf's GPUs."""
        self._fractions = TimeFractions(self._round)
        self._changed = False
        """Whether jobs have come or gone since shares were computed."""
        self._only_shares = options.objective in ("fifo", "cost")
        self._shared_out: Sequence[int] = ()
        """The GPUs of each kind for which shares were computed."""
        self._speeds: dict[tuple[str, float, int, tuple[str, ...]], tuple[float, ...]] = {}
        self._of_job: dict[int, tuple[float, ...]] = {}
        """The speeds of the jobs that are here, by handle."""
        self._closest = ClosestGpus()
        self._objective = Objective(options, draws)
        self._beside = SpeedsBeside() if options.space_sharing else None
        self.jobs_per_gpu = JOBS_PER_GPU if options.space_sharing else 1
        self._waits = RoundWaits(ticks(options.round_s), one_kind=True)

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Place all jobs again if a round begins."""
        if not self._kinds:
            self._learn(view)
        for handle in view.finished:
            self._fractions.leave(handle)
            del self._of_job[handle]
            self._objective.forget(handle)
            self._changed = True
        for state in view.entered:
            if state.handle not in self._fractions:
                self._check(state, view)
                self._fractions.enter(state.handle, len(self._kinds))
                self._changed = True
        goes_on, self.in_round = self._waits.goes_on(view), True
        if view.running and not goes_on:
            late = -(-(view.now - self._round_end) // self._round)
            self._round_end += max(late, 0) * self._round
            if view.now < self._round_end:
                self.in_round = False
                waits = view.waiting or view.finished
                return [
                    *self._waits.between(view, self._round_end),
                    *([Wake(self._round_end)] if waits else []),
                ]
        if not goes_on:
            self._round_end = view.now + self._round
        present = self._present(view)
        chosen = self._chosen(view, present)
        decisions = self._placed(view, chosen, present)
        reasons = self._waits.begun(view, decisions)
        return [*decisions, *reasons, *self._next_round(view, chosen)]

    # -- what is known of jobs and kinds -----------------------------------------------

    def _learn(self, view: ClusterView) -> None:
        tree = view.cluster
        self._kinds = tuple(gpus_by_kind(tree))
        of_machine = [self._kinds.index(kind) for kind in tree.kinds]
        self._kind_of_leaf = tuple(of_machine[machine] for machine in tree.machine_of)
        prices = self._prices if self.options.objective == "cost" else 1.0
        if prices is None:
            raise ConfigError(
                "policy gavel: objective cost needs the price of a GPU-hour of each kind; add "
                f"--set 'prices={{{self._kinds[0]}: 1.0, ...}}'"
            )
        self._price_of = [*prices_of(tree, prices).values()]

    def _check(self, state: JobView, view: ClusterView) -> None:
        """Refuse a job that no kind could ever hold.

        Raises:
            TraceError: names the job and its kinds.
        """
        speeds = self._of_job[state.handle] = self._speeds_of(state.job, view)
        if not any(speeds):
            refuse_unplaceable(state.job, state.job.gpus, self._kinds)

    def _speeds_of(self, job: Job, view: ClusterView) -> tuple[float, ...]:
        """Iterations per second on the closest GPUs of each kind; 0 where it cannot run."""
        key = (job.model, job.compute_s, job.gpus, job.gpu_kinds)
        if key not in self._speeds:
            of_kinds = (self._closest.speed(view, job, job.gpus, kind) for kind in self._kinds)
            self._speeds[key] = tuple(of_kinds)
        return self._speeds[key]

    # -- a round ---------------------------------------------------------------------------

    def _chosen(
        self, view: ClusterView, present: Mapping[Combination, int]
    ) -> dict[Combination, int]:
        """The combinations that run in this round, and the indices of their kinds.

        `present` has the same for the combinations that run now.
        """
        jobs = {**view.waiting, **view.running}
        self._fractions.account(jobs, present, view.now)
        left = self._left(view)
        movable = [x for x in sorted(jobs) if x in view.waiting or view.frees(view.running[x])]
        speeds = {handle: self._of_job[handle] for handle in movable}
        due = self._fractions.may_reset(view.now, self._reset) or not view.running
        changed = self._changed or (self._only_shares and left != self._shared_out)
        if changed and due:
            able = [jobs[x] for x in movable if _fits(jobs[x].job, speeds[x], left)]
            self._share_out(able, [speeds[state.handle] for state in able], left, view)
        chosen: dict[Combination, int] = {}
        taken = set[int]()
        which = [*self._fractions.pairs(speeds), *((handle,) for handle in movable)]
        for kind in self._visited(speeds):
            which = [one for one in which if taken.isdisjoint(one)]
            runs_here = {handle for handle, of_kinds in speeds.items() if of_kinds[kind] > 0}
            run = [one for one in which if runs_here.issuperset(one)]
            for one in self._fractions.by_priority(kind, run) if run and left[kind] else ():
                gpus = jobs[one[0]].job.gpus
                if gpus > left[kind] or not taken.isdisjoint(one):
                    continue
                alone = len(one) == 1 and not self._only_shares
                if alone or self._fractions.share(one, kind) > 0:
                    chosen[one] = kind
                    taken.update(one)
                    left[kind] -= gpus
                    if not left[kind]:
                        break
        return chosen

    def _left(self, view: ClusterView) -> list[int]:
        """How many GPUs of each kind are free, or held by jobs that may lose them."""
        left = [0] * len(self._kinds)
        for kind, gpus in zip(self._kind_of_leaf, view.free.leaves, strict=True):
            left[kind] += gpus
        for state in view.running.values():
            if _gives_up(view, state):
                left[self._kind_of(state)] += state.gpus
        return left

    def _present(self, view: ClusterView) -> dict[Combination, int]:
        """The combinations that run now, and the indices of their kinds."""
        return {_together(state): self._kind_of(state) for state in view.running.values()}

    def _kind_of(self, state: JobView) -> int:
        """The index of the kind of a running job's GPUs."""
        assert state.placement is not None  # running jobs have GPUs
        return self._kind_of_leaf[state.placement.leaves[0]]

    def _share_out(
        self,
        states: Sequence[JobView],
        speeds: Sequence[Sequence[float]],
        capacity: Sequence[int],
        view: ClusterView,
    ) -> None:
        """Recompute shares of time."""
        beside = None if self._beside is None else self._beside.among(view, states, self._kinds)
        shares = self._objective.shares(states, speeds, capacity, self._price_of, view.now, beside)
        self._fractions.reset(shares, view.now)
        self._changed, self._shared_out = False, [*capacity]

    def _visited(self, speeds: dict[int, tuple[float, ...]]) -> list[int]:
        """The kinds by how fast jobs are there on average; in random order if that is ignored."""
        kinds = range(len(self._kinds))
        if not self.options.aware:
            return [int(kind) for kind in self._random.permutation(len(self._kinds))]
        relative = [math.fsum(row[kind] / max(row) for row in speeds.values()) for kind in kinds]
        return sorted(kinds, key=lambda kind: (-relative[kind], kind))

    def _placed(
        self,
        view: ClusterView,
        chosen: Mapping[Combination, int],
        present: Mapping[Combination, int],
    ) -> list[Decision]:
        """Decisions that give chosen jobs GPUs of their kinds, and take the GPUs of the others."""
        here: dict[int, list[Combination]] = {}
        for one, kind in chosen.items():
            here.setdefault(kind, []).append(one)
        found: dict[Combination, _Place] = {}
        stay = set[Combination]()
        moving: dict[int, list[Combination]] = {}
        for kind, which in sorted(here.items()):
            # Jobs at least as large as every one that comes keep their GPUs: they are placed first.
            least = max((_gpus(view, one) for one in which if present.get(one) != kind), default=0)
            for one in which:
                if present.get(one) == kind and _gpus(view, one) >= least:
                    stay.add(one)
                else:
                    moving.setdefault(kind, []).append(one)
        if moving:
            pool = view.free.copy()
            for state in view.running.values():
                if state.placement and _gives_up(view, state) and _together(state) not in stay:
                    pool.release(state.placement)
            for kind, which in moving.items():
                found |= _packed(view, free_of_kinds(pool, (self._kinds[kind],)), which)
        placed = {handle for one in (*stay, *found) for handle in one}
        decisions: list[Decision] = [
            Preempt(handle, "other jobs have the round")
            for handle, state in view.running.items()
            if handle not in placed and view.frees(state)
        ]
        for one, (placement, lie) in found.items():
            host = lie[0] if lie else None
            for handle in one:
                if handle in lie:
                    continue
                if handle in view.waiting:
                    decisions.append(Start(handle, placement, beside=host))
                else:
                    decisions.append(Migrate(handle, placement, beside=host))
                host = handle if host is None else host
        return decisions

    # -- when the next round begins ------------------------------------------------------

    def _next_round(self, view: ClusterView, chosen: Mapping[Combination, int]) -> list[Decision]:
        """A wake-up at the end of the round, if another one could change anything."""
        waits = len(chosen) < len(view.waiting) + len(view.running)  # or shares GPUs
        worths = ((self._worth(x), kind) for one, kind in chosen.items() for x in one)
        if self.options.aware:
            moves = any(worth[kind] < max(worth) for worth, kind in worths)
        else:  # to the kinds that the next round visits first
            moves = len(self._kinds) > 1 and self.options.objective != "fifo"
        return [Wake(self._round_end)] if chosen and (waits or moves) else []

    def _worth(self, handle: int) -> list[float]:
        """A job's speed / price on each kind."""
        return [x / price for x, price in zip(self._of_job[handle], self._price_of, strict=True)]


class _Place(NamedTuple):
    """The placement of a combination, and which of its jobs are there already."""

    placement: Placement
    stay: Sequence[int]


def _together(state: JobView) -> Combination:
    alone = (state.handle,)
    return tuple(sorted(alone + state.beside)) if state.beside else alone


def _gives_up(view: ClusterView, state: JobView) -> bool:
    """Whether a running job may lose its GPUs. Of two jobs that share some, the first counts."""
    return (not state.beside or state.handle < state.beside[0]) and view.frees(state)


def _gpus(view: ClusterView, one: Combination) -> int:
    return (view.waiting.get(one[0]) or view.running[one[0]]).job.gpus


def _fits(job: Job, speeds: Sequence[float], left: Sequence[int]) -> bool:
    """Whether some kind that the job runs on has enough GPUs left for it."""
    return any(speed and job.gpus <= gpus for speed, gpus in zip(speeds, left, strict=True))


def _packed(
    view: ClusterView, free: FreeGpus, which: Sequence[Combination]
) -> dict[Combination, _Place]:
    """Placements on one kind, the largest jobs first. Of one size, jobs that can stay are first."""
    jobs = {x: view.waiting.get(x) or view.running[x] for one in which for x in one}
    found: dict[Combination, _Place] = {}
    kept = set[Combination]()  # present combinations whose GPUs are given away already
    for size in sorted({jobs[one[0]].job.gpus for one in which}, reverse=True):
        same = [one for one in which if jobs[one[0]].job.gpus == size]
        for one in same:
            for handle in one:
                present, lie = jobs[handle].placement, _together(jobs[handle])
                if present is not None and lie not in kept and free.has(present):
                    found[one] = _Place(present, [x for x in one if x in lie])
                    kept.add(lie)
                    free.claim(present)
                    break
        for one in same:
            if one not in found:
                placement = PackPlacer().place(free, size)
                if placement is None:
                    continue
                found[one] = _Place(placement, ())
                free.claim(placement)
    return found
