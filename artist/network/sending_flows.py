"""Rates of the few flows of one contention that send at an instant.

The same fairness as `max_min`, without arrays: for ten flows it is faster by far, and the rates of
a set of flows that recurs are kept. Two corrections may be asked for. Both are what packets do on
links with one queue; a fluid does not (docs/contention.md):

    weights          of each flow, drawn anew for each iteration
    two bottlenecks  a flow that meets different competitors on two full links gets less than its
                     max-min share, because both links hold it back
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from artist.network.patterns import Contention, Flow, SharedLink
from artist.network.queues import queue_for_each_other, sources

# The middle job of a chain got .3 of each of its two full links instead of .5 (ns-3, DCTCP). Over
# all cases .25 came closest: mean absolute error of the slowdown .045, and .046 with .45.
TWO_BOTTLENECK_WEIGHT = 0.25

FULL = 1 - 1e-9
"""A link is full if it carries this share of its capacity; the rest is rounding."""

Crossing = tuple[float, tuple[int, ...]]
"""A link's usable capacity, and the positions of the flows that cross it."""


@dataclass(slots=True)
class _Sending:
    """A set of flows that send at once. Sequences are by position in the set."""

    links: tuple[Crossing, ...]
    caps: tuple[float, ...]
    weights: tuple[float, ...]
    varying: tuple[bool, ...]
    """Whether a flow waits in one queue with another job."""
    fluid: list[float] | None = None
    """The rates with the weights as they are, once they have been asked for."""


class SendingFlows:
    """The flows of a contention, numbered job by job, and their rates while some of them send."""

    def __init__(self, contention: Contention, two_bottleneck_weight: float = 1.0) -> None:
        self.flows: tuple[Flow, ...] = tuple(
            flow for member in contention.members for flow in member.pattern.flows
        )
        self._owner = [
            job for job, member in enumerate(contention.members) for _ in member.pattern.flows
        ]
        self._links = contention.links
        self._sources = sources(contention.links, self.flows)
        self._two_bottleneck_weight = two_bottleneck_weight
        self._known: dict[tuple[int, ...], _Sending] = {}

    def rates(self, sending: tuple[int, ...], noise: Sequence[float] | None) -> Sequence[float]:
        """Bytes per second of the flows `sending`, which ascend, in their order.

        `noise` holds a factor on the weight of each flow of the contention, or is None for a fluid.
        """
        now = self._known.get(sending)
        if now is None:
            now = self._known[sending] = self._of(sending)
        if noise is None or not any(now.varying):
            if now.fluid is None:
                now.fluid = fill(now.weights, now.caps, now.links)
            return now.fluid
        weights = [
            weight * noise[flow] if varies else weight
            for flow, weight, varies in zip(sending, now.weights, now.varying, strict=True)
        ]
        return fill(weights, now.caps, now.links)

    def _of(self, sending: tuple[int, ...]) -> _Sending:
        at: dict[int, list[int]] = {}
        for position, flow in enumerate(sending):
            for link in self.flows[flow].links:
                at.setdefault(link, []).append(position)
        jobs = {
            link: frozenset([self._owner[sending[x]] for x in there]) for link, there in at.items()
        }
        queued = {
            link
            for link, there in at.items()
            if queue_for_each_other(
                self._links[link], jobs[link], [self._sources[sending[x]][link] for x in there]
            )
        }
        links = {
            link: (_usable(self._links[link], link in queued), tuple(there))
            for link, there in at.items()
        }
        flows = [self.flows[flow] for flow in sending]
        caps = tuple([flow.cap_bytes_per_s for flow in flows])
        weights = tuple([flow.weight for flow in flows])
        met = [[jobs[link] for link in flow.links if link in queued] for flow in flows]
        if self._two_bottleneck_weight != 1.0 and any(len(set(x)) > 1 for x in met):
            rates = fill(weights, caps, tuple(links.values()))
            full = {
                link
                for link in queued
                if sum([rates[x] for x in at[link]]) >= FULL * links[link][0]
            }
            weights = tuple(
                [
                    flow.weight * self._two_bottleneck_weight
                    if rate < FULL * flow.cap_bytes_per_s and self._held_twice(flow, full, jobs)
                    else flow.weight
                    for flow, rate in zip(flows, rates, strict=True)
                ]
            )
        return _Sending(tuple(links.values()), caps, weights, tuple([bool(x) for x in met]))

    def _held_twice(self, flow: Flow, full: set[int], jobs: dict[int, frozenset[int]]) -> bool:
        """Whether two full links on a flow's way have different competitors."""
        return len({jobs[link] for link in flow.links if link in full}) > 1


def fill(weights: Sequence[float], caps: Sequence[float], links: Sequence[Crossing]) -> list[float]:
    """Max-min rates of a few flows: weights and caps of each, and the links with their flows."""
    rates = list(caps)
    if all(sum([caps[x] for x in there]) <= capacity for capacity, there in links):
        return rates
    crossed: list[list[int]] = [[] for _ in rates]
    for number, (_, there) in enumerate(links):
        for flow in there:
            crossed[flow].append(number)
    left = [capacity for capacity, _ in links]
    totals = [math.fsum([weights[x] for x in there]) for _, there in links]
    waiting = [len(there) for _, there in links]
    capped = [
        (cap / weight, flow) for flow, (cap, weight) in enumerate(zip(caps, weights, strict=True))
    ]
    capped.sort(reverse=True)
    unsettled = dict.fromkeys(range(len(rates)))
    while unsettled:
        while capped[-1][1] not in unsettled:
            capped.pop()
        level, flow = capped[-1]
        settled = [flow]
        for number, (_, there) in enumerate(links):
            if waiting[number] and left[number] < level * totals[number]:
                level = left[number] / totals[number]
                settled = [x for x in there if x in unsettled]
        for flow in settled:
            del unsettled[flow]
            rate = rates[flow] = min(caps[flow], weights[flow] * level)
            for number in crossed[flow]:
                left[number] = max(left[number] - rate, 0.0)
                totals[number] -= weights[flow]
                waiting[number] -= 1
    return rates


def _usable(link: SharedLink, queued: bool) -> float:
    return link.capacity_bytes_per_s * (link.eta if queued else 1.0)
