"""Placers: which of the free GPUs a job gets.

All placers visit units in the cluster's visiting order, and break ties by it. No placer looks at
the speed of the network: a latency backend says how fast a job runs on a placement. Only
`least-contended` looks at links, and only at how busy they are. Only `any` splits a job among
regions although it fits in one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from artist.cluster.free_gpus import FreeGpus, Unit
from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView
from artist.policies.shared.packing import best_level, fill_machines, pack_in_level, widest_level
from artist.policies.shared.room import Room
from artist.policies.shared.sharing import Busy, Sharing, nothing_busy, pack_least_contended
from artist.policies.shared.usable import tree_for

PlacerName: TypeAlias = Literal["any", "pack", "consolidate-or-wait", "least-contended"]


class Placer(ABC):
    """A rule from free GPUs to a placement."""

    consolidates: ClassVar = True
    """Whether a job may wait although enough GPUs are free, because they are too far apart."""

    def widest(self, tree: ClusterTree, gpus: int) -> int:
        """The outermost level that a job on `gpus` GPUs may span."""
        return widest_level(tree, gpus)

    def possible(self, free: FreeGpus, gpus: int) -> bool:
        """A cheap test of a demand. If it is False, `place` would return None."""
        if free.hosts is not None:  # a machine that cannot feed a job's GPUs makes it span more
            return free.room >= gpus
        return free.fits_one(self.widest(free.tree, gpus), gpus)

    def may_gain(self, room: Room, gpus: int) -> bool:
        """Whether a job that cannot start on the free GPUs might start on those of a room.

        This is a cheap test. If it is False, `place` would return None for the free GPUs together
        with those of the room's running jobs.
        """
        if room.hosts:
            return room.total >= gpus
        return room.fits_one(self.widest(room.tree, gpus), gpus)

    @abstractmethod
    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """The GPUs that a job on `gpus` GPUs gets; None if it waits.

        `busy` says how busy uplinks are (`Sharing.busy`). Most placers do not use it.
        """

    def joint(self, view: ClusterView, counts: Mapping[int, int]) -> Mapping[int, Placement]:
        """Placements of several jobs by handle. A job that cannot be placed is missing.

        `counts` holds the number of GPUs of each job, by handle; 0 takes a running job's GPUs. The
        pool holds the free GPUs and those of the running jobs in `counts`.

        A running job whose count does not change keeps its GPUs if no placement of that many GPUs
        can have a better level. Then the other jobs are placed, the largest first and equal ones by
        handle. Of these, a running job whose count does not change and whose GPUs are still in the
        pool moves only to a better level. If jobs require kinds of GPUs, jobs that accept the
        fewest GPUs of the cluster come before all others.
        """
        tree, pool = view.cluster, view.free.copy()
        sharing = Sharing(view)
        placed: dict[int, Placement] = {}
        unchanged: dict[int, Placement] = {}
        for handle, gpus in sorted(counts.items()):
            if handle not in view.running:
                continue
            current = view.running[handle].placement
            assert current is not None  # running jobs have GPUs
            if current.gpus == gpus:
                empty = tree_for(view, view.running[handle].job)
                if tier(tree, current) <= best_level(empty, gpus):
                    placed[handle] = current
                    continue
                unchanged[handle] = current
            pool.release(current)

        def usable(handle: int) -> FreeGpus:
            if pool.hosts is None:
                return pool
            return pool.fed((view.running.get(handle) or view.waiting[handle]).job)

        for handle in sorted(x for x in counts if x in view.running and x not in placed):
            sharing.move(handle, None)
        # Most of a long queue gets no GPUs.
        rest = [x for x, gpus in counts.items() if gpus and x not in placed]
        accepted = {} if pool.hosts is None else {x: usable(x).tree.gpus for x in rest}
        for handle in sorted(rest, key=lambda x: (accepted.get(x, 0), -counts[x], x)):
            placement = self.place(usable(handle), counts[handle], sharing.busy)
            present = unchanged.get(handle)
            if present is not None and pool.has(present):
                better = placement is not None and tier(tree, placement) < tier(tree, present)
                placement = placement if better else present
            if placement is not None:
                pool.claim(placement)
                placed[handle] = placement
                sharing.move(handle, placement)
        return placed


class FirstFreePlacer(Placer):
    """The first free GPUs in visiting order, in the first region with room."""

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Machine by machine in visiting order, packed inside the last one (`fill_machines`)."""
        inside: Unit | None = None
        level = self.widest(free.tree, gpus)
        if not free.fits_one(level, gpus):
            return None
        if level < free.tree.root:
            inside = Unit(level, next(free.at_least(level, gpus)))
        return fill_machines(free, free.at_least(free.tree.machine, 1, inside), gpus)


class AnyPlacer(FirstFreePlacer):
    """The first free GPUs in visiting order, in any region: the naive rule."""

    consolidates = False

    def widest(self, tree: ClusterTree, gpus: int) -> int:
        """The whole cluster."""
        return tree.root


class PackPlacer(Placer):
    """As close together as the free GPUs allow, at worst scattered over a region."""

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Inside one unit of the innermost level (machine or outer) with a unit that has room."""
        if free.total < gpus:
            return None
        for level in range(free.tree.machine, self.widest(free.tree, gpus) + 1):
            placement = pack_in_level(free, level, gpus)
            if placement is not None:
                return placement
        return None


class LeastContendedPlacer(PackPlacer):
    """At the level of `pack`, behind the least busy uplinks; as `pack` if no uplink is busy."""

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """`pack_least_contended` in the innermost level that has a unit with room."""
        for level in range(free.tree.machine, self.widest(free.tree, gpus) + 1):
            placement = pack_least_contended(free, level, gpus, busy)
            if placement is not None:
                return placement
        return None


class ConsolidatePlacer(Placer):
    """Inside one unit of the innermost level that could hold the job when empty; else wait."""

    def widest(self, tree: ClusterTree, gpus: int) -> int:
        """The innermost level that could hold the job."""
        return best_level(tree, gpus)

    def place(self, free: FreeGpus, gpus: int, busy: Busy = nothing_busy) -> Placement | None:
        """Inside one unit of that level, or not at all."""
        return pack_in_level(free, best_level(free.tree, gpus), gpus)


def placer(name: PlacerName) -> Placer:
    """A placer by name."""
    placers: dict[PlacerName, Placer] = {
        "any": AnyPlacer(),
        "pack": PackPlacer(),
        "consolidate-or-wait": ConsolidatePlacer(),
        "least-contended": LeastContendedPlacer(),
    }
    return placers[name]
