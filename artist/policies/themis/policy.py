"""Themis: finish-time fairness by auctions of leased GPUs.

Source: Mahajan et al., *Themis: Fair and efficient GPU cluster scheduling*, NSDI 2020.

**What is where.**

- Section 3.2, finish-time fairness rho: `fairness.py`.
- Section 3.3, partial-allocation auction, hidden payments: `auction.py`;
  the search for winners: `winners.py`.
- Section 3.3, rounds, fairness knob f, leftover allocation: `Themis.decide`.
- Where the GPUs lie: `Placer.joint` (`shared/placers.py`).

**The rule.** rho = T_shared / T_ideal. T_shared is the time from the arrival of a job to the
finish that it would see. T_ideal is its run time alone on its own number of GPUs, placed as close
together as an empty cluster allows. A bid for k GPUs is rho if the job ran on k such GPUs from now
on. With no GPUs, the job first waits one more lease.

1. *Offer.* At each arrival and finish the free GPUs are on offer to the waiting jobs. At the end of
   a bidding period, GPUs of running jobs are on offer too, and these jobs take part. Such a job has
   completed a whole iteration (as submitted) on them, and one of its leases, counted from the
   start of its stay, ended in that period. A lease that ends with a period belongs to it.
2. *Bidding periods* follow one another. The first one begins with the first arrival; in other
   permutations than 0, a random part of a period later (`shared/clock.py`). An end is planned
   whenever a job could use more GPUs than it has after a question, and no end is planned yet: the
   end of the first period, this one or a later one, in which a lease ends. GPUs are on offer only
   at planned ends. So if no job waited before, a job that arrives at the end of a period gets no
   leased GPUs yet.
3. *Auction.* The jobs are ranked by their rho without GPUs, the largest first; among equals, the
   earlier arrival. The first 1 - f of them (rounded up) bid, for every number of GPUs that they
   can run on.
   Where jobs require kinds of GPUs, a bid is for GPUs of any kind. A winner leaves the auction, and
   it is held again, if the jobs before it have won what it accepts, or no placement is to be had.
4. *Leftovers.* GPUs that no bidder kept go to the jobs that did not bid, in random order; with
   `leftover=worst-first`, by rho. Then they go to the bidders that lost and to elastic winners,
   by rho. Each job gets as many as it can run on, until no job can use them. An order is drawn
   for every auction.
5. *Placement.* The placer places all jobs together. A running job whose GPUs were on offer
   and that got none is preempted.
6. If no job on offer or waiting could use more GPUs than it has, or none can run on so few, there
   is no auction, and leases renew in place.

**Checked.** The section numbers were checked against published summaries. The values 0.8 and 20
minutes and the order of leftovers could not be checked against the paper's text.

**Deviations.**

- The paper's T_ideal is on a 1/N share of the cluster. Here the job is alone, so that rho can be
  compared with other policies.
- The paper's applications are groups of jobs. Here each application is one job.
- The paper bids on sets of GPUs. Here a bid is by number, at the closest placement of this many.
- This policy keeps the leases itself, without the engine. Leases that are auctioned one by one
  would never offer the GPUs of a gang together, if the gang is larger than any job with a lease.
- A job that loses its GPUs at a bidding period loses the iteration in progress.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import ClassVar

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
from artist.policies.shared.clock import PeriodClock
from artist.policies.shared.gpu_counts import GpuCounts
from artist.policies.shared.placers import placer
from artist.policies.shared.refusals import OtherKinds, one_unit
from artist.policies.shared.sharing import Sharing
from artist.policies.themis.auction import auction
from artist.policies.themis.fairness import FinishTimes
from artist.policies.themis.options import ThemisOptions
from artist.rng import FIRST_DRAWS, Draws
from artist.units import Tick, ticks


class Themis(BasePolicy):
    """Themis without its groups of jobs."""

    Options: ClassVar = ThemisOptions
    obeys_gpu_kinds = True

    def __init__(self, options: ThemisOptions, draws: Draws | None = None) -> None:
        draws = draws or FIRST_DRAWS
        self.options = options
        self._placer = placer(options.placement)
        self._lease_ticks = ticks(options.lease_s)
        self._period = ticks(options.period_s or options.lease_s)
        self._periods = PeriodClock(self._period, draws.phase(self._period))
        self._fairness = FinishTimes(self._lease_ticks)
        self._rng = draws.stream("themis.leftover")
        self._done_at_start: dict[int, int] = {}
        # The jobs in the system that can run on different numbers of GPUs.
        self._elastic: dict[int, JobView] = {}
        self._wake: Tick = -1
        self._other_kinds = OtherKinds()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Hold an auction if GPUs are on offer and a job can use them."""
        self._periods.asked(view)
        for handle in view.finished:
            del self._done_at_start[handle]
            self._fairness.forget(handle)
            self._elastic.pop(handle, None)
        for job in view.entered:
            self._fairness.entered(job, view)
            if job.job.gpus_min < job.job.gpus_max:
                self._elastic[job.handle] = job
        offered = self._offered(view) if view.now == self._wake else []
        decisions, waits = self._answer(view, offered)
        waits += self._other_kinds.waits(view, decisions)
        for decision in decisions:
            if isinstance(decision, Start | Migrate):
                job = view.waiting.get(decision.handle) or view.running[decision.handle]
                self._done_at_start[decision.handle] = job.iterations_done(view.now)
        return [*decisions, *waits, *self._next_period(view, decisions)]

    # -- the auction -----------------------------------------------------------------

    def _answer(
        self, view: ClusterView, offered: Sequence[JobView]
    ) -> tuple[list[Decision], list[Decision]]:
        """The decisions, and why jobs wait. Kinds may keep a winner from its GPUs: then others get
        them.
        """
        but: set[int] = set()
        while counts := self._hand_out(view, offered, but):
            # Offered jobs without a number get 0.
            wanted = {job.handle: 0 for job in offered} | counts
            placements = self._placer.joint(view, wanted)
            unplaced = {x for x, gpus in counts.items() if gpus and x not in placements}
            if view.free.hosts is None or not unplaced:
                return self._placed(view, offered, counts, placements)
            but |= unplaced
        return [], []

    def _hand_out(
        self, view: ClusterView, offered: Sequence[JobView], but: Collection[int]
    ) -> dict[int, int]:
        """Number of GPUs per job, by handle; empty if no job could use the GPUs on offer.

        Jobs in `but` get none.
        """
        room = GpuCounts(view.free, offered)
        jobs = [job for job in (*view.waiting.values(), *offered) if job.handle not in but]
        if not any(_wants(x) and x.job.gpus_min <= room.left(x.job.gpu_kinds) for x in jobs):
            return {}
        losing = {job.handle: self._fairness.rho_without(job, view) for job in jobs}
        jobs.sort(key=lambda job: job.handle)
        ranked = sorted(jobs, key=lambda job: losing[job.handle], reverse=True)
        bidders = self._bidders(len(ranked))
        counts, room = self._auction(view, room, ranked[:bidders])
        others = ranked[bidders:]
        if self.options.leftover == "random":
            others = [others[index] for index in self._rng.permutation(len(others)).tolist()]
        for job in (*others, *ranked[:bidders]):
            if not room.total:
                break
            had = counts.get(job.handle, 0)
            has = min(job.job.gpus_max, had + room.left(job.job.gpu_kinds))
            if has >= job.job.gpus_min and has > had:
                room.promise(job.job.gpu_kinds, has - had)
                counts[job.handle] = has
        return counts

    def _auction(
        self, view: ClusterView, room: GpuCounts, bidders: Sequence[JobView]
    ) -> tuple[dict[int, int], GpuCounts]:
        """Number of GPUs per winner, by handle; and what is left.

        It is held without a winner, if those before it have won what it accepts.
        """
        bids = {x.handle: self._fairness.bid(x, view, room.left(x.job.gpu_kinds)) for x in bidders}
        while True:
            counts = auction([bid for bid in bids.values() if bid.options], room.total)
            left = room.copy()
            for job in bidders:
                won = counts.get(job.handle)
                if won and won > left.left(job.job.gpu_kinds):
                    del bids[job.handle]
                    break
                if won:
                    left.promise(job.job.gpu_kinds, won)
            else:
                return counts, left

    def _bidders(self, jobs: int) -> int:
        """1 - f of the jobs, rounded up; f is the decimal number that it prints as."""
        num, den = Decimal(repr(self.options.fairness_knob)).as_integer_ratio()
        return -(-(den - num) * jobs // den)

    def _placed(
        self,
        view: ClusterView,
        offered: Sequence[JobView],
        counts: Mapping[int, int],
        placements: Mapping[int, Placement],
    ) -> tuple[list[Decision], list[Decision]]:
        """The decisions that give each job its number of GPUs.

        And why jobs wait that won GPUs, but where no placement was to be had.
        """
        decisions: list[Decision] = []
        for job in offered:
            placement = placements.get(job.handle)
            if placement is None:
                decisions.append(Preempt(job.handle))
            elif placement != job.placement:
                decisions.append(Migrate(job.handle, placement))
        sharing = Sharing(view, self.options.most_slowdown)
        sharing.decisions = decisions
        waits: list[Decision] = []
        for handle in view.waiting:
            placement = sharing.permitted(handle, placements.get(handle))
            if placement is not None:
                decisions.append(Start(handle, placement))
            elif handle not in placements and counts.get(handle):
                wait = one_unit(self._placer.widest, view.cluster, handle, counts[handle])
                waits.append(wait)
        return decisions, waits + sharing.waits()

    # -- leases ----------------------------------------------------------------------

    def _offered(self, view: ClusterView) -> list[JobView]:
        """Running jobs that had a lease end in the bidding period that ends now.

        A job that completed no iteration since it got its GPUs is not among them.
        """
        return [
            job
            for _, job in sorted(view.running.items())
            if self._lease_end(job.started, view.now - self._period) <= view.now
            and job.iterations_done(view.now) > self._done_at_start[job.handle]
            and view.frees(job)
        ]

    def _lease_end(self, started: Tick, after: Tick) -> Tick:
        """The first end of a lease after a tick, for a job that started at `started`."""
        leases = max(0, after - started) // self._lease_ticks + 1
        return started + leases * self._lease_ticks

    def _next_period(self, view: ClusterView, decisions: Sequence[Decision]) -> list[Wake]:
        """A wake-up for the end of the next bidding period in which a lease ends.

        The answer is empty if no job wants GPUs, no lease ends, or a wake-up is due before it.
        """
        if not self._wanted(view, decisions):
            return []
        lost = {decision.handle for decision in decisions if isinstance(decision, Preempt)}
        moved = {decision.handle for decision in decisions if isinstance(decision, Start | Migrate)}
        since = self._periods.last(view.now)
        ends = [
            self._lease_end(job.started, since)
            for handle, job in view.running.items()
            if handle not in lost and handle not in moved
        ]
        if moved:
            ends.append(view.now + self._lease_ticks)
        if not ends:
            return []
        at = self._periods.at_or_after(min(ends))
        if view.now < self._wake <= at:
            return []
        self._wake = at
        return [Wake(at)]

    def _wanted(self, view: ClusterView, decisions: Sequence[Decision]) -> bool:
        """Whether a job could use more GPUs after these decisions.

        Among the jobs that then run, only those can that run on different numbers of GPUs.
        """
        placed = {
            decision.handle: decision.placement.gpus
            for decision in decisions
            if isinstance(decision, Start | Migrate)
        }
        if len(placed) < len(decisions) or any(handle not in placed for handle in view.waiting):
            return True  # a job waits, or has just lost its GPUs
        return any(
            placed.get(handle, job.gpus) < job.job.gpus_max for handle, job in self._elastic.items()
        )


def _wants(job: JobView) -> bool:
    """Whether a job could use more GPUs than it holds."""
    return job.job.gpus_max > job.gpus
