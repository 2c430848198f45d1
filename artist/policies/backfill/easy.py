"""EASY backfilling: only the first job that does not fit has a reservation.

Sources: Lifka, *The ANL/IBM SP scheduling system* (JSSPP 1995); Mu'alem and Feitelson,
*Utilization, predictability, workloads, and user runtime estimates* (TPDS 2001), section 2.

1. Waiting jobs come forward in the policy's order (option `order`). Each starts on the GPUs that
   its placer finds, until one finds none: the *head*.
2. The head's reservation is the earliest time at which its placer would find GPUs if every running
   job left when it is expected to (`estimates.py`).
3. A later job starts if it is expected to leave by then, or if its placer would still find GPUs
   for the head at that time beside it and the other jobs started so.

On two logs of the Parallel Workloads Archive, SDSC-SP2 (4,606 jobs) and KTH-SP2 (5,000), every job
starts when the simulator pyss starts it, under `conservative` too. Events that share a second were
moved apart there, since pyss asks once per event; as recorded, 99.6 to 100 % of starts are equal.

No job is ever preempted. Jobs on GPUs that are about to leave service give none back.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start, Wait
from artist.errors import shortened
from artist.policies.backfill.estimates import RunEstimates
from artist.policies.backfill.options import BackfillOptions
from artist.policies.backfill.waiting_jobs import Needs, Outlook, SameNeeds, Told, WaitingJobs
from artist.policies.shared.placers import placer
from artist.policies.shared.ranking import ORDERS
from artist.policies.shared.refusals import one_unit, too_little
from artist.policies.shared.usable import lacking, usable_by
from artist.units import Tick
from artist.workload.job import Job


class Easy(BasePolicy):
    """EASY backfilling under any order."""

    Options: ClassVar = BackfillOptions
    reads_hosts = True
    obeys_gpu_kinds = True
    reads_shares = True

    def __init__(self, options: BackfillOptions) -> None:
        self.options = options
        self._rank = ORDERS[options.order]
        self._placer = placer(options.placement)
        self._estimates = RunEstimates(options.estimates)
        self._learns = options.estimates == "learned"
        self._queue = WaitingJobs()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Start jobs in order, and behind the head those that do not delay it."""
        self._estimates.learn(view)
        for job in view.entered:
            self._queue.add(job, self._rank(job, view.now))
        room = view.free.room
        if not self._queue.any_within(room):
            return ()  # every waiting job asks for more than is left
        free = view.free.copy()
        starts: dict[int, Placement] = {}
        waits: list[Decision] = []
        head: _Head | None = None
        # By what they need: what waiting jobs find, until GPUs are claimed.
        outlooks: dict[SameNeeds, Outlook] = {}

        def possible(demand: int) -> bool:
            return head is None or room >= demand

        for alike, index, job in self._queue.walk(possible, outlooks):
            outlook = outlooks.get(alike)
            if outlook is None:
                outlook = outlooks[alike] = Outlook(self._place(job.job, free), index)
            placement = outlook.placement
            if placement is None:
                if room >= job.job.demand:
                    outlook.why, outlook.wait = self._misfit(view, job, free)
                if head is None:
                    head = self._reserve(view, job, free, starts)
            elif head is None or self._permitted(view, alike, index, job, placement, head):
                waits += self._queue.told(outlooks, job.handle)
                outlooks.clear()
                free.claim(placement, job.job)
                room = free.room
                starts[job.handle] = placement
            elif outlook.wait is None:
                outlook.why, outlook.wait = head.job.handle, Wait(job.handle, head.reason)
                outlook.time = head.left(view.now)
        waits += self._queue.told(outlooks)
        for handle, placement in starts.items():
            job = view.waiting[handle]
            self._estimates.starts(job, view.now, self._estimates.duration(view, job, placement))
            self._queue.remove(handle)
        return [*waits, *(Start(handle, placement) for handle, placement in starts.items())]

    def _permitted(
        self,
        view: ClusterView,
        alike: SameNeeds,
        index: int,
        job: JobView,
        placement: Placement,
        head: _Head,
    ) -> bool:
        """Whether a job may start beside the head. Most of a long queue may not, as few are short.

        So a bound of the job's run time, which is known, comes before the time itself.
        """
        shortest = self._estimates.shortest(view, job)
        if not self._learns:  # else it changes while the job waits
            alike.shortest[index] = shortest
        if head.refuses(view.now + shortest, placement, alike.needs):
            return False
        end = self._expected_end(view, job, placement)
        return head.permits(end, placement, job.job, alike.needs)

    def _expected_end(self, view: ClusterView, job: JobView, placement: Placement) -> Tick:
        return view.now + self._estimates.duration(view, job, placement)

    def _reserve(
        self, view: ClusterView, job: JobView, free: FreeGpus, starts: dict[int, Placement]
    ) -> _Head:
        """The first job that does not fit gets its reservation."""
        ends = [
            (self._expected_end(view, view.waiting[handle], placement), handle)
            for handle, placement in starts.items()
        ]
        whole, end = not view.on_notice, self._estimates.end
        for handle, running in view.running.items():
            # Also a job that keeps its GPUs at this question leaves them when it ends.
            if running.placement is not None and (whole or view.leaves_free(running)):
                ends.append((end(running, view.now), handle))

        def give_back(free: FreeGpus, handle: int) -> None:
            state = view.waiting.get(handle) or view.running[handle]
            placement = starts.get(handle) or state.placement
            assert placement is not None  # it holds GPUs
            free.release(placement, state.job)

        return _Head(job, self._place, free.copy(), ends, give_back)

    def _place(self, job: Job, free: FreeGpus) -> Placement | None:
        return self._placer.place(usable_by(free, job), job.gpus)

    def _misfit(self, view: ClusterView, job: JobView, free: FreeGpus) -> tuple[Told, Wait]:
        """Why a job has no place although enough GPUs are free."""
        lacks = lacking(free, job.job, partial(self._place, job.job))
        if lacks is not None:
            return lacks.resource.cause, too_little(job.handle, job.job.gpus, lacks)
        return None, one_unit(self._placer.widest, view.cluster, job.handle, job.job.gpus)


class _Head:
    """The first job that does not fit, and its reservation.

    `ends` say when the jobs that hold GPUs `give_back` these, with their handles.
    """

    def __init__(
        self,
        job: JobView,
        place: Callable[[Job, FreeGpus], Placement | None],
        free: FreeGpus,
        ends: list[tuple[Tick, int]],
        give_back: Callable[[FreeGpus, int], None],
    ) -> None:
        self.job, self._place = job, place
        whom = f"job {shortened(job.job.id)} ({job.job.gpus} GPUs)"
        # Why jobs wait that would delay it. Written once: a new head is told to the whole queue.
        self.reason = f"it would have delayed {whom}, which has the reservation"
        # The GPUs that are free at the reservation. They only become fewer.
        self._free = free
        # Jobs that would delay it on some GPUs, by what they need.
        self._refused: set[tuple[Placement, Needs]] = set()
        # None: GPUs that are out of service keep it waiting, and no other job can delay it.
        self.at: Tick | None = None
        heapq.heapify(ends)  # most of them are later
        while ends and self.at is None:
            at, handle = heapq.heappop(ends)
            give_back(free, handle)
            last_of_its_tick = not ends or ends[0][0] > at
            if last_of_its_tick and self._fits():
                self.at = at

    def left(self, now: Tick) -> Tick:
        """The time until the reservation."""
        assert self.at is not None  # else no job can delay it
        return self.at - now

    def refuses(self, end: Tick, placement: Placement, needs: Needs) -> bool:
        """Whether it is known that a job may not have these GPUs until `end`."""
        return self.at is not None and end > self.at and (placement, needs) in self._refused

    def permits(self, end: Tick, placement: Placement, job: Job, needs: Needs) -> bool:
        """Whether a job that starts now may have these GPUs until `end`. If so, it gets them."""
        if self.refuses(end, placement, needs):
            return False
        if self.at is None or end <= self.at:
            return True
        # A share has no room there if others that start now would be elsewhere by then.
        if not job.is_share or self._free.has(placement, job):
            self._free.claim(placement, job)
            if self._fits():
                return True
            self._free.release(placement, job)
        self._refused.add((placement, needs))
        return False

    def _fits(self) -> bool:
        return self._place(self.job.job, self._free) is not None
