"""Which of several parallel links each connection of a job takes, as `uplink.routing` says.

    ecmp     link floor(hash x links), whatever the links carry: hash-threshold (RFC 2992). The hash
             is of the job, the two units and the connection
    static   the link that carries least when the job gets its GPUs. The connection stays there

A connection is what a pair of GPUs sends on one dimension of a collective. Its queue pairs
(NCCL_IB_QPS_PER_CONNECTION) are put on links one by one, and all carry equally much. Link k up and
link k down lead to the same switch outside, so a connection that leaves its source's unit on link k
enters its target's unit on link k. Collisions arise where few connections send much each (Al-Fares
et al., Hedera, NSDI 2010; Gangidi et al., RDMA over Ethernet for Distributed AI Training, SIGCOMM
2024).

Hashes take the job's place in the order of arrival and the units' places in the cluster, so names
do not matter.
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
"""By the pooled links of a way: the links that its connections take, and the part on each."""

_SAME = 1e-9
"""Rounding error of connection counts, which are sums of fractions for uneven placements."""


class Routes:
    """The routes of running jobs. `seed` is the seed of the hash."""

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
        """A copy in which only levels that hash have routes. Other levels' links are pooled."""
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
        """Put the connections of a job on links.

        `of_job` are its ways over pooled links. In isolation it sends for `busy_s` an iteration.
        """
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
        """Enter a job that keeps the links which it took before."""
        for way in of_job:
            for links, part in taken[way.links]:
                for link in links:
                    if self._is_static(link):
                        self._note(link, job, part * way.volume_bytes / busy_s)

    def leave(self, job: int) -> None:
        """Remove a job, which no longer sends."""
        for by_job in self._sent.values():
            by_job.pop(job, None)

    def _queue_pairs(self, way: Way) -> int:
        """Queue pairs per connection: the most that any level on the way states."""
        stated = (self._uplinks[x.level][1] for x in way.links if x.level in self._uplinks)
        return max((uplink.queue_pairs or 1 for uplink in stated), default=1)

    def _choices(
        self, job: int, way: Way, count: int, busy_s: float
    ) -> list[Sequence[tuple[str, int]]]:
        """For each level on the way: the level and the chosen link of each connection."""
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
            choices.append([(name, index) for index in chosen])
        return choices

    def _least_loaded(
        self, job: int, pair: Sequence[Link], links: int, rate: float, count: int
    ) -> list[int]:
        """The links of `count` connections between two units, each of `rate` bytes/s."""
        ends = [[self._link(link, index) for link in pair] for index in range(links)]
        loads = [[math.fsum(self._sent.get(x, {}).values()) for x in both] for both in ends]
        least = [(max(load), sum(load), index) for index, load in enumerate(loads)]
        heapify(least)
        chosen = []
        for _ in range(count):
            index = least[0][2]
            loads[index] = now = [load + rate for load in loads[index]]
            heapreplace(least, (max(now), sum(now), index))
            chosen.append(index)
        for index, times in Counter(chosen).items():
            for link in ends[index]:
                self._note(link, job, times * rate)
        return chosen

    def _note(self, link: Link, job: int, rate: float) -> None:
        by_job = self._sent.setdefault(link, {})
        by_job[job] = by_job.get(job, 0.0) + rate

    def _is_static(self, link: Link) -> bool:
        return link.level in self._uplinks and self._uplinks[link.level][1].routing == "static"

    def _on(self, links: Sequence[Link], chosen: Mapping[str, int]) -> tuple[Link, ...]:
        return tuple(
            self._link(link, chosen[link.level]) if link.level in chosen else link for link in links
        )

    def _link(self, pooled: Link, index: int) -> Link:
        """One of the parallel links that an uplink consists of."""
        count = self._uplinks[pooled.level][1].routed_links
        return replace(pooled, capacity_gib_per_s=pooled.capacity_gib_per_s / count, index=index)


def routed(of_job: Iterable[Way], taken: Taken) -> tuple[Way, ...]:
    """The ways of a job on the links that its connections take."""
    return together(
        Way(links, part * way.volume_bytes, part * way.connections)
        for way in of_job
        for links, part in taken[way.links]
    )


def outside(of_job: Iterable[Way], levels: frozenset[str]) -> tuple[Way, ...]:
    """The same traffic, with only the links of the named levels."""
    seen = ((tuple(x for x in way.links if x.level in levels), way) for way in of_job)
    return together(Way(links, way.volume_bytes, way.connections) for links, way in seen if links)
