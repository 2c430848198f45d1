"""The ledger of `quota(HOST)`: quota that becomes free is given at once, and mates may exchange it.

The ledger of MAST gives quota to waiting jobs only when they enter and at passes. This one does so
between passes, without looking at every waiting job. So it keeps jobs within and above quota apart,
and counts the GPUs of mates within quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from artist.policies.quota.jobs_above import Alike, JobsAbove
from artist.policies.quota.ledger import LAST_CLASS, Ledger, LedgerEntry, Mates, class_of
from artist.policies.quota.options import QueueOptions
from artist.policies.shared.gpu_counts import overlap
from artist.units import Tick
from artist.workload.job import Job
from artist.workload.tenants import Tenant


class HostLedger(Ledger):
    """A ledger that gives quota between passes too."""

    def __init__(
        self, tenants: Mapping[str, Tenant], options: QueueOptions, *, in_turn: bool = False
    ) -> None:
        """With `in_turn`, a job is not charged while a mate before it in the order of credit waits
        above quota.
        """
        super().__init__(tenants, options)
        self._in_turn = in_turn
        self._freed: set[str | None] = set()
        self.within: dict[int, LedgerEntry] = {}
        """Waiting jobs within quota."""
        self.above = JobsAbove()
        """Waiting jobs above quota."""
        self.gpus_within: dict[Mates, int] = {}
        """GPUs of jobs within quota, waiting and running."""
        self.kinds: frozenset[str] = frozenset()
        """The cluster's kinds of GPUs; empty if every job accepts all of them."""

    def enter(
        self, handle: int, job: Job, now: Tick, *, gpus: int | None = None, ranked: bool = True
    ) -> LedgerEntry:
        """Add a job to the queue: ranked, or else with the last class until the next pass."""
        stuck = self._in_turn and self.above.has_mates((job.tenant, class_of(job)))
        entry = super().enter(handle, job, now, gpus=gpus, ranked=ranked and not stuck)
        accepted = frozenset(job.gpu_kinds)
        entry.accepts = () if accepted >= self.kinds else tuple(sorted(accepted))
        if entry.within:
            self._put_within(handle, entry)
        else:
            self.above.add(handle, entry)
        return entry

    def start(self, handle: int, now: Tick, kind: str = "") -> LedgerEntry:
        """A waiting job gets GPUs."""
        entry = self.waiting[handle]
        if entry.within:
            del self.within[handle]
        else:
            self.above.remove(handle, entry)
            self._freed.add(entry.tenant)  # its quota may cover it
        return super().start(handle, now, kind)

    def stop(self, handle: int, now: Tick) -> LedgerEntry:
        """A running job finishes or loses its GPUs."""
        entry = super().stop(handle, now)
        self._freed.add(entry.tenant)
        if entry.within:
            self.gpus_within[entry.mates] -= entry.gpus
        return entry

    def resize(self, handle: int, gpus: int, now: Tick) -> None:
        """Note how many GPUs a running job has now.

        Its class stays even if its tenant exceeds its quota: the host decides how many GPUs a job
        gets.
        """
        entry = self.running[handle]
        more = gpus - entry.gpus
        if not more:
            return
        if entry.within:
            self.gpus_within[entry.mates] += more
        entry.gpus = gpus
        self._count(entry, more)
        if entry.tenant is not None:
            self._windows[entry.tenant].change(now, more)
        self._freed.add(entry.tenant)  # the quota may now cover this job or others

    def cover(self, on_top: Iterable[LedgerEntry] = ()) -> list[int]:
        """Give running jobs above quota their own class if the quota covers them now."""
        fit = super().cover(on_top)
        for handle in fit:
            self._count_within(self.running[handle])
        return fit

    def rank_all(self, now: Tick) -> list[tuple[float, int, LedgerEntry]]:
        """Give all waiting jobs new credits and classes, at a pass."""
        ranked = super().rank_all(now)
        self.within.clear()
        self.gpus_within.clear()
        for entry in self.running.values():
            if entry.within:
                self._count_within(entry)
        for _, handle, entry in ranked:
            if entry.within:
                self._put_within(handle, entry)
        self.above.sort(ranked)
        return ranked

    def promote(self, now: Tick) -> None:
        """Give quota that became free since the last call to waiting jobs of its tenant."""
        if not self._freed:
            return
        self.cover(self.within.values())
        freed, passed = self._freed, set[Mates]()

        def dropped(alike: Alike) -> bool:
            tenant = alike.mates[0]
            if tenant not in freed or alike.mates in passed:
                return True
            return not self._in_turn and alike.gpus > self.room(tenant)

        charged = []
        for handle in self.above.walk((0, 1, 2), dropped):
            entry = self.waiting[handle]
            if entry.gpus > self.room(entry.tenant):  # only where mates come in turn
                passed.add(entry.mates)
            else:
                self._charge(entry, handle, now)
                charged.append(handle)
        for handle in charged:
            entry = self.waiting[handle]
            self.above.remove(handle, entry)
            self._put_within(handle, entry)
        self._freed = set()

    def show(self, handle: int, place: int) -> None:
        """Change what the host knows of a waiting job (`jobs_above`)."""
        entry = self.waiting[handle]
        if entry.place == place:
            return
        if entry.within:
            entry.place = place
        else:
            self.above.remove(handle, entry)
            entry.place = place
            self.above.add(handle, entry)

    def rank(self, handle: int) -> int:
        """The class of a job."""
        return (self.waiting.get(handle) or self.running[handle]).rank

    def are_rivals(self, handle: int, jobs: Iterable[int]) -> bool:
        """Whether a waiting job is a mate of one of these waiting jobs and accepts its GPUs."""
        entry = self.waiting[handle]
        others = (self.waiting[x] for x in jobs)
        return any(x.mates == entry.mates and overlap(x.accepts, entry.accepts) for x in others)

    def room(self, tenant: str | None) -> int:
        """GPUs of a tenant's quota that are not charged; negative if it uses more."""
        quota = 0 if tenant is None else self._quota.get(tenant, 0)
        return quota - self._charged.get(tenant, 0)

    def release(self, handle: int) -> Tick:
        """Move a waiting job from within quota to above it. Returns since when it was within."""
        entry = self.waiting[handle]
        self._count(entry, -entry.gpus)
        entry.within, entry.rank = False, LAST_CLASS
        del self.within[handle]
        self.gpus_within[entry.mates] -= entry.gpus
        self.above.add(handle, entry)
        return entry.within_since

    def carry(self, handle: int, since: Tick) -> None:
        """Move a waiting job from above quota to within it, in place of mates."""
        entry = self.waiting[handle]
        self.above.remove(handle, entry)
        self._count(entry, entry.gpus)
        entry.within, entry.within_since, entry.rank = True, since, entry.priority
        self._put_within(handle, entry)

    def gave_way(self, handle: int, since: Tick, now: Tick) -> None:
        """Note that a released job waits above quota, and that some quota may be left over."""
        entry = self.waiting[handle]
        self._freed.add(entry.tenant)
        self._note(entry, handle, now, since, started=False)

    def _charge_all(self, ranked: Iterable[tuple[float, int, LedgerEntry]], now: Tick) -> None:
        """Charge jobs in the order of credit; in turn, none behind a mate that was turned down."""
        if not self._in_turn:
            super()._charge_all(ranked, now)
            return
        passed: set[Mates] = set()
        for _, handle, entry in ranked:
            if entry.mates in passed:
                self._turn_down(entry, handle, now)
                continue
            self._charge(entry, handle, now)
            if not entry.within:
                passed.add(entry.mates)

    def _put_within(self, handle: int, entry: LedgerEntry) -> None:
        self.within[handle] = entry
        self._count_within(entry)

    def _count_within(self, entry: LedgerEntry) -> None:
        mates = entry.mates
        self.gpus_within[mates] = self.gpus_within.get(mates, 0) + entry.gpus
