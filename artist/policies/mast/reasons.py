"""Why a pass refused jobs for which enough GPUs exist.

- **quota**: at its own priority, as if within its tenant's quota, the job would get a plan.
- **data**: it would get one in a region that does not hold all of its tables.
- **place** (cells 1 and 5): it would get one outside the place to which it was bound. If it reads
  tables, that region must hold them all; else the reason is data.
- **consolidation**: enough GPUs are free, but not in one cluster (region, for a larger gang); in
  cell 3, not in the one cluster at which a plan looks.
- **gpu_kind**: enough GPUs are free in all, but too few of the kinds that the job may get.

Reasons are given at passes, after the starts, and hold until the next pass. A job gets none if too
few GPUs are free in all. The reason gpu_kind is also given when a job enters, and withdrawn as soon
as fewer GPUs are free in all than it wants.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.host_resources import of_kind
from artist.contract import Decision, JobView, Wait, WaitCause
from artist.policies.mast.books import Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.queue import WaitingQueue, Where
from artist.policies.quota.ledger import (
    ABOVE,
    LAST_CLASS,
    NO_TENANT,
    NO_VICTIMS,
    Ledger,
    LedgerEntry,
)
from artist.units import counted

_NEEDED = "and needed {0} free ones"
_DATA = "GPUs that it could have had were in regions that did not hold all of its tables"
_PLACE = "GPUs that it could have had were outside the place to which it was bound at its arrival"
_APART = "enough GPUs were free, but in several {0}s, and its gang lies in one {0}"
_LEAST_LOADED = "enough GPUs were free, but not in the cluster with the least load, which was tried"


Regions: TypeAlias = Callable[[int], tuple[int, ...]]
"""Handle of a waiting job -> the regions that may plan for it: those with all of its tables."""

Reason: TypeAlias = tuple[int, tuple[str, WaitCause]]
"""Handle of a waiting job; why it waits, in words, and the cause."""


class Reasons:
    """The reasons given for waiting jobs."""

    def __init__(self) -> None:
        self._told: dict[int, str] = {}
        # By number of GPUs, the jobs that were told that kinds keep them waiting.
        self._of_kinds: dict[int, list[int]] = defaultdict(list)

    def waits(
        self, reasons: Iterable[Reason], waiting: Mapping[int, LedgerEntry]
    ) -> list[Decision]:
        """The reasons that changed at a pass; an empty one where a reason no longer holds."""
        before, self._told = self._told, {}
        self._of_kinds.clear()
        waits: list[Decision] = []
        for handle, (words, cause) in reasons:
            self._told[handle] = words
            if cause == "gpu_kind":
                self._of_kinds[waiting[handle].gpus].append(handle)
            if before.get(handle) != words:
                waits.append(Wait(handle, words, cause))
        lapsed = [x for x in before if x not in self._told and x in waiting]
        return [*waits, *(Wait(handle, "") for handle in lapsed)]

    def between_passes(
        self, free: int, entered: Iterable[Reason], waiting: Mapping[int, LedgerEntry]
    ) -> list[Decision]:
        """The reasons of jobs that entered. Earlier ones end once too few GPUs are free in all."""
        waits: list[Decision] = []
        for gpus in [x for x in self._of_kinds if x > free]:
            gone = [x for x in self._of_kinds.pop(gpus) if self._told.pop(x, "") and x in waiting]
            waits += [Wait(handle, "") for handle in gone]
        for handle, (words, cause) in entered:
            self._told[handle] = words
            self._of_kinds[waiting[handle].gpus].append(handle)
            waits.append(Wait(handle, words, cause))
        return waits

    def forget(self, handle: int) -> None:
        """Forget the reason of a job that enters the queue again: a new wait begins."""
        self._told.pop(handle, None)


def reasons_of(
    free: FreeGpus,
    books: Books,
    cells: Cells,
    ledger: Ledger,
    queue: WaitingQueue,
    waiting: Mapping[int, JobView],
    regions: Regions,
) -> Iterator[Reason]:
    """Handles of waiting jobs, and why each of them waits."""
    for rank, places in enumerate(queue.groups):
        for where, sizes in places.items():
            for gpus, group in sizes.items():
                elsewhere = Where(books.regions_with(where.kinds, gpus), kinds=where.kinds)
                roomy = elsewhere != where and cells.fits(free, elsewhere, gpus, rank)
                # By class: whether a job above quota would get a plan if it were within quota.
                within = [False] * LAST_CLASS
                if rank == LAST_CLASS:
                    within = [cells.fits(free, where, gpus, one) for one in range(LAST_CLASS)]
                apart = None if roomy else _apart(free, books, cells, where, gpus)
                needed = f"{_NEEDED.format(gpus)}{_inside(books, cells, where, gpus)}"
                kinds = None if roomy else of_kinds(free, books, where, gpus)
                if not roomy and not any(within) and apart is None and kinds is None:
                    continue
                for _, handle in group:
                    if within[ledger.waiting[handle].priority]:
                        above = ABOVE if ledger.waiting[handle].tenant else NO_TENANT
                        yield handle, (f"{above}, {NO_VICTIMS} {needed}", "quota")
                    elif roomy and waiting[handle].job.tables:
                        unbound = Where(regions(handle), kinds=where.kinds)
                        bound = cells.binds and cells.fits(free, unbound, gpus, rank)
                        yield handle, (_PLACE, "policy") if bound else (_DATA, "data")
                    elif roomy and cells.binds:
                        yield handle, (_PLACE, "policy")
                    elif apart is not None:
                        yield handle, (apart, "consolidation")
                    elif kinds is not None:
                        yield reason_of_kinds(waiting[handle], where, kinds)


def of_kinds(free: FreeGpus, books: Books, where: Where, gpus: int) -> str | None:
    """A clause if too few of the free GPUs are of the kinds that a job may get; else None."""
    if not where.kinds or free.total < gpus:
        return None
    left = sum(_accepted(free, books, where))
    if left >= gpus:
        return None
    of = of_kind(where.kinds).unit
    return f"{left} of {counted(free.total, 'free GPU')} {'was' if left == 1 else 'were'} {of}"


def reason_of_kinds(job: JobView, where: Where, words: str) -> Reason:
    """The reason in these words; it adds if quota, not the job, excludes other kinds."""
    bound = "" if job.job.gpu_kinds == where.kinds else ", to which its quota binds it"
    return job.handle, (f"{words}{bound}", "gpu_kind")


def _accepted(free: FreeGpus, books: Books, where: Where) -> list[int]:
    """The free GPUs of each cluster whose kind a job may get."""
    cluster = books.scopes.cluster
    return [
        free.of(cluster, c)
        for c in range(len(free.tree.levels[cluster]))
        if books.accepted(c, where.kinds)
    ]


def _inside(books: Books, cells: Cells, where: Where, gpus: int) -> str:
    """A clause for where the GPUs of a job must lie."""
    tree, scopes = books.tree, books.scopes
    if gpus > tree.largest(scopes.region):
        return ""
    level = "region" if gpus > tree.largest(scopes.cluster) else "cluster"
    kinds = " of its kinds" if where.kinds else ""  # their names might be too long for a reason
    if cells.looks_at_load and level == "cluster":
        return f" in the one {level}{kinds} with the least load"
    if where.cluster >= 0:
        return f" in the one {level} to which it was bound"
    anywhere = where.regions == books.regions_with(where.kinds, gpus)
    return f" in one {level}{kinds}{'' if anywhere else ' to which it may go'}"


def _apart(free: FreeGpus, books: Books, cells: Cells, where: Where, gpus: int) -> str | None:
    """Why a job cannot use the free GPUs together; None if too few of its kinds are free."""
    tree, cluster = free.tree, books.scopes.cluster
    accepted = _accepted(free, books, where)
    if sum(accepted) < gpus:
        return None
    if cells.looks_at_load and max(accepted) >= gpus:
        return _LEAST_LOADED
    return _APART.format("region" if gpus > tree.largest(cluster) else "cluster")
