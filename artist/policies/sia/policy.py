"""Sia: GPUs of the kind on which they are worth most, by goodput, for elastic and rigid jobs.

Source: Jayaram Subramanya et al., *Sia: Heterogeneity-aware, goodput-optimized ML-cluster
scheduling*, SOSP 2023, section 3; rules that the paper leaves open are those of its program
(sia-simulator/sia.py).

**Rounds.** Every `period_s` each job is given a configuration, a kind and a number of GPUs, by the
integer program of `program.py`.

**Configurations.** 1, 2, 4, ... GPUs of one machine, a whole machine, or several. A job takes those
from its fewest to its most GPUs; if these leave none, its fewest. So a rigid job has one per kind.

    value          = speed x fewest GPUs / slowest speed   over all kinds and numbers
                     x restart factor, if the job runs on another configuration
    restart factor = max(age - restarts x delay, 0) / (age + delay); 1 until it is `delay` old

The speed is the goodput on as few machines as possible, with the best batch. Without goodput
parameters, it is that of the estimate on the closest GPUs of the kind in an empty cluster. The
delay is the job's `restart_s`, or `delay_s` where that is 0.

**Exploring.** A job gets at most twice as many GPUs as it ever had, and its fewest at first.

**Kept.** A job that restarts keeps its GPUs until it runs.

**Placement.** A job whose configuration stays keeps its GPUs. The others are packed, the largest
first. Where that would split a job over more machines than it needs, smaller ones move.

**Checked.** The program has the optimum of the authors' on random instances (tests/policies/sia).
docs/kinds.md compares whole runs.

**Deviations.**

- Values are not rounded to two decimals before the program.
- Speeds on all kinds are known. The authors' program learns them as the job runs.
- The paper's factor has no exception. Their program makes it 1 for elastic jobs younger than the
  delay, in seconds, and for rigid ones that used fewer GPU-seconds than it. Here all go by age:
  GPU-seconds would let wide jobs move less freely than narrow ones. Mean JCT of 160 rigid jobs on
  64 GPUs of three kinds, theirs over ours, three draws: -1.9, -.4, .5 % at a delay of 120 s.
- Their simulator makes `ncf` rigid, with 1 GPU.
- Their simulator charges a first start as a restart; here that is `first_start_s=restart`.
- One largest batch counts for values and for runs. There values count batches up to the submitted
  one, but jobs run with larger ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.kinds import free_of_kinds, kinds_of, several_kinds
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, gpus_by_kind
from artist.contract import ClusterView, Decision, JobView
from artist.errors import ConfigError
from artist.io.optional_libraries import check_extra
from artist.policies.elastic.batches import best_batches
from artist.policies.elastic.history import History
from artist.policies.elastic.rounds import Rounds, changes, movable, pool_of, slowdown
from artist.policies.shared.closest import ClosestGpus, refuse_unplaceable
from artist.policies.shared.placers import PackPlacer
from artist.policies.sia.options import SiaOptions
from artist.policies.sia.program import Offer, choose
from artist.rng import FIRST_DRAWS, Draws
from artist.units import seconds, ticks
from artist.workload.goodput import best


class Sia(Rounds):
    """Sia."""

    Options: ClassVar = SiaOptions
    reads_gpu_kinds = True

    def __init__(self, options: SiaOptions, draws: Draws = FIRST_DRAWS) -> None:
        check_extra("policy sia", "scipy", extra="exact")
        super().__init__(options.period_s, draws, one_kind=True)
        self.options = options
        self._history = History()
        self._kinds: tuple[str, ...] = ()
        self._sizes: tuple[tuple[int, ...], ...] = ()
        """The numbers of GPUs of each kind's configurations, ascending."""
        self._machine: tuple[int, ...] = ()
        """GPUs of a machine of each kind."""
        self._closest = ClosestGpus()
        self._speeds: dict[tuple[object, ...], float] = {}
        self._program: tuple[list[list[Offer]], list[int]] | None = None
        """What the last round chose from. While it stays, so does the choice."""
        self._chosen: list[Offer | None] = []

    def _learn(self, view: ClusterView) -> None:
        """Learn the kinds of GPUs of the cluster, and the sizes of configurations."""
        if not self._kinds:
            self._kinds = tuple(gpus_by_kind(view.cluster))
            self._machine = tuple(_largest(view.cluster, kind) for kind in self._kinds)
            totals = gpus_by_kind(view.cluster).values()
            self._sizes = tuple(map(_sizes, self._machine, totals))

    def note(self, view: ClusterView) -> None:
        """Learn the cluster and which jobs got GPUs, and refuse new jobs that can never run."""
        self._learn(view)
        self._history.note(view)
        for state in view.entered:
            job = state.job
            if not any(self._closest.of_kind(view, job, job.gpus_min, x) for x in self._kinds):
                refuse_unplaceable(job, job.gpus_min, self._kinds)

    def round(self, view: ClusterView) -> Sequence[Decision]:
        """Choose all jobs' configurations and batches afresh.

        Raises:
            ConfigError: the options let no job run.
        """
        jobs = {
            handle: state
            for handle, state in movable(view).items()
            if state.placement is None or state.productive_from <= view.now
        }
        pool = pool_of(view, jobs)
        capacity = [free_of_kinds(pool, (kind,)).total for kind in self._kinds]
        offers = [self._offers(view, state) for state in jobs.values()]
        power, unallocated = self.options.power, self.options.unallocated
        if (offers, capacity) != self._program:
            self._program = offers, capacity
            self._chosen = choose(offers, capacity, power, unallocated, self.options.gap)
        chosen = self._chosen
        placed: dict[int, Placement] = {}
        for kind, name in enumerate(self._kinds):
            counts = {
                handle: offer.gpus
                for handle, offer in zip(jobs, chosen, strict=True)
                if offer is not None and offer.kind == kind
            }
            placed |= self._placed(jobs, counts, free_of_kinds(pool, (name,)), kind)
        idle = view.free.total == view.cluster.gpus
        if jobs and idle and not any(chosen):
            raise ConfigError(
                f"policy sia: at policy.unallocated={unallocated:g} all waiting jobs are better "
                "off without GPUs, so none of them ever runs; choose a larger value"
            )
        decisions = changes(view, jobs, placed)
        self._history.record(view, jobs, placed)
        return [*decisions, *best_batches(view, placed)]

    def fewest_gpus(self, view: ClusterView, job: JobView) -> int:
        """The GPUs of the job's smallest configuration on any kind."""
        self._learn(view)
        return min(gpus for _, gpus in self._choices(job))

    def can_improve(self, view: ClusterView) -> bool:
        """Whether jobs wait, could have more GPUs, or could have GPUs of another kind."""
        return super().can_improve(view) or (bool(view.running) and several_kinds(view.cluster))

    def settled(self, view: ClusterView) -> bool:
        """Also False with several kinds: the older a job is, the sooner it moves to another."""
        return super().settled(view) and not several_kinds(view.cluster)

    # -- values ------------------------------------------------------------------------------

    def _offers(self, view: ClusterView, state: JobView) -> list[Offer]:
        """The configurations that a job may get, by kind and number of GPUs."""
        job, present = state.job, self._present(view, state)
        choices = self._choices(state)
        if present is not None and present not in choices:
            choices.append(present)
        speed_on = self._speeds_of(view, state)
        speeds = {x: speed for x in choices if (speed := speed_on(*x))}
        unit = job.gpus_min / min(speeds.values(), default=1.0)
        if self.options.neighbours and state.placement is not None:
            slower = slowdown(state)
            speeds = {
                (kind, gpus): speed if gpus <= self._machine[kind] else speed / slower
                for (kind, gpus), speed in speeds.items()
            }
        factor = 1.0 if present is None else self._restart_factor(view, state)
        return [
            Offer(*x, speed * unit * (1.0 if x == present else factor))
            for x, speed in speeds.items()
        ]

    def _choices(self, state: JobView) -> list[tuple[int, int]]:
        """The configurations that a job may explore: (kind, GPUs)."""
        job, most = state.job, state.job.gpus_max
        if self.options.explore:
            most = min(most, self._history.explored(state))
        return [
            (kind, gpus)
            for kind, sizes in enumerate(self._sizes)
            for gpus in _within(sizes, job.gpus_min, most)
        ]

    def _present(self, view: ClusterView, state: JobView) -> tuple[int, int] | None:
        """The kind and number of GPUs that a job has."""
        if state.placement is None:
            return None
        kind = kinds_of(view.cluster, state.placement)[0]
        return self._kinds.index(kind), state.placement.gpus

    def _restart_factor(self, view: ClusterView, state: JobView) -> float:
        delay = state.job.restart_s or self.options.delay_s
        age = seconds(view.now - ticks(state.job.arrival_s))
        if age < delay or not age:
            return 1.0
        lost = self._history.restarts(state.handle) * delay
        return max(age - lost, 0.0) / (age + delay)

    def _speeds_of(self, view: ClusterView, state: JobView) -> Callable[[int, int], float]:
        """A function of (kind, GPUs): the speed of a job there; 0 where it cannot run."""
        job, goodput = state.job, state.job.goodput

        def estimated(kind: int, gpus: int) -> float:
            key = (job.model, job.compute_s, job.gpus, job.gpu_kinds, gpus, kind)
            if key not in self._speeds:
                self._speeds[key] = self._closest.speed(view, job, gpus, self._kinds[kind])
            return self._speeds[key]

        if goodput is None:
            return estimated
        noise, _ = goodput.noise_at(state.iterations_done(view.now), job.iterations)

        def useful(kind: int, gpus: int) -> float:
            if self._closest.of_kind(view, job, gpus, self._kinds[kind]) is None:
                return 0.0
            here = goodput.on((self._kinds[kind],))
            return best(here, gpus, noise, one_machine=gpus <= self._machine[kind])[0]

        return useful

    # -- placement -----------------------------------------------------------------------------

    def _placed(
        self,
        jobs: Mapping[int, JobView],
        counts: Mapping[int, int],
        free: FreeGpus,
        kind: int,
    ) -> dict[int, Placement]:
        """GPUs of one kind for jobs.

        Jobs that can keep their GPUs do, unless another job would then find no room or be split
        over too many machines. In that case larger jobs come first.
        """
        placed = _packed(jobs, counts, free.copy(), stay_first=True)
        whole = self._machine[kind]
        if all(
            handle in placed and len(placed[handle].leaves) <= -(-gpus // whole)
            for handle, gpus in counts.items()
        ):
            return placed
        return _packed(jobs, counts, free, stay_first=False)


def _packed(
    jobs: Mapping[int, JobView], counts: Mapping[int, int], free: FreeGpus, *, stay_first: bool
) -> dict[int, Placement]:
    """Placements of jobs: those that have as many GPUs stay, the others are packed, largest first.

    Jobs that stay come before all others (`stay_first`), or only before others of their size.
    """
    placed: dict[int, Placement] = {}

    def rank(handle: int) -> tuple[bool, int, bool, int]:
        present = jobs[handle].placement
        moves = present is None or present.gpus != counts[handle] or not free.has(present)
        return (moves and stay_first, -counts[handle], moves, handle)

    for handle in sorted(counts, key=rank):
        present = jobs[handle].placement
        stays = present is not None and present.gpus == counts[handle] and free.has(present)
        placement = present if stays else PackPlacer().place(free, counts[handle])
        if placement is not None:
            placed[handle] = placement
            free.claim(placement)
    return placed


def _largest(tree: ClusterTree, kind: str) -> int:
    """The GPUs of the largest machine of a kind."""
    sizes = zip(tree.levels[tree.machine].gpus, tree.kinds, strict=True)
    return max(gpus for gpus, of_kind in sizes if of_kind == kind)


def _sizes(machine: int, total: int) -> tuple[int, ...]:
    """GPUs of a kind's configurations: powers of two in a machine, and whole machines."""
    inside = {1 << power for power in range(machine.bit_length())}
    return tuple(sorted(inside | set(range(machine, total + 1, machine))))


def _within(sizes: Sequence[int], least: int, most: int) -> list[int]:
    """The sizes from `least` to `most`; `least` itself if there are none."""
    return [gpus for gpus in sizes if least <= gpus <= most] or [least]
