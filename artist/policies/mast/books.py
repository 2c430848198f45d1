"""The GPUs that each class holds in each dynamic cluster, and which jobs are preempted first.

    room[cluster][class] = free GPUs + GPUs held by jobs of later classes

The books are updated job by job. So whether a gang fits takes one look per cluster, however many
jobs run.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree, kind_of_units
from artist.policies.quota.ledger import LAST_CLASS
from artist.units import Tick


class Scopes(NamedTuple):
    """The indices of the levels of regions and of dynamic clusters. Both may be the outermost."""

    region: int
    cluster: int

    @classmethod
    def of(cls, tree: ClusterTree) -> Scopes:
        """Find the levels by name. A tree without them is one region with one cluster."""
        names = tree.level_names
        region = names.index("region") if "region" in names else tree.root
        cluster = names.index("cluster") if "cluster" in names else region
        return cls(region, cluster)


class BookedJob(NamedTuple):
    """A running job: its class, its GPUs and its start."""

    rank: int
    gpus: int
    started: Tick
    parts: tuple[tuple[int, int], ...]
    """(Cluster, GPUs); several for a gang that no cluster could hold."""


class Books:
    """Held GPUs by cluster and class."""

    def __init__(self, tree: ClusterTree) -> None:
        self.tree = tree
        self.scopes = Scopes.of(tree)
        clusters = range(len(tree.levels[self.scopes.cluster]))
        self.region_of = [
            tree.ancestor(self.scopes.cluster, c, self.scopes.region) for c in clusters
        ]
        sizes = tree.levels[self.scopes.cluster].gpus
        self.kinds = kind_of_units(tree, self.scopes.cluster)
        """By cluster: its kind of GPUs, or None if it has several."""
        self._regions_with: dict[tuple[tuple[str, ...], int], tuple[int, ...]] = {}
        self.room = [[sizes[c]] * (LAST_CLASS + 1) for c in clusters]
        """By cluster and class: GPUs that a job could get, free or held by later classes."""
        self._free = array("i", sizes)
        regions = range(len(tree.levels[self.scopes.region]))
        self._most: list[dict[int, int]] = [{} for _ in regions]
        self._jobs = [[dict[int, int]() for _ in range(LAST_CLASS + 1)] for _ in clusters]
        self.running: dict[int, BookedJob] = {}
        self.spared: frozenset[int] = frozenset()
        """Running jobs that are not preempted, since their GPUs are about to leave service."""

    def clusters(self, region: int) -> range:
        """The clusters of a region."""
        return self.tree.units_inside(self.scopes.region, region, self.scopes.cluster)

    def accepted(self, cluster: int, kinds: tuple[str, ...]) -> bool:
        """Whether all GPUs of a cluster are of one of these kinds; True if no kinds are named."""
        return not kinds or self.kinds[cluster] in kinds

    def regions_with(self, kinds: tuple[str, ...], gpus: int) -> tuple[int, ...]:
        """Regions that could hold a gang if nothing else ran, on GPUs of one of these kinds.

        A gang lies in one cluster. If it names no kinds and no cluster could hold it, it spans the
        clusters of a region.
        """
        key = kinds, gpus
        if key not in self._regions_with:
            tree, (region, cluster) = self.tree, self.scopes
            if not kinds and gpus > tree.largest(cluster):
                sizes = tree.levels[region].gpus
                fit = [r for r, size in enumerate(sizes) if size >= gpus]
            else:
                sizes = tree.levels[cluster].gpus
                large = (c for c, size in enumerate(sizes) if size >= gpus)
                fit = sorted({self.region_of[c] for c in large if self.accepted(c, kinds)})
            self._regions_with[key] = tuple(fit)
        return self._regions_with[key]

    def clusters_of(self, level: int, unit: int) -> range:
        """The clusters of a unit, which is a cluster or lies outside clusters."""
        return self.tree.units_inside(level, unit, self.scopes.cluster)

    def room_in(self, level: int, unit: int, rank: int) -> int:
        """GPUs of a unit that a job of this class could get."""
        return sum([self.room[c][rank] for c in self.clusters_of(level, unit)])

    def most_room(self, region: int, rank: int) -> int:
        """The most GPUs of one cluster of a region that a job of this class could get."""
        most = self._most[region]
        if rank not in most:
            most[rank] = max([self.room[c][rank] for c in self.clusters(region)])
        return most[rank]

    def moved(self, free: FreeGpus) -> bool:
        """Whether GPUs entered or left service; if so, the books are corrected."""
        # Starts and stops keep `_free` right, so any other difference from the engine's counts is
        # due to service. Bytes are compared, much faster than numbers: this runs at every question.
        counts = free.counts(self.scopes.cluster)
        if counts.tobytes() == self._free.tobytes():
            return False
        self._free = array("i", counts.tobytes())
        for most in self._most:
            most.clear()
        for cluster, room in enumerate(self.room):
            gpus = int(counts[cluster])
            for rank in range(LAST_CLASS, -1, -1):
                room[rank] = gpus
                gpus += sum(self._jobs[cluster][rank].values())
        return True

    def start(self, handle: int, rank: int, placement: Placement, now: Tick) -> BookedJob:
        """Note that a job got GPUs."""
        parts = tuple(unit_counts(self.tree, placement, self.scopes.cluster).items())
        job = self.running[handle] = BookedJob(rank, placement.gpus, now, parts)
        for cluster, gpus in parts:
            self._jobs[cluster][rank][handle] = gpus
            self._change(cluster, rank, -gpus)
        return job

    def rerank(self, handle: int, rank: int) -> None:
        """Give a running job another class."""
        self.resume(handle, self.stop(handle)._replace(rank=rank))

    def resume(self, handle: int, job: BookedJob) -> None:
        """Note that a stopped job runs on; jobs of a class stay in the order of their starts."""
        self.running[handle] = job
        for cluster, gpus in job.parts:
            jobs = self._jobs[cluster][job.rank] | {handle: gpus}
            order = sorted(jobs, key=lambda x: self.running[x].started)
            self._jobs[cluster][job.rank] = {x: jobs[x] for x in order}
            self._change(cluster, job.rank, -gpus)

    def stop(self, handle: int) -> BookedJob:
        """Note that a job no longer has GPUs."""
        job = self.running.pop(handle)
        for cluster, gpus in job.parts:
            del self._jobs[cluster][job.rank][handle]
            self._change(cluster, job.rank, gpus)
        return job

    def of_later_classes(self, clusters: Sequence[int], rank: int) -> Iterator[tuple[int, int]]:
        """(handle, GPUs in these clusters) of jobs of later classes, in the order of preemption.

        The last class comes first; in a class, the job that has run longest (section 4.3).
        """
        if self.spared:
            return (x for x in self._of_later_classes(clusters, rank) if x[0] not in self.spared)
        return self._of_later_classes(clusters, rank)

    def _of_later_classes(self, clusters: Sequence[int], rank: int) -> Iterator[tuple[int, int]]:
        """`of_later_classes`, without looking at `spared`."""
        for lower in range(LAST_CLASS, rank, -1):
            if len(clusters) == 1:
                # Jobs are added when they start, so this is the order of their starts.
                yield from self._jobs[clusters[0]][lower].items()
                continue
            gpus: dict[int, int] = {}
            for cluster in clusters:
                for handle, part in self._jobs[cluster][lower].items():
                    gpus[handle] = gpus.get(handle, 0) + part
            yield from sorted(gpus.items(), key=lambda x: (self.running[x[0]].started, x[0]))

    def _change(self, cluster: int, rank: int, gpus: int) -> None:
        """Note that a job of this class released GPUs of a cluster (took them, if negative).

        Nothing changes for earlier classes, which count GPUs of later classes as free.
        """
        room = self.room[cluster]
        for later in range(rank, LAST_CLASS + 1):
            room[later] += gpus
        self._free[cluster] += gpus
        self._most[self.region_of[cluster]].clear()
