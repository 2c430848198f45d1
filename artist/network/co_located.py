"""What jobs at given places lose to each other: iterations, and how busy the links are.

Of each job only what crosses **contended** links is slowed. A link is contended if several jobs
send over it, or if one job alone can send more than it carries. Traffic of a job on the levels
inside its innermost contended link is not touched by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from artist.cluster.fabric import Fabric
from artist.cluster.links import Link
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.cluster.tree import ClusterTree
from artist.network.demand.curves import Curves
from artist.network.demand.ways import bytes_on_links, ways
from artist.network.models.canonical import Model
from artist.network.sharing import CurvedJob, Shared, shared
from artist.units import GIB


@dataclass(frozen=True, slots=True)
class JobAtPlace:
    """A job of a model on a placement. It starts its iteration `offset_s` later than others."""

    model: str
    placement: Placement
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkBusyness:
    """A link, and the share of its capacity that each job that sends over it uses, on average.

    `alone` counts each job as if it were alone. The sum of `co_located` is the link's utilisation.
    """

    link: Link
    alone: Mapping[int, float]
    co_located: Mapping[int, float]

    @property
    def utilisation(self) -> float:
        """The share of the link's capacity that all jobs use together."""
        return sum(self.co_located.values())


@dataclass(frozen=True, slots=True)
class CoLocation:
    """Iterations of co-located jobs, in their order, and the links that they share."""

    jobs: tuple[Shared, ...]
    sources: tuple[str, ...]
    links: tuple[LinkBusyness, ...]


def co_locate(
    tree: ClusterTree,
    fabric: Fabric,
    jobs: Sequence[JobAtPlace],
    curves: Curves,
    model: Model,
    eta: float = 1.0,
) -> CoLocation:
    """What jobs lose to each other under a model of contention.

    Links of machines and inside them are fair-queued, as NICs are; `eta` is the efficiency of the
    others while jobs share them.

    Raises:
        BackendError: the backend cannot answer.
        ConfigError: as `Traffic.spans`.
    """
    outermost = len(fabric.levels) - 1
    first = [_curved(tree, fabric, job, curves, _innermost_uplink(fabric)) for job in jobs]
    contended = _contended(first)
    curved: list[CurvedJob] = []
    for job, at_first in zip(jobs, first, strict=True):
        mine = {link for way in at_first.ways for link in way.links} & contended
        level = min((fabric.level_names.index(link.level) for link in mine), default=outermost)
        now = _curved(tree, fabric, job, curves, level)
        met = tuple(way for way in now.ways if contended.intersection(way.links))
        curved.append(replace(now, ways=met))
    fair_queued = frozenset(fabric.level_names[: tree.machine + 1])
    answers = shared(curved, model, eta=eta, fair_queued=fair_queued)
    return CoLocation(
        answers,
        tuple(job.curve.source for job in curved),
        _uses(fabric, [bytes_on_links(job.ways) for job in first], answers),
    )


def _innermost_uplink(fabric: Fabric) -> int:
    stated = [index for index, level in enumerate(fabric.levels) if level.uplink is not None]
    return stated[0] if stated else len(fabric.levels) - 1


def _curved(
    tree: ClusterTree, fabric: Fabric, job: JobAtPlace, curves: Curves, uplink: int
) -> CurvedJob:
    """The job over the share of what leaves units of the level `uplink`."""
    outside = frozenset(fabric.level_names[uplink + 1 :])
    curve = curves.curve(job.model, shape(tree, job.placement), outside)
    way = ways(tree, fabric, job.placement, curve.traffic)
    return CurvedJob(way, curve, curve.compute_s, job.offset_s)


def _contended(jobs: Sequence[CurvedJob]) -> set[Link]:
    """Links that several jobs send over, or that one alone can fill."""
    seen: set[Link] = set()
    contended: set[Link] = set()
    for job in jobs:
        volumes = bytes_on_links(job.ways)
        contended |= seen & set(volumes)
        seen |= set(volumes)
        busy_s = job.busy_s(1.0)
        contended |= {
            link
            for link, volume in volumes.items()
            if volume > link.capacity_gib_per_s * GIB * busy_s
        }
    return contended


def _uses(
    fabric: Fabric, volumes: Sequence[Mapping[Link, float]], answers: Sequence[Shared]
) -> tuple[LinkBusyness, ...]:
    """The use of each link of several jobs, in the order of levels and units."""
    on: dict[Link, dict[int, float]] = {}
    for job, of_job in enumerate(volumes):
        for link, volume in of_job.items():
            on.setdefault(link, {})[job] = volume / (link.capacity_gib_per_s * GIB)
    return tuple(
        LinkBusyness(
            link,
            {job: busy_s / answers[job].alone_s for job, busy_s in by_job.items()},
            {job: busy_s / answers[job].iteration_s for job, busy_s in by_job.items()},
        )
        for link, by_job in sorted(on.items(), key=lambda item: _order(fabric, item[0]))
        if len(by_job) > 1
    )


def _order(fabric: Fabric, link: Link) -> tuple[int, int, bool]:
    return fabric.level_names.index(link.level), link.unit, link.direction == "down"
