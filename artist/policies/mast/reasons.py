"""Why jobs wait that a pass refused, though GPUs are there that they could have otherwise.

- **quota**: at its own priority, as if within its tenant's quota, the job would get a plan.
- **data**: it would get one in a region that does not hold all of its tables.
- **place** (cells 1 and 5): it would get one outside the place to which it was bound; if it reads
  tables, in a region that holds them all. Else its data is told.
- **consolidation**: enough GPUs are free, but no cluster (region, for a larger gang) has so many.
  One may under cell 3, where a plan looks at one cluster.

They are told at passes only, after their starts, and hold until the next pass. A job is told
nothing where too few GPUs are free in all.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.contract import Decision, JobView, Wait, WaitCause
from artist.policies.mast.books import Books
from artist.policies.mast.cells import Cells
from artist.policies.mast.queue import WaitingQueue, Where
from artist.policies.quota.ledger import LAST_CLASS, Ledger

_QUOTA = "it was above its tenant's quota, so it could take no GPUs from jobs of later classes"
_NEEDED = "and needed {0} free ones"
_DATA = "GPUs that it could have had were in regions that did not hold all of its tables"
_PLACE = "GPUs that it could have had were outside the place to which it was bound at its arrival"
_APART = "enough GPUs were free, but in several {0}s, and its gang lies in one {0}"
_LEAST_LOADED = "enough GPUs were free, but not in the cluster with the least load, which was tried"


Regions: TypeAlias = Callable[[int], tuple[int, ...]]
"""Handle of a waiting job -> the regions that may plan for it: those with all of its tables."""

Reason: TypeAlias = tuple[int, tuple[str, WaitCause]]
"""Handle of a waiting job; why it waits in words, and the cause."""


class Reasons:
    """What was said of waiting jobs."""

    def __init__(self) -> None:
        self._told: dict[int, str] = {}

    def waits(self, reasons: Iterable[Reason], waiting: Container[int]) -> list[Decision]:
        """What is said now of jobs of which something else, or nothing, was said before."""
        told, before = {}, self._told
        waits: list[Decision] = []
        for handle, (words, cause) in reasons:
            told[handle] = words
            if before.get(handle) != words:
                waits.append(Wait(handle, words, cause))
        lapsed = [x for x in before if x not in told and x in waiting]
        self._told = told
        return [*waits, *(Wait(handle, "") for handle in lapsed)]

    def forget(self, handle: int) -> None:
        """A job entered the queue: nothing was said of this wait."""
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
                # By priority: whether a job above quota would get a plan if it were within it.
                within = [False] * LAST_CLASS
                if rank == LAST_CLASS:
                    within = [cells.fits(free, where, gpus, one) for one in range(LAST_CLASS)]
                apart = None if roomy else _apart(free, books, cells, where, gpus)
                quota = f"{_QUOTA} {_NEEDED.format(gpus)}{_inside(books, cells, where, gpus)}"
                if not roomy and not any(within) and apart is None:
                    continue
                for _, handle in group:
                    if within[ledger.waiting[handle].priority]:
                        yield handle, (quota, "quota")
                    elif roomy and waiting[handle].job.tables:
                        unbound = Where(regions(handle), kinds=where.kinds)
                        bound = cells.binds and cells.fits(free, unbound, gpus, rank)
                        yield handle, (_PLACE, "policy") if bound else (_DATA, "data")
                    elif roomy and cells.binds:
                        yield handle, (_PLACE, "policy")
                    elif apart is not None:
                        yield handle, (apart, "consolidation")


def _inside(books: Books, cells: Cells, where: Where, gpus: int) -> str:
    """Where the GPUs of a job must lie, so that others which are free do not help it."""
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
    """What keeps a job from GPUs that are free in all; None if too few of its kinds are."""
    tree, cluster = free.tree, books.scopes.cluster
    accepted = [
        free.of(cluster, c)
        for c in range(len(tree.levels[cluster]))
        if books.accepted(c, where.kinds)
    ]
    if sum(accepted) < gpus:
        return None
    if cells.looks_at_load and max(accepted) >= gpus:
        return _LEAST_LOADED
    return _APART.format("region" if gpus > tree.largest(cluster) else "cluster")
