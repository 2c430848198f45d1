"""Co-located jobs: a model of contention gives Up times, and curves turn them into iterations.

A model of contention knows only Down and Up phases. Where communication overlaps with computation,
a longer Up phase lengthens the iteration by less than itself; a curve says by how much. With B the
Up time of a job among its co-located jobs,

    share phi      busy(phi) = B: the share at which the job's query sends for B
    iteration      iteration(phi) of the same query
    Down time      iteration(phi) - B, for the model's next round

Rounds go on until iterations settle. Without overlap the first round is the answer.

A job may fill an oversubscribed link by itself. It is then slower than its query says even in
isolation, and slowdowns by other jobs count from that slower iteration (decision 20).

Only the traffic of a job that crosses **contended** links is slowed. A link is contended if several
jobs send over it, or if one job can send more than the link carries. Contention does not affect a
job's traffic on the levels inside its innermost contended link.
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

    Only ratios come from a backend (Dally, section IV-C). So a job that computes k times as long as
    the query's iteration also sends k times as many bytes in k times the time, at the same rates.

    If other jobs share its GPUs, everything takes `stretch` times as long, `compute_s` included.
    The job then sends the same bytes at 1 / `stretch` of the rates. `stream` as in `Member`.
    """

    ways: tuple[Way, ...]
    curve: Curve
    compute_s: float
    offset_s: float = 0.0
    turn: InTurn | None = None
    stretch: float = 1.0
    stream: int | None = None
    phases: UpPhases | None = None
    """When the job sends in an iteration; None: once, at the end of the iteration."""

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
    """How often the job is delayed so that it keeps its turn."""
    held_s: float = 0.0
    """The part of the iteration in which the job waits for its turn."""


def shared(
    jobs: Sequence[CurvedJob],
    model: Model,
    *,
    eta: float = 1.0,
    fair_queued: frozenset[str] = frozenset(),
    settled: float = SETTLED,
) -> tuple[Shared, ...]:
    """Iterations of jobs on the links that their ways cross; arguments as in `contention`.

    Rounds end when every iteration changes by at most `settled` times its length.
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
    """Of each job: its share, whether it alone fills a link, and the model's last answer."""
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
            # Waiting for a turn is not a lack of bandwidth, so it does not count as Up time.
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
    """A job as a model sees it: isolated Up time, and the Down time at a share of the bandwidth."""
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
    """A job of a model on a placement. Its first iteration starts at `offset_s` seconds."""

    model: str
    placement: Placement
    offset_s: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkBusyness:
    """A link, and the mean share of its capacity that each of its jobs uses, by the job's index.

    `alone` is for each job in isolation. The sum of `co_located` is the link's utilisation.
    """

    link: Link
    alone: Mapping[int, float]
    co_located: Mapping[int, float]
    eta: float
    """The usable share of the link's capacity while jobs share it."""

    @property
    def utilisation(self) -> float:
        """The share of the link's capacity that all jobs use together."""
        return sum(self.co_located.values())


@dataclass(frozen=True, slots=True)
class CoLocation:
    """Iterations of co-located jobs, in the order given, and the links that they share."""

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

    Links inside machines and out of them are fair-queued, as NICs are. `eta` is the efficiency of
    the other links while jobs share them. `seed` seeds the hash that puts connections on links.

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
        # A job has the same ways whatever the level of its curve.
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
    """The job, with the curve over the bandwidth share of levels outside the level `uplink`."""
    outside = frozenset(fabric.level_names[uplink + 1 :])
    curve = curves.curve(job.model, shape(tree, job.placement), outside)
    way = ways(tree, fabric, job.placement, curve.traffic)
    return CurvedJob(way, curve, curve.compute_s, job.offset_s)


def _busy_s(
    tree: ClusterTree, fabric: Fabric, job: JobAtPlace, curves: Curves
) -> Mapping[str, float]:
    """Seconds for which the job sends out of units of each level, by the level's name."""
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
    """The use of each link that several jobs share, in the order of levels and units."""
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
