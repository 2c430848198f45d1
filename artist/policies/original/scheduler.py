"""The original simulator's allocator, run by our engine (policies `*-original`).

`rules.py` has its schedulers' rules and `placement.py` how it places a gang. Beside these:

- jobs advance by batches of G iterations (`granularity`), and a lease ends at a batch's end:
  the first one at which it has expired, or whose next batch would outlive it;
- at the end of a lease the job gives its GPUs back and waits. They are free at once, but
  offered n seconds later (n: the job's GPUs) if the lease had expired, at once if it was cut
  short; n seconds after a job's last batch likewise. An arrival has what is free offered at once;
- at an offer the waiting jobs bid once, and are served by greedy backfill.

Only waiting jobs bid (variant `fix`): in the original as published running jobs bid as well, and
lose GPUs. Approximated: the job's last batch is as long as its iterations are; speeds are taken to
stay as they are while a job runs. The policy keeps the time of leases itself.

**Two clocks.** The original's clock is a sum of floating-point batches: what would happen at one
instant happens in some order within a nanosecond. That order decides who gets GPUs, so the
agenda is kept by such a clock (`time_s`), and what is due is handled in its order as soon as
the engine's clock, which is exact, has come to it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
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
from artist.policies.original.accounts import Account, after, lease_batches, summed
from artist.policies.original.hash_order import HashOrder
from artist.policies.original.options import OriginalOptions
from artist.policies.original.queue import Bid, BidQueue
from artist.policies.original.rules import OriginalRule
from artist.units import Tick, seconds, ticks
from artist.workload.job import Job

POOL = "hint_pool_iterations"
"""A job's iterations of all GPUs together, where they are not whole batches."""

# An idle cluster with waiting jobs is looked at again after a minute.
IDLE_S = 60.0
# After how long GPUs are offered, per GPU that a job gives back.
OVERHEAD_S = 1.0

# The clocks are never so far apart while speeds stay as they are.
DRIFT_S = 1e-3

END, OFFER = 0, 1


class Entry(NamedTuple):
    """Something to do: the end of a job's lease, or an offer of what is free."""

    time_s: float
    kind: int
    handle: int
    tick: Tick
    """When the engine has come to it."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A job on its GPUs for some batches."""

    placement: Placement
    iteration_s: float
    anchor: Tick
    """When the engine started the first batch on these GPUs."""
    before: int
    """Batches since then in earlier leases."""
    batches: int
    expires: bool
    """Whether it has expired at the end of its last batch, rather than be cut short."""
    end_s: float


class OriginalScheduler(BasePolicy):
    """One of the original's schedulers. The engine's own lease stays off."""

    def __init__(self, rule: OriginalRule, options: OriginalOptions) -> None:
        self.rule = rule
        self._lease_s = options.lease_s
        self._granularity = options.granularity
        self._seed = options.machine_order_seed
        self._visits: HashOrder | None = None
        self._queue = BidQueue()
        self._jobs: dict[int, Job] = {}
        self._accounts: dict[int, Account] = {}
        self._leases: dict[int, Lease] = {}
        self._finished: set[int] = set()
        self._agenda: list[Entry] = []
        self._wake: Tick = -1

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Do what is due, in the order of the original's clock, and plan the next question."""
        for job in view.entered:
            if job.handle not in self._accounts:
                self._arrived(job, view)
        for handle in view.finished:
            self._finished.add(handle)
            self._plan(Entry(self._end_s(handle, view.now), END, handle, view.now))
        turn = Turn(view, self._free(view.free))
        while self._agenda and self._agenda[0].tick <= view.now:
            entry = heapq.heappop(self._agenda)
            if entry.kind == OFFER:
                self._offer(entry.time_s, turn)
            elif entry.handle in self._leases:
                self._ended(entry, turn)
        return [*turn.decisions(), *self._next_question(view.now)]

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What the rule has written down."""
        return self.rule.tables()

    # -- events ----------------------------------------------------------------------

    def _arrived(self, view: JobView, now: ClusterView) -> None:
        job, handle = view.job, view.handle
        pool = int(str(job.hints.get(POOL, job.iterations * job.gpus)))
        self._jobs[handle] = job
        self._accounts[handle] = Account(pool, job.compute_s, job.gpus, seconds(view.entered))
        self._enter(handle, seconds(view.entered))
        if now.free.total:
            self._plan(Entry(seconds(view.entered), OFFER, -1, now.now))

    def _ended(self, entry: Entry, turn: Turn) -> None:
        """A job is done, or bids again."""
        handle, lease = entry.handle, self._leases.pop(entry.handle)
        account = self._accounts[handle]
        turn.free.release(lease.placement)
        if handle in self._finished:
            self._finished.remove(handle)
            del self._accounts[handle], self._jobs[handle]
            delayed = True
        else:
            turn.ended[handle] = lease
            account.ran(lease.batches, lease.iteration_s, self._granularity)
            self._enter(handle, entry.time_s)
            delayed = lease.expires
        time_s = entry.time_s + (OVERHEAD_S * account.gpus if delayed else 0.0)
        self._plan(Entry(time_s, OFFER, -1, max(turn.view.now, ticks(time_s))))

    def _enter(self, handle: int, time_s: float) -> None:
        account = self._accounts[handle]
        account.since_s = time_s
        kind = self.rule.kind(self._jobs[handle].model)
        measure = self.rule.measure(account)
        self._queue.add(Bid(handle, account.gpus, kind, measure, time_s))

    def _plan(self, entry: Entry) -> None:
        heapq.heappush(self._agenda, entry)

    def _end_s(self, handle: int, now: Tick) -> float:
        """By the original's clock, unless the job ran at other speeds than was expected."""
        end_s, now_s = self._leases[handle].end_s, seconds(now)
        return end_s if abs(end_s - now_s) < DRIFT_S else now_s

    def _next_question(self, now: Tick) -> list[Decision]:
        if not self._agenda and self._queue and not self._leases:
            self._plan(Entry(seconds(now) + IDLE_S, OFFER, -1, now + ticks(IDLE_S)))
        if not self._agenda or now < self._wake <= self._agenda[0].tick:
            return []
        self._wake = self._agenda[0].tick
        return [Wake(self._wake)]

    def _free(self, free: FreeGpus) -> FreeGpus:
        """Without the GPUs of jobs that finished, but whose end is not due on the agenda yet."""
        left = free.copy()
        for handle in self._finished:
            left.claim(self._leases[handle].placement)
        return left

    # -- offers ----------------------------------------------------------------------

    def _offer(self, time_s: float, turn: Turn) -> None:
        """Waiting jobs, among them those whose lease has just ended, bid for all free GPUs."""
        free = turn.free
        if self._visits is None:
            self._visits = HashOrder(free.tree, self._seed)
        granted = []
        for bid, level, placement in self._queue.round(free, self.rule, self._visits, time_s):
            free.claim(placement)
            waited_s = time_s - bid.since_s
            self.rule.granted(free.tree, level, bid.gpus, waited_s, time_s)
            self._grant(bid.handle, placement, time_s, turn)
            granted.append(bid.handle)
        for handle in granted:
            self._queue.remove(handle)

    def _grant(self, handle: int, placement: Placement, time_s: float, turn: Turn) -> None:
        """Start a lease; a job that gets its own GPUs back goes on without a pause."""
        job, account, view = self._jobs[handle], self._accounts[handle], turn.view
        last = turn.ended.get(handle)
        if last is not None and placement == last.placement:
            anchor, before, restart_s = last.anchor, last.before + last.batches, 0.0
            iteration_s = last.iteration_s
        else:
            restart_s = job.restart_s if account.run_s else 0.0
            anchor, before = view.now + ticks(restart_s), 0
            iteration_s = view.alone(job, placement).iteration_s
        batch_s = iteration_s * self._granularity
        batches, expires = lease_batches(batch_s, self._lease_s, account.gpus)
        left = -(-account.remaining // (self._granularity * account.gpus))
        end_s = summed(time_s + restart_s, batch_s, min(batches, left))
        lease = Lease(placement, iteration_s, anchor, before, batches, expires, end_s)
        self._leases[handle] = turn.granted[handle] = lease
        if batches < left:
            end = after(anchor, (before + batches) * self._granularity, iteration_s)
            self._plan(Entry(end_s, END, handle, max(end, ticks(end_s), view.now + 1)))


@dataclass(slots=True)
class Turn:
    """What happens at one question."""

    view: ClusterView
    free: FreeGpus
    ended: dict[int, Lease] = field(default_factory=dict)
    granted: dict[int, Lease] = field(default_factory=dict)

    def decisions(self) -> Iterator[Decision]:
        """The net effect."""
        for handle, lease in self.granted.items():
            if handle not in self.ended:
                yield Start(handle, lease.placement)
            elif lease.placement != self.ended[handle].placement:
                yield Migrate(handle, lease.placement)
        for handle in self.ended:
            if handle not in self.granted:
                yield Preempt(handle)
