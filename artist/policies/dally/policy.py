"""Dally: delay scheduling over network levels, with timers that tune themselves.

Source: Sharma et al., *Dally: A network-placement sensitive cluster scheduler for deep
learning*, IEEE Big Data 2025. What is where:

- section IV-B1, network-sensitive priority `Nw_sens`: `sensitivity`;
- Algorithm 1, on resource offer: `Dally._accept`;
- Algorithm 2, get tuned timers: `autotuner.py`;
- section V-C, the baselines Dally-manual, -noWait and -fullyConsolidated: option `timers`.

**The rule.** At each question the waiting jobs and the jobs whose lease has just ended
compete in increasing order of `Nw_sens` (`contest.py`); among equals, the one that entered
the queue first. A job accepts a placement inside a machine at once, inside a rack after its
machine timer, across racks after its rack timer, both counted from when it last had GPUs
(arrival, if never). A job whose lease ended counts as having waited for no time. If nobody
takes its GPUs it keeps them, or moves to a better level if there is room (the purpose of the
preemption, section VI-3); with `moves_for=shape` also to a better shape inside its level.

Where the paper is silent: inside the accepted level the job gets the unit with the
fewest free GPUs that suffice, packed into as few machines as possible (`placers.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.tree import ClusterTree
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Preempt,
    Start,
    Wake,
)
from artist.policies.dally.autotuner import AutoTuner, Bounds
from artist.policies.dally.options import DallyOptions
from artist.policies.shared.contest import Contest, run_contest
from artist.policies.shared.packing import best_level, pack_in_level
from artist.policies.shared.ranking import Rank, RankedQueue, behind, gpus_held
from artist.units import Tick, seconds, ticks


def sensitivity(view: JobView, now: Tick) -> float:
    """Network-sensitive priority (section IV-B1); smaller means slowed down more.

    Nw_sens = W_compl / T_norm = (I_compl / I_total) / (T_run / T_total-ideal-run).
    A job that never ran has 0: it goes first.
    """
    run_s = seconds(view.run_ticks(now))
    if not run_s:
        return 0.0
    work = view.iterations_done(now) / view.job.iterations
    return work / (run_s / view.job.ideal_s)


def spread(tree: ClusterTree, placement: Placement) -> tuple[int, bool]:
    """Machines of a placement, and whether their shares differ; smaller is better."""
    machines = machine_counts(tree, placement)
    return len(machines), len(set(machines.values())) > 1


class Dally(BasePolicy):
    """Dally and its variants."""

    Options = DallyOptions

    def __init__(self, options: DallyOptions) -> None:
        self.options = options
        self.lease = ticks(options.lease_s)
        self._defaults = (ticks(options.machine_timer_s), ticks(options.rack_timer_s))
        self._tuner = AutoTuner(
            ticks(options.history_s),
            options.deviations,
            bounds=_bounds(options),
            population=options.deviation == "population",
        )
        self._queue = RankedQueue()
        self._entered: dict[int, list[Tick]] = {}
        self._patience: dict[int, list[Tick | None]] = {}
        self._now: Tick = 0
        self._wake: Tick = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Offer the free GPUs, and those whose lease ended, in increasing `Nw_sens`."""
        self._now = view.now
        self._patience = {}
        for job in view.entered:
            self._queue.add(job, (sensitivity(job, view.now), job.entered))
            self._entered.setdefault(job.job.gpus, []).append(job.entered)
        if not self._queue and not view.lease_ended:
            return ()
        contestable = self._contestable(view)
        contest = Contest(view.free, [job for _, job in contestable], self._accept, self._improve)
        decisions = run_contest(
            contest,
            self._queue,
            contestable,
            lambda gpus: self._possible(contest.pool, gpus),
        )
        waiting_since = {}
        for decision in decisions:
            if isinstance(decision, Start):
                self._started(view, view.waiting[decision.handle], decision.placement)
            elif isinstance(decision, Preempt):
                waiting_since[view.running[decision.handle].job.gpus] = view.now
        waiting_since |= {gpus: entered[0] for gpus, entered in self._entered.items()}
        return [*decisions, *self._next_wake(contest.spare, waiting_since)]

    def contests(self, ended: Sequence[JobView], free: FreeGpus, now: Tick) -> bool:
        """Whether somebody waits, or one of these jobs could find a better place at all."""
        return bool(self._queue) or self._any_could_move(ended, free.tree)

    def _any_could_move(self, jobs: Sequence[JobView], tree: ClusterTree) -> bool:
        shapes = self.options.moves_for == "shape"
        return any(
            job.tier > tree.machine and (shapes or best_level(tree, job.job.gpus) < job.tier)
            for job in jobs
        )

    def _contestable(self, view: ClusterView) -> list[tuple[Rank, JobView]]:
        """The jobs whose lease ended and whose answer may be another than to stay.

        If nobody could move, those whom no waiting job precedes that could use what is free and
        what they hold stay where they are, without a contest.
        """
        ended = view.lease_ended
        first: tuple[Rank, int] | None = ((), -1)  # before everybody
        if not self._any_could_move(ended, view.cluster):
            first = self._queue.first(view.free.total + gpus_held(ended))
        return behind(first, ended, lambda job: (sensitivity(job, view.now), view.now))

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The auto-tuner's records, where it is used."""
        return {"autotuner": self._tuner.rows} if self.options.timers == "auto" else {}

    # -- Algorithm 1 ---------------------------------------------------------------

    def _accept(self, view: JobView, free: FreeGpus) -> Placement | None:
        """The best level with room, if the job has waited long enough for it."""
        gpus = view.job.gpus
        starvation = 0 if view.placement else self._now - view.entered
        for level, wait in enumerate(self._waits(free.tree, gpus), start=free.tree.machine):
            if wait is None or starvation < wait:
                return None
            placement = pack_in_level(free, level, gpus)
            if placement is not None:
                return placement
        return None

    def _improve(self, view: JobView, free: FreeGpus) -> Placement | None:
        """A better level for a running job, or a better shape in its own."""
        for level in range(free.tree.machine, view.tier):
            placement = pack_in_level(free, level, view.job.gpus)
            if placement is not None:
                return placement
        return self._reshape(view, free) if self.options.moves_for == "shape" else None

    def _reshape(self, view: JobView, free: FreeGpus) -> Placement | None:
        assert view.placement is not None  # only running jobs improve
        placement = pack_in_level(free, view.tier, view.job.gpus)
        if placement is None:
            return None
        better = spread(free.tree, placement) < spread(free.tree, view.placement)
        return placement if better else None

    def _possible(self, free: FreeGpus, gpus: int) -> bool:
        """Whether the job that has waited longest for so many GPUs would accept what is free."""
        if free.total < gpus:
            return False
        wait = self._wait_for_room(free, gpus)
        return wait is not None and self._now - self._entered[gpus][0] >= wait

    def _wait_for_room(self, free: FreeGpus, gpus: int) -> Tick | None:
        """How long a job waits until it accepts the innermost level with room."""
        for level, wait in enumerate(self._waits(free.tree, gpus), start=free.tree.machine):
            if free.fits_one(level, gpus):
                return wait
        return None

    def _waits(self, tree: ClusterTree, gpus: int) -> list[Tick | None]:
        """Per level, machine first: how long a job waits before it accepts that level.

        Algorithm 1 passes the timers one after the other, so a level opens when all the
        timers before it have expired. A timer of a level that could never hold the job is 0
        (section IV-B2). None stands for "never".
        """
        waits = self._patience.get(gpus)
        if waits is None:
            waits = [0]
            for level in range(tree.machine, tree.root):
                timer = self._timer(tree, level, gpus)
                before = waits[-1]
                waits.append(None if timer is None or before is None else max(before, timer))
            self._patience[gpus] = waits
        return waits

    def _timer(self, tree: ClusterTree, level: int, gpus: int) -> Tick | None:
        """How long a job waits for a level before it accepts the next one."""
        timers = self.options.timers
        if tree.largest(level) < gpus or timers == "none":
            return 0
        if timers == "unbounded":
            return None
        # Levels further out than the rack, which the paper does not have, get its timer.
        default = self._defaults[min(level - tree.machine, 1)]
        tuned = self._tuner.bounded(tree, level, gpus, self._now) if timers == "auto" else None
        return default if tuned is None else tuned

    # -- bookkeeping ---------------------------------------------------------------

    def _started(self, view: ClusterView, job: JobView, placement: Placement) -> None:
        gpus = job.job.gpus
        entered = self._entered[gpus]
        del entered[bisect_left(entered, job.entered)]
        if not entered:
            del self._entered[gpus]
        level = tier(view.cluster, placement)
        if level < view.cluster.root and self.options.timers == "auto":
            self._tuner.record(view.cluster, level, gpus, view.now - job.entered, view.now)

    def _next_wake(self, spare: FreeGpus, waiting_since: Mapping[int, Tick]) -> list[Wake]:
        """When the first job starts to accept GPUs that nobody holds, unless already asked.

        `waiting_since`: per demand, when the job that has waited longest entered the queue.
        """
        expiries = []
        for gpus, entered in waiting_since.items():
            wait = self._wait_for_room(spare, gpus) if gpus <= spare.total else None
            if wait is not None and entered + wait > self._now:
                expiries.append(entered + wait)
        if not expiries or self._now < self._wake <= min(expiries):
            return []
        self._wake = min(expiries)
        return [Wake(self._wake)]


def _bounds(options: DallyOptions) -> Bounds:
    floors, caps = options.floors_s or (0.0, 0.0), options.caps_s
    return Bounds(
        (ticks(floors[0]), ticks(floors[1])),
        (None, None) if caps is None else (ticks(caps[0]), ticks(caps[1])),
    )
