"""The Markov chain of two jobs in plain numbers, which is far faster than arrays.

Results equal those of `Chain` in `mean` bit for bit, because the operations and their order are the
same. Two jobs need few of them: no flow meets different competitors on two links, and the jobs
share links only in the state in which both are Up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from artist.network.models.patterns import Flow, SharedLink, sources


class OnLink(NamedTuple):
    """A job on a link."""

    demand: float
    """Bytes per second in isolation."""
    connections: float
    source: int | None
    """The fair-queued link from which all its flows come, if there is one."""


Crossed: TypeAlias = "dict[int, OnLink]"


def speeds_of_two(
    links: Sequence[SharedLink], one: Sequence[Flow], other: Sequence[Flow]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Speeds of two jobs: of each while the other one is Down, and of each while both are Up."""
    first, second = _crossed(links, one), _crossed(links, other)
    apart = [{x: links[x].capacity_bytes_per_s for x in crossed} for crossed in (first, second)]
    usable = {x: links[x].capacity_bytes_per_s for x in first | second}
    for link in first.keys() & second.keys():
        sources_ = first[link].source, second[link].source
        if not links[link].fair_queued and (sources_[0] is None or sources_[0] != sources_[1]):
            usable[link] *= links[link].eta
    alone = _alone(first, apart[0]), _alone(second, apart[1])
    return alone, _both(first, second, usable)


def chances_of_two(
    ups: tuple[float, float], downs: tuple[float, float], both: tuple[float, float]
) -> tuple[float, float, float]:
    """The chances that only the first, only the second, and both are Up, as `_stationary`.

    The arguments are the rates at which each goes Up, goes Down while the other one is Down, and
    goes Down while the other one is Up.
    """
    (up, up_), (down, down_), (end, end_) = ups, downs, both
    ends = end + end_
    on, on_ = up / ends, up_ / ends  # to both, by the job that goes Up
    over, back = on * end_, on_ * end  # from the second to the first by way of both, and back
    leaves = down + back
    into, over = up / leaves, over / leaves
    second = (up_ + into * back) / (down_ + over * down)
    first = into + second * over
    together = second * on + first * on_
    total = 1.0 + second + first + together
    return first / total, second / total, together / total


def _crossed(links: Sequence[SharedLink], flows: Sequence[Flow]) -> Crossed:
    crossed: Crossed = {}
    for flow, from_where in zip(flows, sources(links, flows), strict=True):
        for link in flow.links:
            fair_queued, index = from_where[link]
            source = index if fair_queued else None
            before = crossed.get(link, OnLink(0.0, 0.0, source))
            crossed[link] = OnLink(
                before.demand + flow.cap_bytes_per_s,
                before.connections + flow.weight,
                source if before.source == source else None,
            )
    return crossed


def _alone(job: Crossed, left: dict[int, float]) -> float:
    if all(on.demand <= left[link] for link, on in job.items()):
        return 1.0
    levels = {link: left[link] / on.connections for link, on in job.items()}
    return _reached(job, levels)


def _reached(job: Crossed, levels: dict[int, float]) -> float:
    """The speed of a job at levels of its links (`speeds`)."""
    reached = [levels[link] * (on.connections / on.demand) for link, on in job.items()]
    return min([1.0, *reached])


def _both(one: Crossed, other: Crossed, usable: dict[int, float]) -> tuple[float, float]:
    """Max-min speeds while both are Up. With two jobs, filling ends after two rounds."""
    none = OnLink(0.0, 0.0, None)
    pairs = {link: (one.get(link, none), other.get(link, none)) for link in usable}
    if all(x.demand + y.demand <= usable[link] for link, (x, y) in pairs.items()):
        return 1.0, 1.0
    levels = {x: usable[x] / (a.connections + b.connections) for x, (a, b) in pairs.items()}
    speeds = [_reached(one, levels), _reached(other, levels)]
    lowest = [min((levels[link] for link in job), default=1.0) for job in (one, other)]
    # An unlimited job settles first, or else the one on the lowest level. The other gets the rest.
    free = [speed >= 1.0 for speed in speeds]
    settled = free if any(free) else [level == min(lowest) for level in lowest]
    if all(settled):
        return speeds[0], speeds[1]
    last = settled.index(False)
    mine, theirs = (one, other) if last == 0 else (other, one)
    sent = {link: theirs.get(link, none).demand * speeds[1 - last] for link in mine}
    left = {link: max(usable[link] - sent[link], 0.0) for link in mine}
    speeds[last] = _reached(mine, {link: left[link] / on.connections for link, on in mine.items()})
    return speeds[0], speeds[1]
