"""Co-located jobs: a model of contention decides their shares of links, and curves read them.

A model sees jobs that are Down and Up. What overlaps with computation makes an iteration longer by
less than the Up phase, and a curve says by how much. With B the Up time among co-located jobs,

    share phi      busy(phi) = B: at that share the query sends for this time
    iteration      iteration(phi), the same query's
    Down time      iteration(phi) - B, for the model's next round

Rounds go on until Down times stay. Without overlap the first round is the answer.

A job may fill an oversubscribed link by itself. Then it is slower than its query says even in
isolation, and what others cost it counts from there (decision 20).

Of each job only what crosses **contended** links is slowed. A link is contended if several jobs
send over it, or if one job can send more than it carries. Traffic of a job on the levels inside
its innermost contended link is not touched by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from artist.cluster.fabric import Fabric
from artist.cluster.links import Link
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.cluster.tree import ClusterTree
from artist.network.demand.curves import Curve, Curves
from artist.network.demand.routes import Routes, routed
from artist.network.demand.up_phases import UpPhases
from artist.network.demand.ways import JobOnLinks, Way, bytes_on_links, contention, efficiency, ways
from artist.network.models.canonical import Model
from artist.network.models.patterns import InTurn, Slowed

# A Down time that changes by a thousandth of an iteration changes no answer by a percent.
SETTLED = 1e-3
MOST_ROUNDS = 10

# Capacities are stated to three or four digits. A job that is slowed by less is not slowed.
SLOWED = 1e-3


@dataclass(frozen=True, slots=True)
class CurvedJob:
    """A job for a model of contention. `compute_s` is the compute time of its iteration.

    Only ratios come from a backend (Dally, section IV-C). So if the job computes k times as long as
    the query's iteration, it also sends k times as long and as much: rates are the query's.

    Beside other jobs on its GPUs everything takes `stretch` times as long, `compute_s` included. It
    sends the same bytes in that time, so at 1 / `stretch` of the rates. `stream` as in `Member`.
    """

    ways: tuple[Way, ...]
    curve: Curve
    compute_s: float
    offset_s: float = 0.0
    turn: InTurn | None = None
    stretch: float = 1.0
    stream: int | None = None
    phases: UpPhases | None = None
    """When it sends in an iteration; None: once, at its end."""

    def iteration_s(self, share: float) -> float:
        """An iteration at a share of the bandwidth: compute time x (1 + comm ratio)."""
        return self.compute_s * (1.0 + self.curve.comm_ratio(share))

    def busy_s(self, share: float) -> float:
        """The time of an iteration in which the job sends over contended levels, at a share."""
        return self.compute_s * self.curve.busy_ratio(share)

    def down_s(self, share: float) -> float:
        """The rest of the iteration, at a share."""
        return max(self.iteration_s(share) - self.busy_s(share), 0.0)


@dataclass(frozen=True, slots=True)
class Shared:
    """A job's share of the bandwidth, and its iterations at this share and in isolation."""

    share: float
    iteration_s: float
    alone_s: float
    own_share: float = 1.0
    """Its share in isolation: below 1 if its own links cannot carry what it sends."""
    corrections_per_min: float = 0.0
    """How often it waits so that it keeps its turn."""
    held_s: float = 0.0
    """The part of the iteration in which it waits for its turn."""


def shared(
    jobs: Sequence[CurvedJob],
    model: Model,
    *,
    eta: float = 1.0,
    fair_queued: frozenset[str] = frozenset(),
    settled: float = SETTLED,
) -> tuple[Shared, ...]:
    """Iterations of jobs on the links that their ways cross; arguments as in `contention`.

    Rounds end where no iteration changes by more than the share `settled` of it.
    """
    shares, fills, slowed = _rounds(jobs, model, eta, fair_queued, settled)
    answers = []
    for job, share, full, answer in zip(jobs, shares, fills, slowed, strict=True):
        if not full:
            own = 1.0
        elif len(jobs) == 1:
            own = share
        else:
            own = _rounds([job], model, eta, fair_queued, settled)[0][0]
        share = min(share, own)
        times_s = job.iteration_s(share) + answer.held_s, job.iteration_s(own)
        answers.append(Shared(share, *times_s, own, answer.corrections_per_min, answer.held_s))
    return tuple(answers)


def _rounds(
    jobs: Sequence[CurvedJob],
    model: Model,
    eta: float,
    fair_queued: frozenset[str],
    settled: float,
) -> tuple[list[float], list[bool], tuple[Slowed, ...]]:
    """The share of each job, whether it fills a link of its own by itself, and the last answers."""
    shares = [1.0] * len(jobs)
    slowed: tuple[Slowed, ...] = ()
    fills = [False] * len(jobs)
    seen = [seen_by_models(job, 1.0) for job in jobs]
    for _ in range(MOST_ROUNDS):
        before = seen
        slowed = model(contention(before, eta=eta, fair_queued=fair_queued))
        for index, (job, answer) in enumerate(zip(jobs, slowed, strict=True)):
            at_line_rate_s = answer.alone_s
            if answer.alone_s > (1 + SLOWED) * before[index].iteration_s:
                at_line_rate_s, fills[index] = before[index].iteration_s, True
            # A job that waits for its turn sends nothing: that is no lack of bandwidth.
            moving_s = answer.iteration_s - answer.held_s
            if moving_s != at_line_rate_s:
                busy_s = before[index].busy_s + moving_s - at_line_rate_s
                shares[index] = job.curve.share_at(busy_s / job.compute_s)
            else:
                shares[index] = 1.0
        seen = [seen_by_models(job, share) for job, share in zip(jobs, shares, strict=True)]
        if all(
            abs(now.iteration_s - then.iteration_s) <= settled * then.iteration_s
            for now, then in zip(seen, before, strict=True)
        ):
            break
    return shares, fills, slowed


def seen_by_models(job: CurvedJob, share: float) -> JobOnLinks:
    """A job with a share of the bandwidth, as a model sees it: Down and Up, in isolation."""
    busy_s = job.busy_s(1.0)
    times = job.compute_s / job.curve.compute_s / job.stretch
    scaled = tuple(replace(way, volume_bytes=times * way.volume_bytes) for way in job.ways)
    iteration_s = job.down_s(share) + busy_s
    return JobOnLinks(
        scaled if busy_s else (),
        iteration_s,
        busy_s,
        job.offset_s,
        job.turn,
        job.stream,
        job.phases,
    )


@dataclass(frozen=True, slots=True)
class JobAtPlace:
    """A job of a model on a placement. It starts its iteration `offset_s` later than others."""

    model: str
    placement: Placement
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkBusyness:
    """A link, and the share of its capacity that each job that sends over it uses, on average.

    `alone` counts each job in isolation. The sum of `co_located` is the link's utilisation.
    """

    link: Link
    alone: Mapping[int, float]
    co_located: Mapping[int, float]
    eta: float
    """The share of its capacity that is used while jobs share it."""

    @property
    def utilisation(self) -> float:
        """The share of the link's capacity that all jobs use together."""
        return sum(self.co_located.values())


@dataclass(frozen=True, slots=True)
class CoLocation:
    """Iterations of co-located jobs, in their order, and the links that they share."""

    jobs: tuple[Shared, ...]
    source: str
    """Where the estimates of the first job come from."""
    links: tuple[LinkBusyness, ...]


def co_locate(
    tree: ClusterTree,
    fabric: Fabric,
    jobs: Sequence[JobAtPlace],
    curves: Curves,
    model: Model,
    eta: float = 1.0,
    seed: int = 0,
) -> CoLocation:
    """What jobs lose to each other under a model of contention.

    Links of machines and inside them are fair-queued, as NICs are; `eta` is the efficiency of the
    others while jobs share them, and `seed` that of the hash that puts connections on links.

    Raises:
        BackendError: the backend cannot answer.
        ConfigError: as `Traffic.spans`.
    """
    outermost = len(fabric.levels) - 1
    innermost = min(fabric.uplink_levels, default=outermost)
    first = [_curved(tree, fabric, job, curves, innermost) for job in jobs]
    routes = Routes(fabric, seed)
    if routes.routed:
        taken = [routes.enter(index, x.ways, x.busy_s(1.0)) for index, x in enumerate(first)]
        first = [
            replace(x, ways=routed(x.ways, links)) for x, links in zip(first, taken, strict=True)
        ]
    busy_s = [_busy_s(tree, fabric, job, curves) for job in jobs]
    contended = _contended(first, busy_s)
    curved: list[CurvedJob] = []
    for job, at_first in zip(jobs, first, strict=True):
        mine = {link for way in at_first.ways for link in way.links} & contended
        level = min((fabric.level_names.index(link.level) for link in mine), default=outermost)
        now = _curved(tree, fabric, job, curves, level)
        # The ways are the same, from whichever level a job is looked at.
        met = tuple(way for way in at_first.ways if contended.intersection(way.links))
        curved.append(replace(now, ways=met))
    fair_queued = frozenset(fabric.level_names[: tree.machine + 1])
    answers = shared(curved, model, eta=eta, fair_queued=fair_queued)
    used = {
        link: efficiency(link.level, link.eta, eta, fair_queued)
        for job in first
        for link in bytes_on_links(job.ways)
    }
    return CoLocation(
        answers,
        curved[0].curve.source,
        _uses(fabric, [bytes_on_links(job.ways) for job in first], answers, used),
    )


def _curved(
    tree: ClusterTree, fabric: Fabric, job: JobAtPlace, curves: Curves, uplink: int
) -> CurvedJob:
    """The job over the share of what leaves units of the level `uplink`."""
    outside = frozenset(fabric.level_names[uplink + 1 :])
    curve = curves.curve(job.model, shape(tree, job.placement), outside)
    way = ways(tree, fabric, job.placement, curve.traffic)
    return CurvedJob(way, curve, curve.compute_s, job.offset_s)


def _busy_s(
    tree: ClusterTree, fabric: Fabric, job: JobAtPlace, curves: Curves
) -> Mapping[str, float]:
    """For how long the job sends out of units of each level, by the level's name."""
    names, of_job = fabric.level_names, shape(tree, job.placement)
    return {
        names[level]: curves.sent(job.model, of_job, frozenset(names[level + 1 :])).busy_s
        for level in fabric.uplink_levels
    }


def _contended(jobs: Sequence[CurvedJob], busy_s: Sequence[Mapping[str, float]]) -> set[Link]:
    """Links that several jobs send over, or that one job can fill while it sends over them."""
    seen: set[Link] = set()
    contended: set[Link] = set()
    for job, of_level in zip(jobs, busy_s, strict=True):
        volumes = bytes_on_links(job.ways)
        contended |= seen & set(volumes)
        seen |= set(volumes)
        contended |= {
            link
            for link, volume in volumes.items()
            if volume > link.bytes_per_s * of_level[link.level]
        }
    return contended


def _uses(
    fabric: Fabric,
    volumes: Sequence[Mapping[Link, float]],
    answers: Sequence[Shared],
    etas: Mapping[Link, float],
) -> tuple[LinkBusyness, ...]:
    """The use of each link of several jobs, in the order of levels and units."""
    on: dict[Link, dict[int, float]] = {}
    for job, of_job in enumerate(volumes):
        for link, volume in of_job.items():
            on.setdefault(link, {})[job] = volume / link.bytes_per_s
    return tuple(
        LinkBusyness(
            link,
            {job: busy_s / answers[job].alone_s for job, busy_s in by_job.items()},
            {job: busy_s / answers[job].iteration_s for job, busy_s in by_job.items()},
            etas[link],
        )
        for link, by_job in sorted(on.items(), key=lambda item: _order(fabric, item[0]))
        if len(by_job) > 1
    )


def _order(fabric: Fabric, link: Link) -> tuple[int, int, int, bool]:
    level = fabric.level_names.index(link.level)
    return level, link.unit, link.index or 0, link.direction == "down"
