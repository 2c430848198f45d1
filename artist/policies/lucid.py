"""Lucid: short jobs first, and jobs that hardly disturb each other on the same GPUs.

Source: Hu et al., *Lucid: A Non-Intrusive, Scalable and Interpretable Scheduler for Deep Learning
Training Jobs*, ASPLOS 2023; numbers and what the paper leaves open are those of the authors'
program (S-Lab-System-Group/Lucid, `simulation/`).

**Order.** The job with the smallest estimate of GPUs x run time comes forward first, equal ones in
order of arrival. One that gets no GPUs is passed. No job loses its GPUs.

**Estimate.** A job's run time is the mean run time of finished jobs of its user and model, else of
its model, else of all jobs. Until any job has finished, all estimates are equal. The estimate is
made when the job enters the queue. Until a job of its model has finished, it is made again whenever
a job finishes.

**Sharing score.** By the mean speed of a model beside one job of each model that has arrived, over
its speed alone: `tiny` (0) from .95 on, `medium` (1) from .85 on, else `jumbo` (2). These are the
bounds by which the program labels models.

**Packing.** A job that gets no GPUs of its own joins the running job that started first, among
those

1. with as many GPUs, inside one machine, which no other job shares;
2. whose score plus the job's is at most `sharing_capacity` (GSS, 2);
3. whose estimate of GPUs x run time is at least half of the job's: a long job does not slow a short
   one down for most of its time.

Both stay together until one finishes; then the other has the GPUs to itself.

**Deviations.**

- The paper learns scores from the utilisation of GPUs, memory and its bandwidth, by a decision tree
  that is trained on these labels, and run times by a model of names and users (GA2M). Here
  interference and finished jobs give them. So the profiler, in which each job runs alone for some
  minutes first, takes no time.
- The paper forecasts how many jobs arrive, packs none if few do, and then tries packing before free
  GPUs. Here a job is packed only where no GPUs of its own are left. So none is at low load.
- The paper packs only jobs whose memory fits together. Jobs here do not state it.
- It parts pairs in which a job crashes or becomes unstable. Here none does.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import ClassVar, Final, NamedTuple, Self, TypeAlias

from pydantic import Field, model_validator

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.kinds import accepts, kinds_of
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Options, Start
from artist.policies.shared.contest import Contest, run_contest
from artist.policies.shared.placers import PlacerName, placer
from artist.policies.shared.ranking import Rank, RankedQueue, by_rank
from artist.policies.shared.refusals import Refusals, far_apart
from artist.policies.shared.sharing import Sharing
from artist.policies.shared.usable import usable_by
from artist.units import Tick
from artist.workload.job import Job

JOBS_PER_GPU: Final = 2

TINY, MEDIUM, JUMBO = 0, 1, 2
"""Sharing scores."""

LONGER: Final = 2
"""How many times longer than its host a job may be estimated to run (the program's rule)."""


class LucidOptions(Options):
    """Options of Lucid. Defaults are those of its authors' program."""

    # ASPLOS 2023: GPU Sharing Capacity (GSS). At 4, any two jobs of as many GPUs are packed.
    sharing_capacity: int = Field(
        default=2, ge=0, le=4, description="largest sum of the scores of two jobs on a GPU"
    )
    # analyzer.py of the program.
    tiny_speed: float = Field(
        default=0.95, gt=0, le=1, description="least mean speed beside other jobs of a tiny model"
    )
    medium_speed: float = Field(
        default=0.85,
        gt=0,
        le=1,
        description="the same of a medium model; below it, a model is jumbo",
    )
    # consolidate.py of the program.
    placement: PlacerName = Field(
        default="consolidate-or-wait", description="how GPUs are chosen for jobs that share none"
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.medium_speed > self.tiny_speed:
            raise ValueError("medium_speed is above tiny_speed: tiny models are the fastest")
        return self


class Estimates:
    """Run times of jobs, from those that have finished."""

    def __init__(self) -> None:
        # Per user and model, per model, and of all: jobs that finished, and their run times' sum.
        self._seen: dict[tuple[str, ...], tuple[int, Tick]] = {}

    def finished(self, job: Job, run: Tick) -> None:
        """A job has run for so long."""
        for group in _groups(job):
            count, total = self._seen.get(group, (0, 0))
            self._seen[group] = count + 1, total + run

    def gpu_ticks(self, job: Job) -> int:
        """GPUs x estimated run time."""
        for group in _groups(job):
            if group in self._seen:
                count, total = self._seen[group]
                return job.gpus * (total // count)
        return 0  # of every job, as none has finished: `_groups` ends with the group of all

    def knows(self, job: Job) -> bool:
        """Whether a job of this model has finished."""
        return (job.model,) in self._seen


_Like: TypeAlias = "tuple[str, int, int, tuple[str, ...]]"
"""What decides, beside its estimate, on which hosts a job may join others."""


_Group: TypeAlias = "tuple[str, int, int, str]"
"""Model, GPUs, tensor group and kind of a host: what decides, beside its estimate, who may join."""


def _like(job: Job) -> _Like:
    return job.model, job.gpus, job.tensor, job.gpu_kinds


def _groups(job: Job) -> Sequence[tuple[str, ...]]:
    return (job.model, job.user), (job.model,), ()


class _Stay(NamedTuple):
    """A running job. The first start is the smallest."""

    place: int
    handle: int
    job: Job
    start: Tick
    placement: Placement
    group: _Group | None
    """None if the GPUs are in several machines."""


class Scores:
    """Sharing scores of models beside those that have arrived."""

    def __init__(self, options: LucidOptions) -> None:
        self._options = options
        self._models: dict[str, Job] = {}
        self._known: dict[tuple[str, tuple[str, ...]], int] = {}

    def arrived(self, job: Job) -> None:
        """A job whose model may be new."""
        if job.model not in self._models:
            self._models[job.model] = job
            self._known.clear()

    def of(self, job: Job, placement: Placement, view: ClusterView) -> int:
        """The score of a job's model on GPUs of these kinds."""
        key = (job.model, kinds_of(view.cluster, placement))
        if key not in self._known:
            times = [view.slowdown(job, placement, [x]) for x in self._models.values()]
            speed = sum(1.0 / x for x in times) / len(times)
            enough = (self._options.medium_speed, self._options.tiny_speed)
            self._known[key] = JUMBO - sum(speed >= x for x in enough)
        return self._known[key]


class Lucid(BasePolicy):
    """Lucid without its learned models."""

    Options: ClassVar = LucidOptions
    obeys_gpu_kinds = True
    jobs_per_gpu = JOBS_PER_GPU

    def __init__(self, options: LucidOptions) -> None:
        self.options = options
        self._placer = placer(options.placement)
        self._widest = self._placer.widest if self._placer.consolidates else None
        self._queue = RankedQueue()
        # The same jobs by what they are like, so that packing looks at one of those that are alike.
        self._alike: dict[_Like, RankedQueue] = defaultdict(RankedQueue)
        self._refusals = Refusals(self._queue)
        self._estimates, self._scores = Estimates(), Scores(options)
        # Running jobs, and those of them that are in one machine; the first start first.
        self._started: dict[int, _Stay] = {}
        self._groups: dict[_Group, dict[int, _Stay]] = defaultdict(dict)
        self._starts_so_far = 0
        # Per job in the system that lost its GPUs: how long it had them before.
        self._ran: dict[int, Tick] = {}
        # Per job in the system: its estimate, in GPU-ticks.
        self._estimate: dict[int, int] = {}
        # Of these, the jobs of models of which none had finished.
        self._guessed: dict[int, JobView] = {}

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Serve the waiting jobs with GPUs of their own, then beside others."""
        self._note(view)
        if not self._queue:
            return ()
        sharing = Sharing(view)
        contest = Contest(view.free, (), partial(self._place, sharing))
        sharing.decisions = contest.decisions
        run_contest(contest, self._queue, (), lambda gpus: self._possible(contest.pool, gpus))
        own = [x for x in contest.decisions if isinstance(x, Start)]
        for start in own:
            self._starts(view, start)
        beside = list(self._packed(view))
        for start in beside:
            self._queue.remove(start.handle)
            self._starts(view, start)
        refused = self._refusals.refused(contest, view.now)
        waits = self._refusals.waits(
            [job for job in refused if job.handle not in self._started],
            partial(far_apart, self._widest, view, sharing),
            contest.starved,
        )
        return [*own, *beside, *waits]

    def _note(self, view: ClusterView) -> None:
        """Learn from jobs that finished, and queue those that arrived or lost their GPUs."""
        for handle in view.finished:
            stay = self._ends(handle)
            self._estimates.finished(stay.job, self._ran.pop(handle, 0) + view.now - stay.start)
            del self._estimate[handle]
            self._guessed.pop(handle, None)
        if view.finished:
            self._guess_again()
        for view_of in view.entered:
            self._lost(view_of)
            self._scores.arrived(view_of.job)
            self._guessed[view_of.handle] = view_of
            self._estimate[view_of.handle] = self._estimates.gpu_ticks(view_of.job)
            self._enqueue(view_of)
        self._guessed = {x: y for x, y in self._guessed.items() if not self._estimates.knows(y.job)}

    def _lost(self, job: JobView) -> None:
        """Remember how long a job that is back in the queue had its GPUs."""
        if job.handle in self._started:
            ran = job.entered - self._ends(job.handle).start
            self._ran[job.handle] = self._ran.get(job.handle, 0) + ran

    def _guess_again(self) -> None:
        """Estimate the jobs whose models were unknown, waiting or running, by what finished."""
        changed: dict[_Like, dict[int, Rank]] = defaultdict(dict)
        for handle, view_of in self._guessed.items():
            estimate = self._estimates.gpu_ticks(view_of.job)
            if estimate != self._estimate[handle]:
                self._estimate[handle] = estimate
                if self._queue.entry(handle) is not None:
                    changed[_like(view_of.job)][handle] = (estimate,)
        ranks = {handle: rank for alike in changed.values() for handle, rank in alike.items()}
        self._queue.rank_again(ranks)
        for like, alike in changed.items():
            self._alike[like].rank_again(alike)
        for handle, rank in ranks.items():
            self._refusals.entered(self._queue.job(handle).job.gpus, rank, handle)

    def _enqueue(self, job: JobView) -> None:
        rank = (self._estimate[job.handle],)
        self._queue.add(job, rank)
        self._alike[_like(job.job)].add(job, rank)
        self._refusals.entered(job.job.gpus, rank, job.handle)

    def _starts(self, view: ClusterView, start: Start) -> None:
        """Note that a job starts, which the queue has removed."""
        handle, placement, tree = start.handle, start.placement, view.cluster
        job = view.waiting[handle].job
        group = None
        machines = {tree.machine_of[leaf] for leaf in placement.leaves}
        if len(machines) == 1:
            group = job.model, placement.gpus, job.tensor, tree.kinds[machines.pop()]
        stay = _Stay(self._starts_so_far, handle, job, view.now, placement, group)
        self._starts_so_far += 1
        self._started[handle] = stay
        if group is not None:
            self._groups[group][handle] = stay
        self._alike[_like(job)].remove(handle)

    def _ends(self, handle: int) -> _Stay:
        """Note that a job finished or lost its GPUs."""
        stay = self._started.pop(handle)
        if stay.group is not None:
            del self._groups[stay.group][handle]
        return stay

    def _packed(self, view: ClusterView) -> Iterator[Start]:
        """Start waiting jobs beside others, in the order of the queue."""
        joined = set[int]()
        # What jobs are like that no host suits. Later jobs have longer estimates, so none suits
        # them either.
        refused = set[_Like]()

        def possible(like: _Like, gpus: int) -> bool:
            return like not in refused

        walks = [queue.walk(partial(possible, like)) for like, queue in self._alike.items()]
        for _, view_of in heapq.merge(*walks, key=by_rank):
            host = self._host(view, view_of, joined)
            if host is None:
                refused.add(_like(view_of.job))
            else:
                joined.add(host.handle)
                yield Start(view_of.handle, host.placement, beside=host.handle)

    def _host(self, view: ClusterView, job: JobView, joined: Collection[int]) -> _Stay | None:
        """The job that started first among those that a waiting job may join."""
        least, estimate, running = self._estimate[job.handle], self._estimate, view.running

        def suits(host: int) -> bool:
            if least > LONGER * estimate[host] or host in joined:
                return False
            found = running.get(host)  # None: it starts at this question
            return found is None or (not found.beside and view.frees(found))

        hosts = []
        for alike in self._groups.values():
            if alike and self._may_share(view, job.job, next(iter(alike.values()))):
                first = next(filter(suits, alike), None)
                if first is not None:
                    hosts.append(alike[first])
        return min(hosts, default=None)

    def _may_share(self, view: ClusterView, job: Job, host: _Stay) -> bool:
        """Whether a job may join a host, and so all hosts of its group, whatever the estimates."""
        at = host.placement
        if (job.gpus, job.tensor) != (at.gpus, host.job.tensor):
            return False
        if not accepts(view.cluster, job, at):
            return False
        score = sum(self._scores.of(one, at, view) for one in (job, host.job))
        return score <= self.options.sharing_capacity

    def _possible(self, free: FreeGpus, gpus: int) -> bool:
        """Whether a job of this many GPUs may get GPUs of its own."""
        possible = self._placer.possible(free, gpus)
        if not possible and free.total >= gpus:
            self._refusals.drops(gpus)
        return possible

    def _place(self, sharing: Sharing, job: JobView, free: FreeGpus) -> Placement | None:
        return self._placer.place(usable_by(free, job.job), job.job.gpus, sharing.busy)
