"""Which of several parallel links each connection of a job takes, as `uplink.routing` says.

    ecmp     link floor(hash x links), whoever else is there: hash-threshold (RFC 2992). The hash is
             of the job, the two units and the connection
    static   the link on which jobs send least when the job gets its GPUs. There it stays

A connection is what a pair of GPUs sends on one dimension of a collective. Its queue pairs
(NCCL_IB_QPS_PER_CONNECTION) are put on links one by one, and each carries as much. Link k up and
link k down lead to the same switch outside, so a connection that leaves its source's unit on link k
enters its target's unit on link k. Collisions arise where few connections send much each (Al-Fares
et al., Hedera, NSDI 2010; Gangidi et al., RDMA over Ethernet for Distributed AI Training, SIGCOMM
2024).

A job is known by its place in the order of arrival, and units by theirs in the cluster: no name
counts.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heapreplace
from typing import TypeAlias

from artist.cluster.fabric import Fabric
from artist.cluster.links import Link
from artist.cluster.uplink import Uplink
from artist.network.demand.ways import Way, together
from artist.rng import uniform

Taken: TypeAlias = "Mapping[tuple[Link, ...], Sequence[tuple[tuple[Link, ...], float]]]"
"""By links of a way as if they were pooled: links that connections take, and which part of them."""

_SAME = 1e-9
"""Connections of uneven placements are sums of fractions."""


class Routes:
    """The routes of jobs that are there. `seed` is that of the hash."""

    def __init__(self, fabric: Fabric, seed: int) -> None:
        self._uplinks: dict[str, tuple[int, Uplink]] = {
            level.name: (index, level.uplink)
            for index, level in enumerate(fabric.levels)
            if level.uplink is not None and level.uplink.routed_links > 1
        }
        self._seed = seed
        self._sent: dict[Link, dict[int, float]] = {}
        """What each job sends on each link, bytes/s in isolation; for `static`."""

    @property
    def routed(self) -> bool:
        """Whether any level puts connections on links."""
        return bool(self._uplinks)

    @property
    def hashed(self) -> Routes:
        """A copy for the levels that hash. The links of the others are pooled."""
        twin = copy.copy(self)
        twin._uplinks = {
            name: stated for name, stated in self._uplinks.items() if stated[1].routing == "ecmp"
        }
        return twin

    def without(self, jobs: Iterable[int]) -> Routes:
        """A copy without some jobs, to try others."""
        twin = copy.copy(self)
        twin._sent = {link: dict(by_job) for link, by_job in self._sent.items()}
        for job in jobs:
            twin.leave(job)
        return twin

    def enter(self, job: int, of_job: Iterable[Way], busy_s: float) -> Taken:
        """Put the connections of a job on links. Its ways are pooled; it sends for `busy_s`."""
        taken: dict[tuple[Link, ...], list[tuple[tuple[Link, ...], float]]] = {}
        for way in of_job:
            count = self._queue_pairs(way) * max(math.ceil(way.connections - _SAME), 1)
            choices = Counter(zip(*self._choices(job, way, count, busy_s), strict=True))
            taken[way.links] = [
                (self._on(way.links, dict(choice)), times / count)
                for choice, times in choices.items()
            ]
        return taken

    def enter_as(self, job: int, of_job: Iterable[Way], busy_s: float, taken: Taken) -> None:
        """A job goes on with the links that it has taken before."""
        for way in of_job:
            for links, part in taken[way.links]:
                for link in links:
                    if self._is_static(link):
                        self._note(link, job, part * way.volume_bytes / busy_s)

    def leave(self, job: int) -> None:
        """The job sends no more."""
        for by_job in self._sent.values():
            by_job.pop(job, None)

    def _queue_pairs(self, way: Way) -> int:
        """Of each connection: the most that a level states which the way leaves."""
        stated = (self._uplinks[x.level][1] for x in way.links if x.level in self._uplinks)
        return max((uplink.queue_pairs or 1 for uplink in stated), default=1)

    def _choices(
        self, job: int, way: Way, count: int, busy_s: float
    ) -> list[Sequence[tuple[str, int]]]:
        """Per level that the way leaves, of each connection: the level and the link."""
        ends = way.links[0].unit, way.links[-1].unit
        choices: list[Sequence[tuple[str, int]]] = [[("", 0)] * count]
        for name, (level, uplink) in self._uplinks.items():
            pair = [link for link in way.links if link.level == name]
            if not pair:
                continue
            links = uplink.routed_links
            if uplink.routing == "ecmp":
                path = (job, level, *ends)
                hashed = [uniform(self._seed, "ecmp", path, index) for index in range(count)]
                chosen = [int(links * x) for x in hashed]
            else:
                rate = way.volume_bytes / count / busy_s if busy_s else 0.0
                chosen = self._least_loaded(job, pair, links, rate, count)
            choices.append([(name, which) for which in chosen])
        return choices

    def _least_loaded(
        self, job: int, pair: Sequence[Link], links: int, rate: float, count: int
    ) -> list[int]:
        """The link of each of some connections of one rate between two units."""
        every = [[self._one(link, which) for link in pair] for which in range(links)]
        loads = [[math.fsum(self._sent.get(x, {}).values()) for x in one] for one in every]
        least = [(max(load), sum(load), which) for which, load in enumerate(loads)]
        heapify(least)
        chosen = []
        for _ in range(count):
            which = least[0][2]
            loads[which] = now = [load + rate for load in loads[which]]
            heapreplace(least, (max(now), sum(now), which))
            chosen.append(which)
        for which, times in Counter(chosen).items():
            for link in every[which]:
                self._note(link, job, times * rate)
        return chosen

    def _note(self, link: Link, job: int, rate: float) -> None:
        by_job = self._sent.setdefault(link, {})
        by_job[job] = by_job.get(job, 0.0) + rate

    def _is_static(self, link: Link) -> bool:
        return link.level in self._uplinks and self._uplinks[link.level][1].routing == "static"

    def _on(self, links: Sequence[Link], which: Mapping[str, int]) -> tuple[Link, ...]:
        return tuple(
            self._one(link, which[link.level]) if link.level in which else link for link in links
        )

    def _one(self, link: Link, which: int) -> Link:
        count = self._uplinks[link.level][1].routed_links
        return replace(link, capacity_gib_per_s=link.capacity_gib_per_s / count, index=which)


def routed(of_job: Iterable[Way], taken: Taken) -> tuple[Way, ...]:
    """The ways of a job on the links that its connections take."""
    return together(
        Way(links, part * way.volume_bytes, part * way.connections)
        for way in of_job
        for links, part in taken[way.links]
    )


def outside(of_job: Iterable[Way], levels: frozenset[str]) -> tuple[Way, ...]:
    """The same traffic, looked at from the outer levels that are named."""
    seen = ((tuple(x for x in way.links if x.level in levels), way) for way in of_job)
    return together(Way(links, way.volume_bytes, way.connections) for links, way in seen if links)
