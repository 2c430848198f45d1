"""Contentions, networks and curves for tests: jobs on one link, and any small ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random

from hypothesis import strategies as st

from artist.network.demand.curves import Curve
from artist.network.demand.traffic import Traffic
from artist.network.models.patterns import (
    Contention,
    Flow,
    Member,
    Pattern,
    PatternStep,
    SharedLink,
)
from artist.network.models.sending_flows import fill

LINE = 1e9
"""Bytes per second."""


def curve(shares: Sequence[float], comm: Sequence[float], busy: Sequence[float]) -> Curve:
    """Comm ratios and busy ratios at some shares, for a second of computation without traffic."""
    points = dict(zip(shares, zip(comm, busy, strict=True), strict=True))
    return Curve(tuple(shares), points.__getitem__, Traffic((), (), ()), 1.0, "hand")


@dataclass(frozen=True)
class Network:
    """Flows on links in one direction: what each crosses, sends at most and weighs."""

    capacities: Sequence[float]
    paths: Sequence[Sequence[int]]
    caps: Sequence[float]
    weights: Sequence[float]

    def max_min(self) -> list[float]:
        """The rate of each flow."""
        links = [
            (capacity, tuple(flow for flow, path in enumerate(self.paths) if link in path))
            for link, capacity in enumerate(self.capacities)
        ]
        return fill(self.weights, self.caps, links)

    def carried(self, rates: Sequence[float]) -> list[float]:
        """What each link carries."""
        return [
            sum(rate for rate, path in zip(rates, self.paths, strict=True) if link in path)
            for link in range(len(self.capacities))
        ]


def network(
    capacities: Sequence[float],
    paths: Sequence[Sequence[int]],
    caps: Sequence[float] | None = None,
    weights: Sequence[float] | None = None,
) -> Network:
    """A network; without `caps` only links limit flows."""
    flows = len(paths)
    return Network(capacities, paths, caps or [inf] * flows, weights or [1.0] * flows)


def line_rate(down_s: float, up_s: float) -> Pattern:
    """Down, then Up at the line rate of link 0."""
    return Pattern.simple(down_s, up_s * LINE, Flow((0,), LINE))


def on_one_link(*members: Member, eta: float = 1.0) -> Contention:
    return Contention((SharedLink(LINE, eta=eta),), members)


def ring_pair(down_s: float, up_s: float, rate: float = LINE) -> Pattern:
    """A ring of two across links 0 and 1, one per direction."""
    return Pattern.simple(down_s, up_s * rate, Flow((0,), rate), Flow((1,), rate))


def on_both_directions(*members: Member, eta: float = 1.0, capacity: float = LINE) -> Contention:
    return Contention((SharedLink(capacity, eta=eta),) * 2, members)


@st.composite
def contentions(draw: st.DrawFn) -> Contention:
    """Up to 4 jobs with up to 3 flows on up to 4 links. Few distinct numbers, so ties happen."""
    count = draw(st.integers(1, 4))
    shares = st.sampled_from([0.3, 0.5, 1.0])
    links = tuple(
        SharedLink(draw(shares) * LINE, draw(st.booleans()), draw(st.sampled_from([0.9, 1.0])))
        for _ in range(count)
    )
    path = st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True)

    def member() -> Member:
        flows = tuple(
            Flow(tuple(draw(path)), draw(shares) * LINE) for _ in range(draw(st.integers(1, 3)))
        )
        steps = tuple(
            PatternStep(draw(shares), tuple(draw(shares) * LINE for _ in flows))
            for _ in range(draw(st.integers(1, 2)))
        )
        return Member(Pattern(flows, steps), draw(st.sampled_from([0.0, 0.25, -0.4])))

    return Contention(links, tuple(member() for _ in range(draw(st.integers(1, 4)))))


def renamed(contention: Contention, jobs: list[int], links: list[int]) -> Contention:
    """Job i is job `jobs[i]` of the original; link j of the original is link `links[j]` here."""

    def moved(member: Member) -> Member:
        flows = [
            Flow(tuple(links[x] for x in flow.links), flow.cap_bytes_per_s, flow.weight)
            for flow in member.pattern.flows
        ][::-1]
        steps = tuple(
            PatternStep(step.down_s, step.volumes_bytes[::-1]) for step in member.pattern.steps
        )
        return Member(Pattern(tuple(flows), steps), member.offset_s, member.down_factors)

    places = {new: old for old, new in enumerate(links)}
    return Contention(
        tuple(contention.links[places[x]] for x in range(len(links))),
        tuple(moved(contention.members[job]) for job in jobs),
    )


def shuffled(contention: Contention, random: Random) -> tuple[Contention, list[int]]:
    """The same under other names; job i is the job of the original at position i of the list."""
    jobs, links = list(range(len(contention.members))), list(range(len(contention.links)))
    random.shuffle(jobs)
    random.shuffle(links)
    return renamed(contention, jobs, links), jobs
