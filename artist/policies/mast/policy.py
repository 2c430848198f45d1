"""MAST: global scheduling of training jobs over regions, and the designs that it is compared with.

Source: Choudhury et al., *MAST: Global Scheduling of ML Training across Geo-Distributed
Datacenters at Hyperscale*, OSDI 2024, section 4.

**Where things are.**

- GMS, section 4.2: classes, credit and quotas: `quota/ledger.py`; waiting jobs: `queue.py`.
- RMS, section 4.3: who holds what: `books.py`; plans, scores and victims: `plans.py`. A job that
  names kinds of GPUs gets a plan in every cluster of these kinds; the score decides among kinds.
- CM: gangs in racks: `plans.placed`; starts and preemptions: `sweep.py`.
- Table 1: `cells.py`; joint placement of several jobs in cell (9): `plans.py`.

**The life of a job.**

1. It enters the queue and gets a class and a credit. A pass every `pass_s` gives all waiting jobs
   new ones. Passes are counted from the first arrival (`shared/clock.py`).
2. At every question, jobs come forward by class, then credit. Each region that holds the job's
   data plans; the best plan wins. A job without a plan waits, and later ones may overtake it.
3. A plan may preempt jobs of later classes. They lose their iteration in progress and enter the
   queue again a nanosecond later. A victim of the last class stays in it until the next pass.
4. If no region holds the job's tables, they are copied (`Fetch`), and the job waits without GPUs.

**Our choices.** A gang that no cluster can hold spans the clusters of one region. A gang that no
region can hold spans regions, and waits until all regions that have room hold its tables. A running
job keeps the class with which it started, except the last one: a pass gives it its own class once
its tenant's quota covers it (`Ledger.cover`). There are passes only while jobs wait. GPUs that a
victim leaves over go to the jobs behind. CPU machines, and clusters that grow and shrink, are left
out. Preemption takes no time of its own: give jobs a restart cost (`restart_s`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.contract import (
    BasePolicy,
    ClusterView,
    DataView,
    Decision,
    Fetch,
    JobView,
    Preempt,
    Wake,
)
from artist.errors import ConfigError, TraceError
from artist.policies.mast.books import BookedJob, Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.options import FederatedOptions, MastOptions
from artist.policies.mast.queue import WaitingQueue, Where
from artist.policies.mast.reasons import Reasons, of_kinds, reason_of_kinds, reasons_of
from artist.policies.mast.sweep import QueueSweep
from artist.policies.quota.ledger import Ledger, LedgerEntry, queue_table
from artist.policies.shared.clock import PeriodClock
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, counted, seconds, ticks
from artist.workload.job import Job
from artist.workload.tenants import NO_TENANTS, Tenant


class Mast(BasePolicy):
    """One queue, plans by region, preemption by priority."""

    Options: ClassVar = MastOptions
    has_quotas = True
    remembers_placements = True
    reads_gpu_kinds = True

    def __init__(
        self,
        options: MastOptions,
        draws: Draws | None = None,
        tenants: Mapping[str, Tenant] | None = None,
    ) -> None:
        self.options = options
        period = ticks(options.pass_s)
        self._clock = PeriodClock(period, (draws or FIRST_DRAWS).phase(period))
        self._next_pass: Tick | None = None
        self._wake: Tick = -1
        self._ledger = Ledger(tenants or NO_TENANTS, options)
        self._queue = WaitingQueue()
        self._where: dict[int, Where] = {}
        # Waiting jobs for which no region may plan, as none holds all of their tables; and the
        # regions that held the tables when copies were last requested.
        self._without_region: dict[int, tuple[int, ...] | None] = {}
        # Jobs that the last answer preempted. A gate or a wrapper may have let them run on.
        self._preempted: dict[int, tuple[BookedJob, LedgerEntry]] = {}
        if self._ledger.tells_kinds_apart and options.cell in (1, 5):
            raise ConfigError(
                f"tenants: quotas by kind of GPUs under policy.cell={options.cell}: a job is bound "
                "to a place before its kind is known; choose cell 3, 6 or 9"
            )
        self._joint = options.joint if options.cell == 9 else 1
        self._books: Books | None = None
        self._cells: Cells | None = None
        # Since the last sweep: regions where GPUs became free, and places that got a new job. A
        # waiting job elsewhere had no plan then and has none now, so a sweep skips it.
        self._stale: set[int] = set()
        self._fresh: set[Where] = set()
        self._passes: list[dict[str, Any]] = []
        self._reasons = Reasons()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Start the jobs that have a plan, in the order of class and credit."""
        self._clock.asked(view)
        books, cells = self._learn(view)
        self._note_losses(view, books, cells)
        books.spared = _spared(view) if view.on_notice else frozenset()
        for job in view.entered:
            self._enter(view, job, cells)
        fetches = self._find_regions(view, cells) if self._without_region else []
        full = self._rank_anew(view, cells)
        before = len(self._queue)
        decisions, free = self._sweep(view, books, cells)
        if full:
            self._record_pass(view.now, before)
        if not view.on_notice:
            decisions += self._reasons_now(view, free, full=full)
        preempted = any(isinstance(x, Preempt) for x in decisions)
        if preempted:
            # The victims enter the queue at the next question, so it comes at once.
            decisions.append(Wake(view.now + 1))
        decisions += fetches
        if len(self._queue) or preempted:
            strike = self._clock.after(view.now)
            self._next_pass = strike
            if strike != self._wake:
                self._wake = strike
                decisions.append(Wake(strike))
        return decisions

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """`queue`: waits within quota. `passes`: what passes over all waiting jobs found."""
        passes = {"passes": self._passes} if self._passes else {}
        return {**queue_table(self._ledger, self.options), **passes}

    def _reasons_now(self, view: ClusterView, free: FreeGpus, *, full: bool) -> list[Decision]:
        """Why jobs wait although GPUs are free after the starts; of all jobs if `full`."""
        books, cells = self._learn(view)
        waiting = self._ledger.waiting
        if full:
            reasons = reasons_of(
                free, books, cells, self._ledger, self._queue, view.waiting,
                lambda handle: self._regions(view, view.waiting[handle].job),
            )  # fmt: skip
            return self._reasons.waits(reasons, waiting)
        entered = [
            reason_of_kinds(job, where, words)
            for job in view.entered
            if job.handle in waiting
            and (where := self._where[job.handle]).kinds
            and (words := of_kinds(free, books, where, waiting[job.handle].gpus))
        ]
        return self._reasons.between_passes(free.total, entered, waiting)

    # -- what happened since the last question -----------------------------------------

    def _learn(self, view: ClusterView) -> tuple[Books, Cells]:
        """The books and cells; they are made at the first view, which has the cluster."""
        if self._books is None or self._cells is None:
            self._books = Books(view.cluster)
            self._cells = Cells(self.options.cell, self._books)
        return self._books, self._cells

    def _note_losses(self, view: ClusterView, books: Books, cells: Cells) -> None:
        """Note jobs that finished, that lost their GPUs, or that a gate let run on after all."""
        entered = {x.handle for x in view.entered}
        for handle in sorted(self._preempted.keys() - entered):
            running, entry = self._preempted.pop(handle)
            books.resume(handle, running)
            self._ledger.resume(handle, entry, view.now)
        put_off = [x.handle for x in view.entered if x.handle in books.running]
        gone = [*view.finished, *put_off]
        for handle in gone:
            job = books.stop(handle)
            self._ledger.stop(handle, view.now)
            self._stale.update(books.region_of[cluster] for cluster, _ in job.parts)
        for handle in view.finished:
            cells.finished(handle)
            self._where.pop(handle, None)
        if books.moved(view.free):
            self._stale.update(cells.everywhere)

    def _enter(self, view: ClusterView, job: JobView, cells: Cells) -> None:
        """Add a job to the queue with its class, its credit and the places where it may go."""
        preempted = self._preempted.pop(job.handle, None)
        # A victim above quota stays above it until the next pass. Else it could take its GPUs back
        # a nanosecond later, since they no longer count against its quota.
        ranked = preempted is None or preempted[1].within
        entry = self._ledger.enter(job.handle, job.job, view.now, ranked=ranked)
        regions = self._regions(view, job.job)
        where = cells.where(view.free, job.handle, job.job.gpus, regions, entry.kinds)
        self._where[job.handle] = where
        if not regions:
            self._without_region[job.handle] = None
        self._queue.add(job.handle, entry.rank, where, entry.gpus, entry.credit)
        self._fresh.add(where)
        self._reasons.forget(job.handle)

    def _regions(self, view: ClusterView, job: Job) -> tuple[int, ...]:
        """The regions that may plan for a job: those with its tables and enough GPUs."""
        books, cells = self._learn(view)
        everywhere = cells.everywhere
        able = books.regions_with(job.gpu_kinds, job.gpus)
        if job.gpu_kinds:
            everywhere = able
            if not able:
                raise TraceError(
                    f"job {job.id!r} wants {counted(job.gpus, 'GPU')} of kind "
                    f"{' or '.join(job.gpu_kinds)} in one cluster, and no cluster of one such kind "
                    "has that many; put each kind into a unit of its own at a level called "
                    "cluster, or let the job accept other kinds or want fewer GPUs"
                )
        if view.data is None or not job.tables:
            return everywhere
        region = books.scopes.region
        sizes = view.cluster.levels[region].gpus
        # If jobs read over the wide area instead, nothing is copied that they could wait for.
        wait = view.data.copied and self.options.without_data == "wait"
        if job.gpus > max(sizes):  # it needs several regions
            return () if wait and self._lacking(view.data, job, everywhere) else everywhere
        holding = view.data.regions_holding(job)
        enough = tuple(x for x in holding if x in able)
        if enough:
            return enough
        if wait:
            return ()
        return (min(able, key=partial(view.data.missing_bytes, job)),)

    def _lacking(self, data: DataView, job: Job, regions: Sequence[int]) -> tuple[int, ...]:
        """The regions that lack tables of a job and have room for copies."""
        if not data.copied:
            return ()
        return tuple(x for x in regions if data.missing_bytes(job, x) and data.has_room_for(job, x))

    def _find_regions(self, view: ClusterView, cells: Cells) -> list[Decision]:
        """Queue the jobs whose tables have reached a region; fetch the tables of others."""
        fetches: list[Decision] = []
        books, data = self._learn(view)[0], view.data
        for handle, asked in list(self._without_region.items()):
            job = view.waiting[handle].job
            regions = self._regions(view, job)
            if not regions and data is not None and data.copied:
                holding = data.regions_holding(job)
                if holding != asked:
                    self._without_region[handle] = holding
                    able = books.regions_with(job.gpu_kinds, job.gpus) or cells.everywhere
                    fetches.append(Fetch(handle, self._lacking(data, job, able)))
            elif regions:
                del self._without_region[handle]
                entry = self._ledger.waiting[handle]
                self._queue.remove(handle)
                where = cells.where(view.free, handle, job.gpus, regions, entry.kinds)
                self._where[handle] = where
                self._queue.add(handle, entry.rank, where, entry.gpus, entry.credit)
                self._fresh.add(where)
        return fetches

    def _rank_anew(self, view: ClusterView, cells: Cells) -> bool:
        """Rerank all waiting jobs if a pass is due. Returns whether it was."""
        if self._next_pass is None or view.now < self._next_pass:
            return False
        self._next_pass = None
        where = self._where
        if view.data is not None:  # tables may have reached other regions
            for handle, job in view.waiting.items():
                if job.job.tables:
                    regions = self._regions(view, job.job)
                    kinds = self._ledger.waiting[handle].kinds
                    where[handle] = cells.where(view.free, handle, job.job.gpus, regions, kinds)
        self.rank_all(view.now)
        return True

    def rank_all(self, now: Tick) -> None:
        """Give all waiting jobs new classes and credits (GMS-scan pass, section 4.2)."""
        where = self._where
        for handle in self._ledger.cover():
            if self._books is not None:
                self._books.rerank(handle, self._ledger.running[handle].rank)
        ranked = self._ledger.rank_all(now)
        if self._ledger.tells_kinds_apart:  # a pass may charge a job to another kind
            for _, handle, entry in ranked:
                where[handle] = where[handle]._replace(kinds=entry.kinds)
        self._queue.rebuild(
            (handle, entry.rank, where[handle], entry.gpus, -minus)
            for minus, handle, entry in ranked
        )
        self._fresh.update(*self._queue.groups)

    def _record_pass(self, now: Tick, before: int) -> None:
        """Add a row to `passes`. A hit is a job that was refused without a look of its own."""
        waiting = len(self._queue)
        refusals = self._queue.refusals()
        over = sum(not entry.within for entry in self._ledger.waiting.values())
        self._passes.append(
            {
                "time_s": seconds(now),
                "waiting": before,
                "started": before - waiting,
                "over_quota": over,
                "refusals": refusals,
                "hits": waiting - refusals,
            }
        )

    # -- a sweep over the queue ----------------------------------------------------------

    def _sweep(
        self, view: ClusterView, books: Books, cells: Cells
    ) -> tuple[list[Decision], FreeGpus]:
        """Start the jobs that have a plan. A later class never takes GPUs from an earlier one.

        Returns the decisions, and the free GPUs after them.
        """
        stale, fresh = self._stale, self._fresh
        decisions: list[Decision] = []
        free = view.free
        if len(self._queue) and (stale or fresh):
            sweep = QueueSweep(view, books, cells, self._ledger, self._queue, stale, self._joint)
            decisions, self._preempted = sweep.decisions, sweep.preempted
            anywhere = cells.looks_at_load
            for rank, groups in enumerate(self._queue.groups):
                if groups:
                    places = [
                        where
                        for where in groups
                        if anywhere or where in fresh or not stale.isdisjoint(where.regions)
                    ]
                    sweep.serve(rank, places)
            free = sweep.free
        stale.clear()
        fresh.clear()
        return decisions, free


def _spared(view: ClusterView) -> frozenset[int]:
    """The running jobs whose GPUs would not become free, as they are about to leave service."""
    return frozenset([handle for handle, job in view.running.items() if not view.frees(job)])


class Federated(Mast):
    """Another cell of Table 1."""

    Options: ClassVar = FederatedOptions
