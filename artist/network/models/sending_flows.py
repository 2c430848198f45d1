"""Rates of the few flows of one contention that send at an instant: max-min fair shares.

    rate of a flow = min(its cap, its weight x level of each link that it crosses)

The level of a link rises until the link is full or all its flows are held back elsewhere. This is
the bottleneck fairness that fluid simulators compute (Bertsekas and Gallager, Data Networks,
section 6.5.2). No flow can get more without taking from a flow whose rate per weight is smaller.

Rates are kept for sets of flows that recur. Callers can ask for two corrections. Packets on links
with one queue behave so, but a fluid does not (docs/contention.md):

    weights          of each flow, redrawn for each iteration
    two bottlenecks  a flow that meets different competitors on two full links gets less than its
                     max-min share, because both links hold it back
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter, truediv

from artist.network.models.patterns import (
    Contention,
    Flow,
    SharedLink,
    queue_for_each_other,
    sources,
)

# The middle job of a chain got .3 of each of its two full links instead of .5 (ns-3, DCTCP). Over
# all cases a weight of .25 came closest: the mean absolute error of slowdowns is .045, against .046
# with .45.
TWO_BOTTLENECK_WEIGHT = 0.25

FULL = 1 - 1e-9
"""A link is full if it carries this share of its capacity; the rest is rounding."""

Crossing = tuple[float, tuple[int, ...]]
"""A link's usable capacity, and the positions of the flows that cross it."""

_Getter = Callable[[Sequence[float]], tuple[float, ...]]

_Waiting = tuple[float, tuple[int, ...], _Getter]
"""A link's remaining capacity, the unsettled flows on it, and a getter of their items."""


@dataclass(slots=True)
class _Sending:
    """A group of flows that send at once and share links. Sequences go by position in the group."""

    caps: tuple[float, ...]
    links: tuple[Crossing, ...]
    weights: tuple[float, ...]
    varying: tuple[int, ...]
    """The flows that wait in one queue with another job, by position."""
    noise_of: _Getter
    """Takes the factors of the varying flows from the factors of all flows."""
    fits: bool
    """Whether no link limits a flow."""
    last: tuple[float, ...] | None = None
    """The factors of the last question; `rates` is its answer."""
    rates: Sequence[float] = ()


@dataclass(slots=True)
class _Set:
    """A set of flows that send at once."""

    limited: list[tuple[_Sending, tuple[int, ...]]]
    """The groups that links limit, and the positions of their flows in the set."""
    rates: list[float]
    """Bytes per second of all flows of the set."""


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
        crossing: dict[int, set[int]] = {}
        for number, flow in enumerate(self.flows):
            for link in flow.links:
                crossing.setdefault(link, set()).add(number)
        self._near = [set().union(*[crossing[x] for x in flow.links]) for flow in self.flows]
        self._known: dict[tuple[int, ...], _Sending] = {}
        self._sets: dict[tuple[int, ...], _Set] = {}

    def rates(self, sending: tuple[int, ...], noise: Sequence[float] | None) -> Sequence[float]:
        """Bytes per second of the flows `sending`, which are in ascending order.

        `noise` holds a factor on the weight of each flow of the contention, or is None for a fluid.
        The next call may overwrite the answer.
        """
        now = self._sets.get(sending)
        if now is None:
            now = self._sets[sending] = self._set(sending)
        rates = now.rates
        for group, places in now.limited:
            of_group = _rates(group, noise)
            if len(of_group) == len(rates):
                return of_group
            for place, rate in zip(places, of_group, strict=True):
                rates[place] = rate
        return rates

    def _set(self, sending: tuple[int, ...]) -> _Set:
        place = {flow: index for index, flow in enumerate(sending)}
        groups = [(self._of_group(group), group) for group in self._groups(sending)]
        limited = [
            (of_group, tuple([place[flow] for flow in group]))
            for of_group, group in groups
            if not of_group.fits
        ]
        return _Set(limited, [self.flows[flow].cap_bytes_per_s for flow in sending])

    def _groups(self, sending: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Groups of flows that share links, directly or through other flows; each independent."""
        left = set(sending)
        for first in sending:
            if first not in left:
                continue
            left.remove(first)
            group = [first]
            for flow in group:
                new = self._near[flow] & left
                left -= new
                group += new
            yield tuple(sorted(group))

    def _of_group(self, group: tuple[int, ...]) -> _Sending:
        if group not in self._known:
            self._known[group] = self._look_up_group(group)
        return self._known[group]

    def _look_up_group(self, sending: tuple[int, ...]) -> _Sending:
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
        crossings = tuple(links.values())
        varying = tuple([position for position, x in enumerate(met) if x])
        noise_of = _getter(tuple([sending[position] for position in varying]))
        return _Sending(caps, tightest(crossings), weights, varying, noise_of, fit(caps, crossings))

    def _held_twice(self, flow: Flow, full: set[int], jobs: dict[int, frozenset[int]]) -> bool:
        """Whether two full links on a flow's way have different competitors."""
        return len({jobs[link] for link in flow.links if link in full}) > 1


@lru_cache(maxsize=4096)
def _getter(numbers: tuple[int, ...]) -> _Getter:
    """A function from a sequence to the tuple of its items at these positions."""
    if not numbers:
        return lambda items: ()
    if len(numbers) == 1:  # `itemgetter` would give no tuple
        (number,) = numbers
        return lambda items: (items[number],)
    return itemgetter(*numbers)


def _rates(now: _Sending, noise: Sequence[float] | None) -> Sequence[float]:
    """Rates of a group that links limit. They are computed again only for other factors."""
    factors = () if noise is None else now.noise_of(noise)
    if now.last != factors:
        now.last = factors
        weights = list(now.weights)
        for position, factor in zip(now.varying, factors, strict=noise is not None):
            weights[position] *= factor
        if len(now.links) == 1:
            now.rates = _on_one_link(weights, now.caps, now.links[0][0])
        else:
            now.rates = _filled(weights, now.caps, now.links)
    return now.rates


def fit(caps: Sequence[float], links: Iterable[Crossing]) -> bool:
    """Whether all flows can send at their caps."""
    return all(sum([caps[x] for x in there]) <= capacity for capacity, there in links)


def tightest(links: Iterable[Crossing]) -> tuple[Crossing, ...]:
    """Of links with the same flows, only the one of least capacity: the others never fill."""
    least: dict[tuple[int, ...], float] = {}
    for capacity, there in links:
        least[there] = min(capacity, least.get(there, capacity))
    return tuple([(capacity, there) for there, capacity in least.items()])


def fill(weights: Sequence[float], caps: Sequence[float], links: Sequence[Crossing]) -> list[float]:
    """Max-min rates of a few flows, from their weights and caps and the links that they cross."""
    return list(caps) if fit(caps, links) else _filled(weights, caps, links)


def _on_one_link(weights: Sequence[float], caps: Sequence[float], capacity: float) -> list[float]:
    """As `_filled`, where all flows cross one link."""
    rates, left = list(caps), capacity
    capped = [cap / weight for cap, weight in zip(caps, weights, strict=True)]
    waiting: Sequence[int] = range(len(rates))
    while waiting:
        level = left / math.fsum([weights[x] for x in waiting])
        free = [x for x in waiting if capped[x] < level]
        if not free:
            for flow in waiting:
                rates[flow] = min(caps[flow], weights[flow] * level)
            break
        free = [x for x in waiting if capped[x] <= level]
        for flow in free:
            rates[flow] = min(caps[flow], weights[flow] * capped[flow])
        left = max(left - math.fsum([rates[x] for x in free]), 0.0)
        waiting = [x for x in waiting if capped[x] > level]
    return rates


def _filled(
    weights: Sequence[float], caps: Sequence[float], links: Sequence[Crossing]
) -> list[float]:
    """Progressive filling: each round settles the flows that their cap or tightest link limits."""
    rates = list(caps)
    capped = list(map(truediv, caps, weights))
    waiting = [(capacity, there, _getter(there)) for capacity, there in links if there]
    settled = [False] * len(rates)
    left = len(rates)
    while left:
        least, levels = capped.copy(), []
        for capacity, there, of in waiting:
            level = capacity / math.fsum(of(weights))
            levels.append(level)
            for flow in there:
                if level < least[flow]:
                    least[flow] = level
        now = [x for x, level in enumerate(least) if level == capped[x] and not settled[x]]
        for level, (_, there, of) in zip(levels, waiting, strict=True):
            if min(of(least)) == level:  # all its flows have this level
                now += there
        for flow in now:
            if not settled[flow]:
                settled[flow] = True
                left -= 1
                rates[flow] = min(caps[flow], weights[flow] * least[flow])
        waiting = _waiting(waiting, settled, rates) if left else []
    return rates


def _waiting(
    links: Sequence[_Waiting], settled: Sequence[bool], rates: Sequence[float]
) -> list[_Waiting]:
    """The links with unsettled flows, and the capacity that settled flows leave there."""
    waiting: list[_Waiting] = []
    for link in links:
        capacity, there, _ = link
        gone = [rates[x] for x in there if settled[x]]
        if not gone:
            waiting.append(link)
        elif len(gone) < len(there):
            still = tuple([x for x in there if not settled[x]])
            waiting.append((max(capacity - math.fsum(gone), 0.0), still, _getter(still)))
    return waiting


def _usable(link: SharedLink, queued: bool) -> float:
    return link.capacity_bytes_per_s * (link.eta if queued else 1.0)
