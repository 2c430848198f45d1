"""From placements to contentions: which links the traffic of each job crosses.

Traffic between two machines goes up to the smallest unit that holds both, and down again. It
crosses the uplink of every unit on its way, at the levels for which the fabric states one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from artist.cluster.fabric import Fabric
from artist.cluster.links import Link, both_directions
from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree
from artist.network.demand.traffic import Traffic, sent_between
from artist.network.demand.up_phases import UpPhases
from artist.network.models.patterns import (
    Contention,
    Flow,
    InTurn,
    Member,
    Pattern,
    PatternStep,
    SharedLink,
)

Known: TypeAlias = "dict[tuple[int, int], tuple[Link, Link]]"
"""By level and unit: the uplink, up and down."""


@dataclass(frozen=True, slots=True)
class Way:
    """Traffic of a job over the same links: bytes per iteration, and number of connections."""

    links: tuple[Link, ...]
    volume_bytes: float
    connections: float


@dataclass(frozen=True, slots=True)
class JobOnLinks:
    """A job for a model of contention: what it sends on which way, and for how long.

    In isolation the job sends for `busy_s` of an iteration of `iteration_s`: at its end, or in
    `phases`. `offset_s`, `turn` and `stream` as in `Member`.
    """

    ways: tuple[Way, ...]
    iteration_s: float
    busy_s: float
    offset_s: float = 0.0
    turn: InTurn | None = None
    stream: int | None = None
    phases: UpPhases | None = None


def ways(
    tree: ClusterTree,
    fabric: Fabric,
    placement: Placement,
    traffic: Traffic,
    innermost_level: int = 0,
    known: Known | None = None,
) -> tuple[Way, ...]:
    """The ways of a job's traffic between the units of the innermost level with an uplink.

    Uplinks of levels inside `innermost_level` are left out, and so is traffic that crosses no
    uplink of the other levels. `known` keeps links from call to call.

    Raises:
        ConfigError: as `Traffic.spans`.
    """
    levels = [level for level in fabric.uplink_levels if level >= innermost_level]
    if not levels:
        return ()
    kept: Known = {} if known is None else known

    def uplink(level: int, unit: int) -> tuple[Link, Link]:
        if (level, unit) not in kept:
            kept[level, unit] = both_directions(tree, fabric, level, unit)
        return kept[level, unit]

    return tuple(
        Way(_links(tree, uplink, levels, source, target), volume_bytes, connections)
        for source, target, volume_bytes, connections in sent_between(
            tree, placement, traffic, levels[0]
        )
    )


def _links(
    tree: ClusterTree,
    uplink: Callable[[int, int], tuple[Link, Link]],
    levels: Sequence[int],
    source: int,
    target: int,
) -> tuple[Link, ...]:
    """Up from the source to the innermost unit that holds both, then down to the target."""
    up: list[Link] = []
    down: list[Link] = []
    for level in levels:
        here = tree.ancestor(levels[0], source, level)
        there = tree.ancestor(levels[0], target, level)
        if here == there:
            break
        up.append(uplink(level, here)[0])
        down.append(uplink(level, there)[1])
    return (*up, *reversed(down))


def together(of_job: Iterable[Way]) -> tuple[Way, ...]:
    """One way for all traffic that takes the same links."""
    sums: dict[tuple[Link, ...], tuple[float, float]] = {}
    for way in of_job:
        volume, connections = sums.get(way.links, (0.0, 0.0))
        sums[way.links] = (volume + way.volume_bytes, connections + way.connections)
    return tuple(Way(links, *of_links) for links, of_links in sums.items())


def bytes_on_links(of_job: Sequence[Way]) -> dict[Link, float]:
    """Bytes that a job's iteration sends on each link."""
    total: dict[Link, float] = {}
    for way in of_job:
        for link in way.links:
            total[link] = total.get(link, 0.0) + way.volume_bytes
    return total


def contention(
    jobs: Sequence[JobOnLinks], *, eta: float = 1.0, fair_queued: frozenset[str] = frozenset()
) -> Contention:
    """The jobs on their links, in the order of the links' levels and units.

    Links of the levels `fair_queued` serve connections in turn. `eta` is the efficiency of other
    links, where the fabric states none. In isolation each way sends its volume in `busy_s`.
    """
    crossed = {link for job in jobs for way in job.ways for link in way.links}
    links = sorted(crossed, key=lambda link: (link.level, *link.order))
    number = {link: index for index, link in enumerate(links)}

    def member(job: JobOnLinks) -> Member:
        flows = tuple(
            Flow(
                tuple(number[link] for link in way.links),
                way.volume_bytes / job.busy_s,
                way.connections,
            )
            for way in job.ways
        )
        if flows and job.phases is not None:
            pattern = _in_phases(job, flows, job.phases)
        else:
            down_s = job.iteration_s - job.busy_s if flows else job.iteration_s
            pattern = Pattern(
                flows, (PatternStep(down_s, tuple(way.volume_bytes for way in job.ways)),)
            )
        return Member(pattern, job.offset_s, turn=job.turn, stream=job.stream)

    shared = tuple(shared_link(link, eta, fair_queued) for link in links)
    return Contention(shared, tuple(member(job) for job in jobs))


def _in_phases(job: JobOnLinks, flows: Sequence[Flow], phases: UpPhases) -> Pattern:
    """The job's pattern, with one copy of its flows for each share of the line rate."""
    every = phases.rate_shares(job.busy_s, job.iteration_s)
    shares = list(dict.fromkeys(every))
    limited = tuple(
        replace(flow, cap_bytes_per_s=share * flow.cap_bytes_per_s)
        for share in shares
        for flow in flows
    )
    volumes = [
        tuple(
            part * way.volume_bytes if share == mine else 0.0
            for share in shares
            for way in job.ways
        )
        for part, mine in zip(phases.parts(job.busy_s, job.iteration_s), every, strict=True)
    ]
    *before_s, last_s = phases.gaps_s(job.busy_s, job.iteration_s)
    steps = list(map(PatternStep, before_s, volumes))
    after = [PatternStep(last_s, (0.0,) * len(limited))] if last_s else []
    return Pattern(limited, (*steps, *after))


def shared_link(link: Link, eta: float, fair_queued: frozenset[str]) -> SharedLink:
    """A link as models of contention know it; arguments as in `contention`."""
    used = efficiency(link.level, link.eta, eta, fair_queued)
    return SharedLink(link.bytes_per_s, link.level in fair_queued, used)


def efficiency(level: str, stated: float | None, eta: float, fair_queued: frozenset[str]) -> float:
    """The usable share of a link's capacity while jobs share it."""
    if level in fair_queued:
        return 1.0
    return eta if stated is None else stated
