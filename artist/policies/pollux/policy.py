"""Pollux: GPUs and batches by goodput.

Source: Qiao et al., *Pollux: co-adaptive cluster scheduling for goodput-optimized deep learning*,
OSDI 2021, section 4; rules that the paper leaves open are those of its program (simulator/).

**Rounds.** Every `period_s` the numbers of GPUs of all jobs are chosen together (`search.py`).

    speedup        = goodput on the GPUs / goodput on an equal share of them, in one machine
    value          = speedup x machines / GPUs x restart factor, if the job's GPUs change
    restart factor = max(age - restarts x delay, 0) / (age + delay)

**Exploring.** A job gets at most twice as many GPUs as it ever had, and one at first.

**Batch.** A job with goodput parameters trains with the batch of the largest goodput on its GPUs,
chosen afresh in every round. With `adapt_batch=false` it keeps the submitted one.

**Neighbours.** With `neighbours`, a job's goodput on several machines is divided by its present
slowdown beside other jobs. Ours; it changes nothing without `--contention`.

**Rigid jobs.** A job without goodput parameters speeds up with its GPUs. One that runs on one
number of GPUs only gets these or none, from the start.

**Kinds of GPUs.** A job gets GPUs of the kinds that it accepts only. An equal share is one of all
GPUs, and goodput is the same on every kind.

**Checked.** Goodput is that of the authors' program on random arguments
(tests/workload/test_goodput.py). In all its 32 published runs at four loads, with recorded step
times and first starts that cost a restart, mean JCTs are within 3 % (validation/pollux), although
there parameters are fitted, and noise is measured with the present batch, while jobs run.

**Deviations.**

- The search is not genetic; see `search.py`.
- Parameters are known, not fitted while the job runs.
- A job counts as at least one period old. Else the first job would gain nothing by starting.
- Their simulator charges a first start as a restart; here that is `first_start_s=restart`.
- The cluster keeps its size.
- No job that fits a region spans two (`widest_level` says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView
from artist.policies.elastic.batches import best_batches
from artist.policies.elastic.history import History
from artist.policies.elastic.rounds import Rounds, changes, movable, pool_of, slowdown
from artist.policies.pollux.counts import Floats
from artist.policies.pollux.options import PolluxOptions
from artist.policies.pollux.search import Player, Search, SearchRules, Spread
from artist.policies.shared.packing import pack_in_unit
from artist.rng import FIRST_DRAWS, Draws
from artist.units import seconds, ticks
from artist.workload.goodput import Goodput, best


class Pollux(Rounds):
    """Pollux."""

    Options: ClassVar = PolluxOptions
    obeys_gpu_kinds = True

    def __init__(self, options: PolluxOptions, draws: Draws = FIRST_DRAWS) -> None:
        super().__init__(options.period_s, draws)
        self.options = options
        self._rng = draws.stream("pollux")
        self._rules = SearchRules(
            options.power, options.one_distributed, options.most_machines, options.budget
        )
        self._history = History()
        self._speeds: dict[tuple[Goodput, float, bool], list[float]] = {}

    def note(self, view: ClusterView) -> None:
        """Learn which jobs got GPUs, and forget jobs that have finished."""
        self._history.note(view)

    def round(self, view: ClusterView) -> Sequence[Decision]:
        """Choose all jobs' GPUs and batches afresh."""
        jobs = movable(view)
        pool = pool_of(view, jobs)
        machine = view.cluster.machine
        capacity = {unit: pool.of(machine, unit) for unit in pool.at_least(machine, 1)}
        if not jobs or not capacity:
            return []
        players = [self._player(view, state, len(jobs), capacity) for state in jobs.values()]
        kinds = {} if pool.hosts is None else {x: view.cluster.kinds[x] for x in capacity}
        rules = replace(self._rules, regions=_regions(view.cluster, capacity), kinds=kinds)
        spreads = Search(capacity, players, rules).best(self._rng)
        wanted = dict(zip(jobs, spreads, strict=True))
        placed = _placed(view, jobs, wanted, pool)
        decisions = changes(view, jobs, placed)
        self._history.record(view, jobs, placed)
        return [*decisions, *(best_batches(view, placed) if self.options.adapt_batch else ())]

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """The fewest GPUs that the job accepts."""
        return job.job.gpus_min

    # -- values ------------------------------------------------------------------------------

    def _player(
        self, view: ClusterView, state: JobView, jobs: int, capacity: Mapping[int, int]
    ) -> Player:
        """A job as the search sees it."""
        job, gpus = state.job, sum(capacity.values())
        kinds = frozenset(job.gpu_kinds if view.free.hosts is not None else ())
        there = [n for x, n in capacity.items() if not kinds or view.cluster.kinds[x] in kinds]
        least, most = job.gpus_min, min(job.gpus_max, sum(there))
        if self.options.explore and least < most:
            most = min(most, self._history.explored(state))
        fair = -(-gpus // jobs)
        one, several = self._speedups(view, state, max(most, state.gpus), fair)
        per_machine = len(capacity) / gpus
        one, several = one * per_machine, several * per_machine
        present: Spread = {}
        stays = 0.0
        if state.placement is not None:
            present = machine_counts(view.cluster, state.placement)
            if self.options.neighbours and len(present) > 1:
                several = several / slowdown(state)
            stays = float((one if len(present) == 1 else several)[state.gpus])
        factor = self._restart_factor(view, state)
        one, several = one[: most + 1] * factor, several[: most + 1] * factor
        one[:least] = several[:least] = 0.0
        return Player(one, several, present, stays, kinds)

    def _restart_factor(self, view: ClusterView, state: JobView) -> float:
        delay = self.options.delay_s
        age = max(seconds(view.now - ticks(state.job.arrival_s)), self.options.period_s)
        lost = self._history.restarts(state.handle) * delay
        return max(age - lost, 0.0) / (age + delay)

    def _speedups(
        self, view: ClusterView, state: JobView, most: int, fair: int
    ) -> tuple[Floats, Floats]:
        """Speedups over a fair share on 0 to `most` GPUs, of one machine and of several.

        If no batch fits the fair share, the base is the nearest number of GPUs that a batch fits,
        smaller numbers first.
        """
        goodput = state.job.goodput
        if goodput is None:
            linear = np.arange(most + 1) / fair
            return linear, linear
        done = state.iterations_done(view.now)
        noise, _ = goodput.noise_at(done, state.job.iterations)
        share = min(fair, state.job.gpus_max)
        one = self._goodputs(goodput, noise, max(most, share), one_machine=True)
        several = self._goodputs(goodput, noise, most, one_machine=False)
        base = _nearest_above_zero(one, share)
        return np.array(one[: most + 1]) / base, np.array(several[: most + 1]) / base

    def _goodputs(
        self, goodput: Goodput, noise: float, most: int, *, one_machine: bool
    ) -> list[float]:
        """Goodput on 0 to at least `most` GPUs."""
        known = self._speeds.setdefault((goodput, noise, one_machine), [0.0])
        for gpus in range(len(known), most + 1):
            if self.options.adapt_batch:
                known.append(best(goodput, gpus, noise, one_machine=one_machine)[0])
            else:
                batch = goodput.submitted(gpus)
                known.append(goodput.goodput(gpus, batch, noise, one_machine=one_machine))
        return known


def _nearest_above_zero(values: Sequence[float], at: int) -> float:
    """The last value above 0 up to this place, else the first one after it, else 1.

    >>> _nearest_above_zero([0.0, 2.0, 0.0, 5.0], 2), _nearest_above_zero([0.0, 0.0, 5.0], 1)
    (2.0, 5.0)
    """
    return next((x for x in (*values[at::-1], *values[at + 1 :]) if x > 0), 1.0)


def _regions(tree: ClusterTree, machines: Iterable[int]) -> Mapping[int, int]:
    """The region of each machine; none if the cluster is one region."""
    if not tree.wide_area:
        return {}
    return {unit: tree.ancestor(tree.machine, unit, tree.root - 1) for unit in machines}


def _placed(
    view: ClusterView,
    jobs: Mapping[int, JobView],
    wanted: Mapping[int, Spread],
    pool: FreeGpus,
) -> dict[int, Placement]:
    """Placements on the wanted machines, taken from the pool; jobs that keep their GPUs first."""
    placed: dict[int, Placement] = {}
    for handle, spread in wanted.items():
        present = jobs[handle].placement
        if present is not None and machine_counts(view.cluster, present) == spread:
            pool.claim(present)
            placed[handle] = present
    for handle, spread in wanted.items():
        if spread and handle not in placed:
            taken: dict[int, int] = {}
            for machine, count in spread.items():
                taken |= pack_in_unit(pool, view.cluster.machine, machine, count)
            placed[handle] = Placement.of(taken)
            pool.claim(placed[handle])
    return placed
