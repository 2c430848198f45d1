"""One sweep of MAST over its waiting jobs: which of them start, and which jobs they preempt."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from artist.cluster.free_gpus import FreeGpus
from artist.contract import ClusterView, Decision, Preempt, Start
from artist.policies.mast.books import BookedJob, Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.plans import GangPlan, placed
from artist.policies.mast.queue import WaitingQueue, Where
from artist.policies.quota.ledger import LAST_CLASS, Ledger, LedgerEntry

# Shared texts, one per class: a run may have hundreds of thousands of preemptions.
_REASONS = [f"for a job of class {rank}" for rank in range(LAST_CLASS + 1)]


class QueueSweep:
    """Starts the waiting jobs that have a plan, and preempts the victims of these plans."""

    def __init__(
        self,
        view: ClusterView,
        books: Books,
        cells: Cells,
        ledger: Ledger,
        queue: WaitingQueue,
        stale: set[int],
        joint: int,
    ) -> None:
        self._joint = joint
        self.decisions: list[Decision] = []
        self.preempted: dict[int, tuple[BookedJob, LedgerEntry]] = {}
        self._view, self._books, self._cells = view, books, cells
        self._ledger, self._queue, self._stale = ledger, queue, stale
        self.free: FreeGpus = view.free
        # The free GPUs of the view belong to the engine, so they are copied before they change.
        self._owned = False

    def serve(self, rank: int, places: Iterable[Where]) -> None:
        """Start the jobs of a class that have a plan, by credit."""
        groups, fits = self._queue.groups[rank], self._cells.fits
        heads = []
        for where in places:
            for gpus in sorted(groups[where]):
                if not fits(self.free, where, gpus, rank):
                    break  # larger jobs do not fit either: the negative cache of section 4.3
                heads.append((groups[where][gpus][0], gpus, where))
        heapq.heapify(heads)
        while heads:
            (_, handle), gpus, where = heads[0]
            behind = self._behind(rank, handle) if self._joint > 1 else ()
            plan = self._cells.plan(self.free, where, gpus, rank, behind)
            if plan is None:
                heapq.heappop(heads)
                continue
            self._start(handle, rank, gpus, plan)
            group = groups.get(where, {}).get(gpus)
            if group:
                heapq.heapreplace(heads, (group[0], gpus, where))
            else:
                heapq.heappop(heads)

    def _behind(self, rank: int, handle: int) -> list[tuple[Where, int]]:
        """The next jobs of the class, which are placed together with this one."""
        waiting = (
            (order, where, gpus)
            for where, sizes in self._queue.groups[rank].items()
            for gpus, group in sizes.items()
            for order in group[: self._joint]
            if order[1] != handle
        )
        return [(where, gpus) for _, where, gpus in heapq.nsmallest(self._joint - 1, waiting)]

    def _start(self, handle: int, rank: int, gpus: int, plan: GangPlan) -> None:
        """Preempt the victims of the plan and give the job its GPUs."""
        now, books = self._view.now, self._books
        if not self._owned:
            self.free, self._owned = self.free.copy(), True
        for victim in plan.victims:
            self._preempt(victim, rank)
        placement = placed(self.free, plan, gpus)
        self.free.claim(placement)
        first, _ = books.start(handle, rank, placement, now).parts[0]
        self._ledger.start(handle, now, books.kinds[first] or "")
        self._queue.remove(handle)
        self.decisions.append(Start(handle, placement))

    def _preempt(self, victim: int, rank: int) -> None:
        """Take the GPUs of a running job for a job of class `rank`."""
        held = self._view.running[victim].placement
        assert held is not None  # running jobs have GPUs
        self.free.release(held)
        job = self._books.stop(victim)
        self.preempted[victim] = job, self._ledger.stop(victim, self._view.now)
        self._stale.update(self._books.region_of[cluster] for cluster, _ in job.parts)
        self.decisions.append(Preempt(victim, _REASONS[rank]))
