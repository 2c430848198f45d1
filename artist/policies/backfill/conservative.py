"""Conservative backfilling: every job has a reservation, and none is ever put off.

Source: Mu'alem and Feitelson, *Utilization, predictability, workloads, and user runtime estimates*
(TPDS 2001), section 2.

1. A job that enters the queue gets the earliest reservation that meets no other one
   (`profile.py`). Jobs that enter at one instant get theirs in the policy's order.
2. A job starts when its reservation begins.
3. When a job leaves earlier than expected, the schedule is compressed: in the policy's order, each
   waiting job gets the earliest reservation beside all others, if that is earlier than its own.
4. When a job outlasts its estimate, or GPUs leave or enter service, all reservations are void. All
   waiting jobs get new ones in the policy's order.

So a job starts no later than its first reservation, unless 4 happens. No job is ever preempted.

**Cost.** Compressing tries a reservation for every waiting job, so long queues with long estimates
are slow: 300 jobs that arrive within hours on 64 GPUs, with `factor:3`, take 4 s; `exact` .3 s.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, JobView, Start, Wait, Wake
from artist.policies.backfill.estimates import RunEstimates
from artist.policies.backfill.options import BackfillOptions
from artist.policies.backfill.profile import Profile, Reservation
from artist.policies.shared.placers import placer
from artist.policies.shared.ranking import ORDERS, Rank
from artist.policies.shared.refusals import OtherKinds, one_unit, too_little
from artist.policies.shared.usable import lacking, usable_by
from artist.units import Tick
from artist.workload.job import Job


class Conservative(BasePolicy):
    """Conservative backfilling under any order."""

    Options: ClassVar = BackfillOptions
    obeys_gpu_kinds = True

    def __init__(self, options: BackfillOptions) -> None:
        self.options = options
        self._rank = ORDERS[options.order]
        self._placer = placer(options.placement)
        self._estimates = RunEstimates(options.estimates)
        # Waiting jobs in order, with their ranks; and the reservations, by handle.
        self._waiting: list[tuple[Rank, int]] = []
        self.reservations: dict[int, Reservation] = {}
        # When each running job was expected to leave, by handle; and the GPUs in service.
        self._expected: dict[int, Tick] = {}
        self._in_service: object = None
        self._starts: Sequence[Start] = ()
        self._wake: Tick = -1
        self._told: set[int] = set()
        self._kinds = OtherKinds()

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        """Reserve GPUs for the jobs that entered, and start the jobs whose reservation begins."""
        self._estimates.learn(view)
        ends = {x: self._estimates.end(job, view.now) for x, job in view.running.items()}
        void = self._is_void(view, ends)
        compress = self._left_early(view, ends)
        for job in view.entered:
            insort(self._waiting, (self._rank(job, view.now), job.handle))
            self._told.discard(job.handle)
        if void:
            self.reservations.clear()
        entered = {job.handle for job in view.entered}
        to_plan = [x for _, x in self._waiting if void or compress or x in entered]
        if to_plan:
            self._plan(view, ends, to_plan)
        starts = self._start(view.now)
        for start in starts:
            end = ends[start.handle] = self.reservations.pop(start.handle).end
            self._estimates.starts(view.waiting[start.handle], view.now, end - view.now)
        self._expected, self._starts = ends, starts
        return [*self._tell(view, to_plan, starts), *starts, *self._next_wake()]

    # -- what was not expected -------------------------------------------------------

    def _is_void(self, view: ClusterView, ends: dict[int, Tick]) -> bool:
        """Whether a job stays longer than expected, lost its GPUs or got others than its own.

        A wrapper may give others. Other GPUs than before may also be in service.
        """
        expected, before = self._expected, self._in_service
        held = sum(job.gpus for job in view.running.values())
        self._in_service = view.free.total + held, dict(view.on_notice)
        lost = any(job.handle in expected for job in view.entered)
        late = any(end > expected.get(handle, end) for handle, end in ends.items())
        started = ((view.running.get(x.handle), x.placement) for x in self._starts)
        elsewhere = any(
            job is not None and job.placement != placement for job, placement in started
        )
        return lost or late or elsewhere or self._in_service != before

    def _left_early(self, view: ClusterView, ends: dict[int, Tick]) -> bool:
        """Whether a job left, or is to leave, earlier than expected."""
        expected = self._expected
        gone = any(expected.get(handle, view.now) > view.now for handle in view.finished)
        return gone or any(end < expected.get(handle, end) for handle, end in ends.items())

    # -- reservations ------------------------------------------------------------------

    def _plan(self, view: ClusterView, ends: dict[int, Tick], handles: Sequence[int]) -> None:
        """Give jobs the earliest reservations that they can have, one after the other."""
        profile = Profile(view.now, view.free)
        for handle, end in ends.items():
            placement = view.running[handle].placement
            if placement is not None and view.leaves_free(view.running[handle]):
                profile.leaves(end, placement)
        for reservation in self.reservations.values():
            profile.add(reservation)
        for handle in handles:
            self._reserve(view, profile, view.waiting[handle])

    def _reserve(self, view: ClusterView, profile: Profile, job: JobView) -> None:
        before = self.reservations.get(job.handle)
        if before is not None:
            profile.remove(before)
        reservation = profile.earliest(
            job.job.gpus,
            partial(self._place, job.job),
            partial(self._estimates.duration, view, job),
            self._estimates.shortest(view, job),
            None if before is None else before.start,
        )
        reservation = reservation or before
        if reservation is not None:  # else GPUs that are out of service keep it waiting
            self.reservations[job.handle] = reservation
            profile.add(reservation)

    def _place(self, job: Job, free: FreeGpus) -> Placement | None:
        return self._placer.place(usable_by(free, job), job.gpus)

    def _start(self, now: Tick) -> list[Start]:
        """The starts of the jobs whose reservation begins now."""
        starts: list[Start] = []
        for entry in list(self._waiting):
            reservation = self.reservations.get(entry[1])
            if reservation is not None and reservation.start <= now:
                del self._waiting[bisect_left(self._waiting, entry)]
                starts.append(Start(entry[1], reservation.placement))
        return starts

    def _next_wake(self) -> list[Decision]:
        """A wake-up for when a reservation begins or a job outlasts its estimate, if jobs wait."""
        if not self.reservations:
            return []
        starts = (reservation.start for reservation in self.reservations.values())
        first = min([*starts, *self._expected.values()])
        if first == self._wake:
            return []
        self._wake = first
        return [Wake(first)]

    def _tell(
        self, view: ClusterView, planned: Sequence[int], starts: Sequence[Start]
    ) -> list[Decision]:
        """Say why jobs wait although GPUs are free, once for each wait."""
        free, waits = view.free, list[Decision]()
        if starts:
            free = free.copy()
        for start in starts:
            free.claim(start.placement)
        started = {start.handle for start in starts}
        for handle in planned:
            job = view.waiting[handle].job
            gpus = job.gpus
            if handle in started or handle in self._told or gpus > free.total:
                continue
            self._told.add(handle)
            if self._place(job, free) is not None:
                waits.append(Wait(handle, "it would have run into the reservation of another job"))
            elif (lacks := lacking(free, job, partial(self._place, job))) is not None:
                waits.append(too_little(handle, gpus, lacks))
            else:
                waits.append(one_unit(self._placer.widest, view.cluster, handle, gpus))
        if free.hosts is not None:  # the jobs with reservations, too
            for handle, state in view.waiting.items():
                if handle not in started and handle not in self._told:
                    waits += self._kinds.news(free, state)
        return waits
