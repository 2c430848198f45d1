"""Which waiting jobs the host of `quota(HOST)` sees. All others are hidden from it.

- Jobs within quota.
- Jobs above quota, while enough GPUs are free beyond those that jobs it already sees could take.
- Jobs that could be within quota in place of mates (`exchange.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from artist.contract import JobView
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.jobs_above import HIDDEN, SEEN, SPARE, Alike
from artist.policies.quota.ledger import LedgerEntry, Mates
from artist.policies.shared.gpu_counts import GpuCounts


class Admission:
    """The queue that the host sees, and the jobs that are hidden from it."""

    def __init__(self, ledger: HostLedger, *, in_turn: bool) -> None:
        self._ledger, self._in_turn = ledger, in_turn
        self.hidden: dict[int, JobView] = {}
        self.seen: dict[int, JobView] = {}
        self.declined: set[int] = set()
        """Jobs that the host let wait although enough GPUs were free."""
        self.refused: set[int] = set()
        """Jobs that were to start in place of mates in this instant, but no mate could give way."""

    def enter(self, job: JobView) -> None:
        """Add a job to the queue, hidden from the host."""
        self.hidden[job.handle] = job

    def admit(self, free: GpuCounts, reserved_for: Collection[int]) -> list[JobView]:
        """Let hidden jobs that may run enter the host's queue, and return them.

        While GPUs are reserved, these are the jobs that they are reserved for, and mates of these
        that may use them.
        """
        ledger = self._ledger
        if reserved_for:
            may_start = {x for x in reserved_for if x in self.hidden and x in ledger.within}
            may_start.update(x for x in self._candidates() if ledger.are_rivals(x, reserved_for))
        else:
            may_start = set(self._fit((), self.spare(free), free))
            for handle in may_start:
                if handle not in ledger.within:
                    ledger.show(handle, SPARE)
            may_start.update(self._candidates())
        entered = []
        for handle in sorted(may_start, key=self.key):
            job = self.hidden.pop(handle, None)
            if job is not None:
                self.seen[handle] = job
                entered.append(job)
                if ledger.waiting[handle].place == HIDDEN:
                    ledger.show(handle, SEEN)
        return entered

    def would_admit(self, free: GpuCounts, cancelled: Collection[int]) -> bool:
        """Whether a hidden job may run now, so that the host should be asked again at once.

        Jobs whose starts were cancelled at this question do not count.
        """
        if len(self.hidden) <= len(cancelled):  # jobs whose starts are cancelled are hidden
            return False
        if any(x in self.hidden and x not in cancelled for x in self._ledger.within):
            return True
        if any(x in self.hidden for x in self._fit(cancelled, self.spare(free), free)):
            return True
        return any(x not in cancelled for x in self._candidates())

    def entitled(self) -> list[int]:
        """The jobs that the host sees and that may run without taking the place of mates."""
        ledger = self._ledger
        jobs = [x for x in ledger.within if x in self.seen]
        for demands in ledger.above.groups(SPARE).values():
            for alike in demands.values():
                jobs += [handle for _, handle in alike.jobs]
        return jobs

    def spare(self, free: GpuCounts) -> GpuCounts:
        """The free GPUs; those that jobs the host sees could take are marked as promised."""
        waiting, spare = self._ledger.waiting, free.copy()
        for handle in self.entitled():
            if handle not in self.declined:
                set_aside(waiting[handle], spare, free)
        return spare

    def _fit(self, excluded: Collection[int], spare: GpuCounts, free: GpuCounts) -> Iterator[int]:
        """Hidden jobs within quota, and jobs above quota for which there are spare GPUs.

        The host may see some of the latter already (`SEEN`); they compete for spare GPUs like the
        hidden ones.
        """
        ledger = self._ledger
        within = [x for x in ledger.within if x in self.hidden and x not in excluded]
        for handle in sorted(within, key=self.key):
            set_aside(ledger.waiting[handle], spare, free)
            yield handle
        passed: set[Mates] = set()

        def dropped(alike: Alike) -> bool:
            if self._in_turn:
                return alike.mates in passed
            return alike.gpus > spare.left(alike.accepts)

        head = self._head(free) if self._in_turn else None
        for handle in ledger.above.walk((HIDDEN, SEEN), dropped):
            if handle in excluded:
                continue
            entry = ledger.waiting[handle]
            if entry.gpus > spare.left(entry.accepts) or (head is not None and head < handle):
                passed.add(entry.mates)  # only where mates come in turn
            else:
                spare.promise(entry.accepts, entry.gpus)
                yield handle

    def _head(self, free: GpuCounts) -> int | None:
        """The first job that may run but lacks free GPUs.

        A host whose first job blocks lets others wait behind it. A job above quota that it saw
        behind this one would later keep jobs within quota waiting.
        """
        ledger = self._ledger
        jobs = [x for x, entry in ledger.within.items() if entry.gpus > free.left(entry.accepts)]
        for demands in ledger.above.groups(SPARE).values():
            for alike in demands.values():
                if alike.gpus > free.left(alike.accepts):
                    jobs += [handle for _, handle in alike.jobs]
        return min(jobs, default=None)

    def _candidates(self) -> Iterator[int]:
        """Hidden jobs that would fit within quota if all their mates gave way.

        There are none if mates are charged in turn. Jobs refused in this instant are left out.
        """
        ledger = self._ledger
        if self._in_turn:
            return
        for handle in ledger.within:
            if handle in self.hidden and handle not in self.refused:
                yield handle
        for mates, demands in ledger.above.groups(HIDDEN).items():
            most = max(0, ledger.room(mates[0])) + ledger.gpus_within.get(mates, 0)
            for alike in demands.values():
                if alike.gpus <= most:
                    for _, handle in alike.jobs:
                        if handle not in self.refused:
                            yield handle

    def key(self, handle: int) -> tuple[int, float, int]:
        """The order in which jobs come forward: by class, then credit, then arrival."""
        entry = self._ledger.waiting[handle]
        return entry.rank, -entry.credit, handle

    def hide(self, handle: int) -> None:
        """Hide a job whose start is cancelled: it waits to be admitted again."""
        self.hidden[handle] = self.seen.pop(handle)
        self.declined.discard(handle)
        self._ledger.show(handle, HIDDEN)

    def start(self, handle: int) -> None:
        """Note that a job starts."""
        del self.seen[handle]
        self.declined.discard(handle)
        self.refused.discard(handle)


def set_aside(entry: LedgerEntry, spare: GpuCounts, free: GpuCounts) -> None:
    """Promise a waiting job that could start the GPUs that it asked for, or those that are left."""
    if entry.gpus <= free.left(entry.accepts):
        spare.promise(entry.accepts, min(entry.asked, spare.left(entry.accepts)))
