"""The original simulator's allocator, run by our engine (`--set policy.rules=original`).

What it does beside its rules (`original_rules.py`) and its placement (`original_place.py`):

- jobs advance by batches of G iterations (`granularity`), and a lease ends at a batch's end:
  the first one at which it has expired, or whose next batch would outlive it;
- at the end of a lease the job gives its GPUs back and waits. They are free at once, but
  offered n seconds later (n: the job's GPUs) if the lease had expired, at once if it was cut
  short; n seconds after a job's last batch likewise. An arrival has what is free offered at once;
- at an offer the waiting jobs bid once, and are served by greedy backfill.

Only waiting jobs bid (variant `fix`): in the original as published running jobs bid as well, and
lose GPUs. Approximated: the job's last batch is as long as its iterations are; speeds are taken to
stay as they are while a job runs. The policy keeps the time of leases itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artist.cluster.placement import Placement, tier
from artist.policies.base import (
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    Migrate,
    Preempt,
    Start,
    Wake,
)
from artist.policies.original_jobs import Account, after, lease_batches
from artist.policies.original_order import VisitOrder, visit_order
from artist.policies.original_queue import Bid, BidQueue
from artist.policies.original_rules import OriginalRule
from artist.units import TICKS_PER_S, Tick, seconds, ticks

OFFER = -1
"""An entry of the agenda that is no job's end of lease."""

# An idle cluster with waiting jobs is looked at again after a minute.
IDLE = 60 * TICKS_PER_S


@dataclass(frozen=True, slots=True)
class Lease:
    """A job on its GPUs for some batches."""

    placement: Placement
    anchor: Tick
    """When the engine started the first batch on these GPUs."""
    before: int
    """Batches since then in earlier leases."""
    batches: int
    expires: bool
    """Whether it has expired at the end of its last batch, rather than be cut short."""
    iteration_s: float


class OriginalScheduler(BasePolicy):
    """One of the original's schedulers. The engine's own lease stays off."""

    def __init__(
        self, rule: OriginalRule, lease_s: float, granularity: int, machine_order_seed: int | None
    ) -> None:
        self.rule = rule
        self._lease_s = lease_s
        self._granularity = granularity
        self._seed = machine_order_seed
        self._visits: VisitOrder | None = None
        self._queue = BidQueue()
        self._accounts: dict[int, Account] = {}
        self._leases: dict[int, Lease] = {}
        self._agenda: list[tuple[Tick, int]] = []
        self._wake: Tick = -1

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Book what has ended, offer what is free if an offer is due, plan the next question."""
        for order in view.finished:
            gpus = self._accounts.pop(order).gpus
            del self._leases[order]
            self._offer_at(view.now + gpus * TICKS_PER_S)
        for job in view.entered:
            if job.order not in self._accounts:
                self._arrived(job, view)
        due, offer = self._due(view.now)
        for order in due:
            offer |= self._lease_over(order, view)
        ended = {order: self._leases.pop(order) for order in due}
        decisions = list(self._offer(view, ended) if offer else map(Preempt, ended))
        return decisions + self._next_question(view.now)

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What the rule has written down."""
        return self.rule.tables()

    # -- events ----------------------------------------------------------------------

    def _arrived(self, job: JobView, view: ClusterView) -> None:
        work = job.job
        total, arrival_s = work.iterations * work.gpus, seconds(job.entered)
        self._accounts[job.order] = Account(total, work.compute_s, work.gpus, arrival_s)
        self._enter(job, arrival_s)
        if view.free.total:
            self._offer_at(view.now)

    def _due(self, now: Tick) -> tuple[list[int], bool]:
        """Jobs whose lease ends now, and whether there is an offer."""
        ended, offer = [], False
        while self._agenda and self._agenda[0][0] <= now:
            what = heapq.heappop(self._agenda)[1]
            if what == OFFER:
                offer = True
            else:
                ended.append(what)
        return ended, offer

    def _lease_over(self, order: int, view: ClusterView) -> bool:
        """A job bids again; whether its GPUs are offered at once."""
        lease, account = self._leases[order], self._accounts[order]
        account.ran(lease.batches, self._granularity * lease.iteration_s, self._granularity)
        self._enter(view.running[order], seconds(view.now))
        if lease.expires:
            self._offer_at(view.now + account.gpus * TICKS_PER_S)
        return not lease.expires

    def _enter(self, job: JobView, now_s: float) -> None:
        account = self._accounts[job.order]
        account.since_s = now_s
        kind = self.rule.kind(job.job.model)
        measure = self.rule.measure(account)
        self._queue.add(Bid(job.order, account.gpus, kind, measure, now_s))

    def _offer_at(self, tick: Tick) -> None:
        heapq.heappush(self._agenda, (tick, OFFER))

    def _next_question(self, now: Tick) -> list[Decision]:
        if not self._agenda and self._queue and not self._leases:
            self._offer_at(now + IDLE)
        if not self._agenda or now < self._wake <= self._agenda[0][0]:
            return []
        self._wake = self._agenda[0][0]
        return [Wake(self._wake)]

    # -- offers ----------------------------------------------------------------------

    def _offer(self, view: ClusterView, ended: dict[int, Lease]) -> Iterator[Decision]:
        """One round: waiting jobs, among them those whose lease ended, bid for all free GPUs."""
        if self._visits is None:
            self._visits = visit_order(view.cluster, self._seed)
        free, now_s = view.free.copy(), seconds(view.now)
        for lease in ended.values():
            free.release(lease.placement)
        granted = []
        for bid, placement in self._queue.round(free, self.rule, self._visits, now_s):
            free.claim(placement)
            level = tier(free.tree, placement)
            self.rule.granted(free.tree, level, bid.gpus, now_s - bid.since_s, now_s)
            yield from self._grant(view, bid.order, placement, ended.pop(bid.order, None))
            granted.append(bid.order)
        for order in granted:
            self._queue.remove(order)
        yield from map(Preempt, ended)

    def _grant(
        self, view: ClusterView, order: int, placement: Placement, last: Lease | None
    ) -> Iterator[Decision]:
        """Start a lease; a job that gets its own GPUs back goes on without a pause."""
        account = self._accounts[order]
        job = (view.running if last else view.waiting)[order].job
        if last is not None and placement == last.placement:
            anchor, before = last.anchor, last.before + last.batches
            iteration_s = last.iteration_s
        else:
            restart_s = job.restart_s if account.run_s else 0.0
            anchor, before = view.now + ticks(restart_s), 0
            iteration_s = view.alone_iteration_s(job, placement)
            yield Migrate(order, placement) if last else Start(order, placement)
        batch_s = self._granularity * iteration_s
        batches, expires = lease_batches(batch_s, self._lease_s, account.gpus)
        self._leases[order] = Lease(placement, anchor, before, batches, expires, iteration_s)
        if batches < -(-account.remaining // (self._granularity * account.gpus)):
            end = after(anchor, (before + batches) * self._granularity, iteration_s)
            heapq.heappush(self._agenda, (end, order))
