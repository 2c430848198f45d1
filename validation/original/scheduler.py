"""The original simulator's allocator, run by artist's engine (the policies of `policies.py`).

`policies.py` has its rules, `bids.py` how it serves jobs and places a gang. The rest is here.

1. Jobs advance by batches of G iterations (`granularity`).
2. A lease ends at the end of a batch: the first one at which it has expired, or whose next batch
   would outlive it.
3. At the end of a lease the job gives its GPUs back and waits. The GPUs are free at once. They are
   offered n seconds later (n: the job's GPUs) if the lease had expired, and at once if it was cut
   short. They are also offered n seconds after the last batch of a job.
4. An arrival makes an offer at once if any GPU is free.
5. At an offer the waiting jobs bid once for all free GPUs. Greedy backfill serves them.

**Deviations from the original simulator.** Only waiting jobs bid (its variant `fix`). As
published, running jobs bid too, and lose GPUs. The last batch of a job is as long as its
iterations are. Speeds are taken to stay as they are while a job runs. The policy keeps the time of
leases itself.

**Two clocks.** The clock of the original simulator is a sum of floating-point batches. So events
that belong to one instant happen in some order, nanoseconds apart. That order decides which job
gets GPUs. So the agenda is sorted by such a clock (`time_s`). An entry is handled as soon as the
engine's clock, which is exact, has come to it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic import Field

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
from artist.errors import PolicyError
from artist.policies.options import LeaseOptions
from artist.units import Tick, seconds, ticks
from artist.workload.job import Job
from validation.original.accounts import Account, after, lease_batches, summed
from validation.original.bids import Bid, BidQueue, OriginalRule
from validation.original.hash_order import HashOrder

POOL = "hint_pool_iterations"
"""Hint of a job: the iterations of all its GPUs together, if they are not iterations x GPUs."""

# An idle cluster with waiting jobs makes another offer after a minute.
IDLE_S = 60.0
# Delay of an offer, per GPU that a job gives back.
OVERHEAD_S = 1.0

# If the two clocks differ by more, the job has run at other speeds than was planned.
DRIFT_S = 1e-3

END, OFFER = 0, 1


class OriginalOptions(LeaseOptions):
    """Options that all schedulers of the original simulator have."""

    # That of the recorded runs of the original simulator.
    granularity: int = Field(default=1000, ge=1, description="iterations per GPU in a batch")
    machine_order_seed: int | None = Field(
        default=None,
        ge=0,
        description="seed of random numbers of the machines; if not given, their own numbers",
    )


class AgendaEntry(NamedTuple):
    """An entry of the agenda: the end of a job's lease, or an offer of the free GPUs."""

    time_s: float
    event: int
    """END or OFFER."""
    handle: int
    """-1 for an offer."""
    tick: Tick
    """The engine's tick at which the entry is due."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A job on its GPUs for some batches."""

    placement: Placement
    iteration_s: float
    anchor: Tick
    """When the engine started the first batch on these GPUs."""
    before: int
    """Batches since then in earlier leases on the same GPUs."""
    batches: int
    expires: bool
    """Whether the lease has expired at the end of its last batch; else it is cut short."""
    end_s: float


class OriginalScheduler(BasePolicy):
    """One of the original simulator's schedulers. The engine's own lease stays off."""

    remembers_placements = True

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
        self._agenda: list[AgendaEntry] = []
        self._wake: Tick = -1

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Handle the entries that are due, and plan the next question."""
        for job in view.entered:
            if job.handle in self._leases:
                raise PolicyError(
                    f"job {job.job.id!r} lost its GPUs in an outage; the original simulator has no "
                    "outages, use a policy that is not its own"
                )
            if job.handle not in self._accounts:
                self._arrived(job, view)
        for handle in view.finished:
            self._finished.add(handle)
            self._plan(AgendaEntry(self._end_s(handle, view.now), END, handle, view.now))
        answer = Answer(view, self._free(view.free))
        while self._agenda and self._agenda[0].tick <= view.now:
            entry = heapq.heappop(self._agenda)
            if entry.event == OFFER:
                self._offer(entry.time_s, answer)
            elif entry.handle in self._leases:
                self._ended(entry, answer)
        return [*answer.decisions(), *self._next_question(view.now)]

    def tables(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """The tables of the rule."""
        return self.rule.tables()

    # -- events ----------------------------------------------------------------------

    def _arrived(self, arrival: JobView, view: ClusterView) -> None:
        job, handle = arrival.job, arrival.handle
        iterations = int(str(job.hints.get(POOL, job.iterations * job.gpus)))
        entered_s = seconds(arrival.entered)
        self._jobs[handle] = job
        self._accounts[handle] = Account(iterations, job.compute_s, job.gpus, entered_s)
        self._enter(handle, entered_s)
        if view.free.total:
            self._plan(AgendaEntry(entered_s, OFFER, -1, view.now))

    def _ended(self, entry: AgendaEntry, answer: Answer) -> None:
        """A job has finished, or its lease has ended and it bids again."""
        handle, lease = entry.handle, self._leases.pop(entry.handle)
        account = self._accounts[handle]
        answer.free.release(lease.placement)
        if handle in self._finished:
            self._finished.remove(handle)
            del self._accounts[handle], self._jobs[handle]
            delayed = True
        else:
            answer.ended[handle] = lease
            account.ran(lease.batches, lease.iteration_s, self._granularity)
            self._enter(handle, entry.time_s)
            delayed = lease.expires
        time_s = entry.time_s + (OVERHEAD_S * account.gpus if delayed else 0.0)
        self._plan(AgendaEntry(time_s, OFFER, -1, max(answer.view.now, ticks(time_s))))

    def _enter(self, handle: int, time_s: float) -> None:
        """A job enters the queue."""
        account = self._accounts[handle]
        account.since_s = time_s
        kind = self.rule.kind(self._jobs[handle].model)
        measure = self.rule.measure(account)
        self._queue.add(Bid(handle, account.gpus, kind, measure, time_s))

    def _plan(self, entry: AgendaEntry) -> None:
        heapq.heappush(self._agenda, entry)

    def _end_s(self, handle: int, now: Tick) -> float:
        """When a job finished, by the original simulator's clock.

        By the engine's clock, if the job has run at other speeds than was planned.
        """
        end_s, now_s = self._leases[handle].end_s, seconds(now)
        return end_s if abs(end_s - now_s) < DRIFT_S else now_s

    def _next_question(self, now: Tick) -> list[Decision]:
        if not self._agenda and self._queue and not self._leases:
            self._plan(AgendaEntry(seconds(now) + IDLE_S, OFFER, -1, now + ticks(IDLE_S)))
        if not self._agenda or now < self._wake <= self._agenda[0].tick:
            return []
        self._wake = self._agenda[0].tick
        return [Wake(self._wake)]

    def _free(self, free: FreeGpus) -> FreeGpus:
        """The free GPUs, without those of jobs whose end is still on the agenda.

        Such jobs have finished by the engine's clock. `_ended` releases their GPUs.
        """
        rest = free.copy()
        for handle in self._finished:
            rest.claim(self._leases[handle].placement)
        return rest

    # -- offers ----------------------------------------------------------------------

    def _offer(self, time_s: float, answer: Answer) -> None:
        """Waiting jobs bid for all free GPUs, also those whose lease has just ended."""
        free = answer.free
        if self._visits is None:
            self._visits = HashOrder(free.tree, self._seed)
        granted = []
        for bid, level, placement in self._queue.round(free, self.rule, self._visits, time_s):
            free.claim(placement)
            waited_s = time_s - bid.since_s
            self.rule.granted(free.tree, level, bid.gpus, waited_s, time_s)
            self._grant(bid.handle, placement, time_s, answer)
            granted.append(bid.handle)
        for handle in granted:
            self._queue.remove(handle)

    def _grant(self, handle: int, placement: Placement, time_s: float, answer: Answer) -> None:
        """Start a lease. A job that gets its former GPUs back goes on without a pause."""
        job, account, view = self._jobs[handle], self._accounts[handle], answer.view
        last = answer.ended.get(handle)
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
        self._leases[handle] = answer.granted[handle] = lease
        if batches < left:
            # Never before the next tick, or this question would be asked again at once.
            end = after(anchor, (before + batches) * self._granularity, iteration_s)
            self._plan(AgendaEntry(end_s, END, handle, max(end, ticks(end_s), view.now + 1)))


@dataclass(slots=True)
class Answer:
    """The answer to one question, as far as it is worked out.

    `free` holds the GPUs that are free now. `ended` and `granted` hold, by handle, the leases that
    ended and those that began.
    """

    view: ClusterView
    free: FreeGpus
    ended: dict[int, Lease] = field(default_factory=dict)
    granted: dict[int, Lease] = field(default_factory=dict)

    def decisions(self) -> Iterator[Decision]:
        """The decisions that lead from the leases before the question to those after it."""
        for handle, lease in self.granted.items():
            if handle not in self.ended:
                yield Start(handle, lease.placement)
            elif lease.placement != self.ended[handle].placement:
                yield Migrate(handle, lease.placement)
        for handle in self.ended:
            if handle not in self.granted:
                yield Preempt(handle)
