"""The cells of Table 1: where a job is bound when it arrives, and how far a plan looks.

| cell | queue | allocation | here |
|---|---|---|---|
| (1) | cluster | cluster | bound to the least loaded cluster; planned in it |
| (3) | global | cluster | not bound; planned in the cluster that is least loaded then |
| (5) | region | region | bound to the least loaded region; planned in all its clusters |
| (6) | global | region | MAST: every region plans, the best plan wins the auction |
| (9) | global | global | all clusters of all regions in one plan |

The *load* of a place in cells (1) and (5) is the GPUs that its jobs want, running or waiting, over
the GPUs that it has (section 5.6: "the lowest demand over supply rate of the required GPU type").
For a job that names kinds, only GPUs of these kinds count, and jobs whose first kind is one of
them. In cell (3), load is the share of GPUs that are held. Ties go to the place that is visited
first. Queues share one ledger in all cells, so that cells differ only in scope.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.tree import gpus_of_kinds
from artist.policies.mast.books import Books
from artist.policies.mast.plans import GangPlan, best, free_plan, most_started, preempting_plan
from artist.policies.mast.queue import Where
from artist.policies.shared.ratios import ExactKey, exact_key


class Cells:
    """Bindings and scopes of one cell."""

    def __init__(self, cell: int, books: Books) -> None:
        self._cell = cell
        self._books = books
        tree, scopes = books.tree, books.scopes
        self._level = {1: scopes.cluster, 5: scopes.region}.get(cell)
        self._largest = tree.largest(scopes.cluster)
        self.everywhere = tuple(range(len(tree.levels[scopes.region])))
        units = 0 if self._level is None else len(tree.levels[self._level])
        self._wanted = [0] * units
        self._supply: dict[tuple[str, ...], list[int]] = {}
        self._wanted_of: Counter[tuple[int, str]] = Counter()
        """By place and kind: GPUs wanted by jobs that name this kind first."""
        self._bound: dict[int, tuple[int, int, str]] = {}

    @property
    def looks_at_load(self) -> bool:
        """Whether the cluster of a plan depends on load, so it may change without free GPUs."""
        return self._cell == 3

    @property
    def binds(self) -> bool:
        """Whether a job is bound to a place when it arrives."""
        return self._level is not None

    # -- early binding ---------------------------------------------------------------

    def where(
        self,
        free: FreeGpus,
        handle: int,
        gpus: int,
        regions: tuple[int, ...],
        kinds: tuple[str, ...] = (),
    ) -> Where:
        """Where a job that enters the queue may go; it stays bound until it finishes."""
        if self._level is None or gpus > free.tree.largest(self._level):
            return Where(regions, kinds=kinds)
        if handle in self._bound:
            unit = self._bound[handle][0]
        else:
            least = self._least_wanted(free, gpus, regions, kinds)
            if least is None:
                return Where(regions, kinds=kinds)
            unit = least
            kind = kinds[0] if kinds else ""
            self._bound[handle] = unit, gpus, kind
            self._want(unit, gpus, kind)
        if self._cell == 5:
            return Where((unit,), kinds=kinds)
        return Where((self._books.region_of[unit],), unit, kinds)

    def finished(self, handle: int) -> None:
        """Note that a job has finished and no longer counts as load."""
        bound = self._bound.pop(handle, None)
        if bound is not None:
            unit, gpus, kind = bound
            self._want(unit, -gpus, kind)

    def _want(self, unit: int, gpus: int, kind: str) -> None:
        self._wanted[unit] += gpus
        if kind:
            self._wanted_of[unit, kind] += gpus

    def _load(self, unit: int, kinds: tuple[str, ...]) -> ExactKey:
        """GPUs that jobs want over GPUs that a place has, of the kinds that a job accepts."""
        level, tree = self._level, self._books.tree
        assert level is not None  # asked only where jobs are bound
        if not kinds:
            return exact_key(self._wanted[unit], tree.levels[level].gpus[unit])
        if kinds not in self._supply:
            self._supply[kinds] = gpus_of_kinds(tree, level, kinds)
        wanted = sum(self._wanted_of[unit, kind] for kind in kinds)
        return exact_key(wanted, self._supply[kinds][unit])

    def _least_wanted(
        self, free: FreeGpus, gpus: int, regions: Sequence[int], kinds: tuple[str, ...]
    ) -> int | None:
        """The place with the least load that could hold a job; None if there is none."""
        level, books = self._level, self._books
        assert level is not None  # asked only where jobs are bound
        sizes = free.tree.levels[level].gpus
        if self._cell == 5:
            able = books.regions_with(kinds, gpus)
            units = [region for region in regions if region in able]
        else:
            units = [c for r in regions for c in books.clusters(r) if books.accepted(c, kinds)]
        fitting = [unit for unit in units if sizes[unit] >= gpus]
        return min(
            fitting,
            key=lambda unit: (self._load(unit, kinds), free.turn(level, unit)),
            default=None,
        )

    # -- plans -----------------------------------------------------------------------

    def fits(self, free: FreeGpus, where: Where, gpus: int, rank: int) -> bool:
        """Whether `plan` would find a plan for a job. It is exact, and cheaper."""
        books = self._books
        if not where.regions:
            return False
        if self._cell == 3 or gpus > self._largest or (where.kinds and where.cluster < 0):
            return any(books.room_in(*x, rank) >= gpus for x in self._units(free, where, gpus))
        if where.cluster >= 0:
            return books.room[where.cluster][rank] >= gpus
        return any(books.most_room(region, rank) >= gpus for region in where.regions)

    def plan(
        self,
        free: FreeGpus,
        where: Where,
        gpus: int,
        rank: int,
        behind: Sequence[tuple[Where, int]] = (),
    ) -> GangPlan | None:
        """The best plan for a job; None if there is none. `behind` are the next jobs, which are
        placed jointly with it.
        """
        books = self._books
        if behind and (joint := self._joint(free, where, gpus, behind)):
            return joint
        # A region plans as a whole, unless only some of its clusters have the kinds of the job.
        if self._cell == 6 and where.cluster < 0 and not where.kinds:
            scopes = self._scopes(free, where, gpus)
        else:
            scopes = list(self._units(free, where, gpus))
        plan = best(free_plan(free, books, scope, gpus) for scope in scopes)
        return plan or best(self._regional(free, scope, gpus, rank) for scope in scopes)

    def _joint(
        self, free: FreeGpus, where: Where, gpus: int, behind: Sequence[tuple[Where, int]]
    ) -> GangPlan | None:
        """The plan on free GPUs with which most of the next jobs can start; the best of equals."""
        level = self._books.scopes.cluster
        rooms = {c: free.of(level, c) for c in range(len(free.tree.levels[level]))}
        wants = [(n, [x.unit for x in self._clusters(free, w, n)]) for w, n in behind]
        chosen: tuple[tuple[bool, ...], GangPlan] | None = None
        units = self._clusters(free, where, gpus)
        plans = ((free_plan(free, self._books, x, gpus), x.unit) for x in units)
        for plan, cluster in sorted((plan, c) for plan, c in plans if plan is not None):
            rooms[cluster] -= gpus
            started = most_started(rooms, wants)
            rooms[cluster] += gpus
            if chosen is None or started > chosen[0]:
                chosen = started, plan
        return chosen and chosen[1]

    def _clusters(self, free: FreeGpus, where: Where, gpus: int) -> list[Unit]:
        """The single clusters in which a gang may lie."""
        level = self._books.scopes.cluster
        return [x for x in self._units(free, where, gpus) if x.level == level]

    def _regional(self, free: FreeGpus, scope: Unit, gpus: int, rank: int) -> GangPlan | None:
        """The best plan in a region, or in a single cluster, that preempts jobs."""
        books = self._books
        cluster = books.scopes.cluster
        if scope.level <= cluster or gpus > self._largest:
            units = [scope]
        else:
            units = [Unit(cluster, c) for c in books.clusters_of(*scope)]
        return best(
            preempting_plan(free, books, unit, gpus, rank)
            for unit in units
            if books.room_in(*unit, rank) >= gpus
        )

    def _units(self, free: FreeGpus, where: Where, gpus: int) -> Iterator[Unit]:
        """The units in which a gang may lie: clusters, or regions if no cluster could hold it."""
        books = self._books
        cluster = books.scopes.cluster
        if gpus > self._largest:
            yield from self._scopes(free, where, gpus)
        elif where.cluster >= 0:
            yield Unit(cluster, where.cluster)
        elif self._cell == 3:
            least = self._least_held(free, gpus, where)
            if least is not None:
                yield Unit(cluster, least)
        else:
            for region in where.regions:
                for c in books.clusters(region):
                    if books.accepted(c, where.kinds):
                        yield Unit(cluster, c)

    def _scopes(self, free: FreeGpus, where: Where, gpus: int) -> list[Unit]:
        """The regions in which plans are made; the whole tree if no region could hold the gang."""
        tree, region = free.tree, self._books.scopes.region
        if gpus > tree.largest(region):
            return [Unit(tree.root, 0)]
        return [Unit(region, r) for r in where.regions]

    def _least_held(self, free: FreeGpus, gpus: int, where: Where) -> int | None:
        """Of the clusters that could hold a job, the one with the least share of held GPUs."""
        books = self._books
        level = books.scopes.cluster
        sizes = free.tree.levels[level].gpus
        units = [
            c
            for r in where.regions
            for c in books.clusters(r)
            if sizes[c] >= gpus and books.accepted(c, where.kinds)
        ]
        return min(
            units,
            key=lambda c: (exact_key(-free.of(level, c), sizes[c]), free.turn(level, c)),
            default=None,
        )
