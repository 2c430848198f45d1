"""How fast jobs send while some of them are Up, in all states at once.

    a job at speed v sends v x (what it sends in isolation) on each of its links

Speeds belong to jobs, not to flows. A flow that is ahead ends early and leaves its links to others,
and a flow that lags catches up, so every link carries the right number of bytes. If each flow had a
rate of its own in every state and the slowest one counted, jobs of many flows would be too slow,
because another flow is the slowest in the next state.

Links are shared max-min among connections. The level of a link rises until the link is full or its
jobs are limited by other links:

    speed of a job = min(1, over its links: level x its connections there / its demand there)

A flow that meets different competitors on two full links gets less than its share
(`sending_flows`). The flows of a job lag in turn, so the job's weight is the geometric mean of
theirs.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.network.models.patterns import Flow, SharedLink, sources
from artist.network.models.sending_flows import FULL

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Below and above any number of a link or a job.
LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@cache
def states(jobs: int) -> Bools:
    """Shape (states, jobs): who is Up in each state. The first job is the highest bit."""
    every = np.array(list(itertools.product((False, True), repeat=jobs)), dtype=bool)
    every.flags.writeable = False
    return every


@dataclass(frozen=True)
class Sharers:
    """J jobs on L links, and other jobs around them. F flows cross up to P links each."""

    capacities: Floats
    """Shape (L,)."""
    etas: Floats
    one_queue: Bools
    """Shape (L,): whether jobs can queue for each other on the link."""
    demands: Floats
    """Shape (J, L): bytes per second while a job sends in isolation."""
    connections: Floats
    """Shape (J, L): sums of the weights of its flows."""
    sources: Ints
    """Shape (J, L): the fair-queued link from which all flows of the job come
    (`patterns.sources`), or a negative number for the job."""
    names: Ints
    """Shape (J,): numbers of jobs whose sums tell sets of jobs apart."""
    paths: Ints
    """Shape (F, P): the links of each flow, then L where there are fewer."""
    owners: Ints
    """Shape (F,): the job of each flow, ascending."""
    weights: Floats
    """Shape (F,)."""
    around: Around


@dataclass(frozen=True)
class Around:
    """The other jobs on each of L links, which send at their mean rates. Shapes (L,)."""

    rates: Floats
    """Their mean bytes per second."""
    connections: Floats
    jobs: Ints
    names: Ints
    """The sum of their names."""
    least_source: Ints
    most_source: Ints


class FlowsOnLinks:
    """The flows of jobs on links, by job and link."""

    def __init__(self, links: Sequence[SharedLink], flows: Sequence[Sequence[Flow]]) -> None:
        self._capacities = np.array([x.capacity_bytes_per_s for x in links], dtype=np.float64)
        self._etas = np.array([link.eta for link in links], dtype=np.float64)
        self._one_queue = np.array([not link.fair_queued for link in links], dtype=bool)
        owned = [(job, flow) for job, of_job in enumerate(flows) for flow in of_job if flow.links]
        longest = max((len(flow.links) for _, flow in owned), default=1)
        self._paths = np.full((len(owned), longest), -1)
        self._owners = np.array([job for job, _ in owned], dtype=np.int64)
        self._weights = np.array([flow.weight for _, flow in owned], dtype=np.float64)
        # Powers of 3, so that different sets of jobs have different sums.
        self._names = np.array([pow(3, job, 1 << 62) for job in range(len(flows))], dtype=np.int64)
        shape = len(flows), len(links)
        self.demands, self._connections = np.zeros(shape), np.zeros(shape)
        self._sources = np.full(shape, MOST)
        from_where = sources(links, [flow for _, flow in owned])
        for number, ((job, flow), of_flow) in enumerate(zip(owned, from_where, strict=True)):
            self._paths[number, : len(flow.links)] = flow.links
            for link in flow.links:
                fair_queued, index = of_flow[link]
                source, before = index if fair_queued else -1 - job, self._sources[job, link]
                self._sources[job, link] = source if before in (MOST, source) else -1 - job
                self.demands[job, link] += flow.cap_bytes_per_s
                self._connections[job, link] += flow.weight

    def sharers(self, jobs: Sequence[int], sends: Floats | None = None) -> Sharers:
        """The jobs `jobs`, ascending, and the jobs around them, which send at speeds `sends`."""
        jobs = list(jobs)
        mine = self.demands[jobs]
        links = np.flatnonzero(mine.any(axis=0))
        column = np.full(len(self._capacities) + 1, len(links))
        column[links] = np.arange(len(links))
        place = np.full(len(self.demands), -1)
        place[jobs] = np.arange(len(jobs))
        flows = np.flatnonzero(place[self._owners] >= 0)
        return Sharers(
            self._capacities[links],
            self._etas[links],
            self._one_queue[links],
            mine[:, links],
            self._connections[jobs][:, links],
            self._sources[jobs][:, links],
            self._names[jobs],
            column[self._paths[flows]],
            place[self._owners[flows]],
            self._weights[flows],
            self._around(np.flatnonzero(place < 0), links, sends),
        )

    def _around(self, others: Ints, links: Ints, sends: Floats | None) -> Around:
        these = np.ix_(others, links)
        demands, from_where = self.demands[these], self._sources[these]
        on = demands > 0
        rates = demands if sends is None else demands * sends[others, None]
        return Around(
            rates.sum(axis=0),
            self._connections[these].sum(axis=0),
            on.sum(axis=0),
            (on * self._names[others, None]).sum(axis=0),
            np.where(on, from_where, MOST).min(axis=0, initial=MOST),
            np.where(on, from_where, LEAST).max(axis=0, initial=LEAST),
        )


def speeds_of_several(asked: Sequence[Sharers], two_bottleneck_weight: float) -> list[Floats]:
    """The speeds of jobs in all states, for each of several independent chains.

    Shape (states, jobs). A job that is not Up has a speed of 0. `two_bottleneck_weight` as in
    `SendingFlows`.
    """
    speeds: list[Floats] = [np.empty((0, 0))] * len(asked)
    for count in {len(sharers.names) for sharers in asked}:
        alike = [index for index, sharers in enumerate(asked) if len(sharers.names) == count]
        several = _Chains([asked[index] for index in alike]).speeds(two_bottleneck_weight)
        for index, of_chain in zip(alike, several, strict=True):
            speeds[index] = of_chain
    return speeds


class _Chains:
    """All states of C chains of J jobs each. Chains are padded with links that no job crosses.

    Sums go over jobs or over the flows of one job, never over links, so padding changes no bit.
    """

    def __init__(self, every: Sequence[Sharers]) -> None:
        self._every = every
        jobs = len(every[0].names)
        self._up = states(jobs)
        # Short paths are padded with one more link than any chain has.
        self._links = max(len(sharers.capacities) for sharers in every) + 1
        self._demands = self._padded([x.demands for x in every], 0.0)
        self._connections = self._padded([x.connections for x in every], 0.0)
        self._around_rates = self._padded([x.around.rates for x in every], 0.0)
        self._around_connections = self._padded([x.around.connections for x in every], 0.0)
        # From here on, shapes (C, states, L).
        sends = self._up[None, :, :, None] & (self._demands > 0)[:, None]
        self._queued = self._queues(sends)
        capacities = self._padded([x.capacities for x in every], 1.0)[:, None]
        etas = self._padded([x.etas for x in every], 1.0)[:, None]
        self._usable = np.where(self._queued, capacities * etas, capacities)
        names = np.stack([x.names for x in every])[:, None, :, None]
        self._met = (sends * names).sum(axis=2)
        self._met += self._padded([x.around.names for x in every], 0)[:, None]

    def speeds(self, two_bottleneck_weight: float) -> Floats:
        """Shape (C, states, J)."""
        shape = len(self._every), *self._up.shape
        chains, rows = np.indices(shape[:2]).reshape(2, -1)
        first, full = self._filled(chains, rows, np.ones((len(rows), shape[2])))
        speeds = first.reshape(shape)
        if two_bottleneck_weight != 1.0:
            lagging = self._lagging(speeds, full.reshape(*shape[:2], -1))
            chains, rows = np.nonzero(lagging.any(axis=2))
            if len(rows):
                factors = two_bottleneck_weight ** lagging[chains, rows]
                speeds[chains, rows], _ = self._filled(chains, rows, factors)
        return speeds

    def _padded(self, arrays: Sequence[npt.NDArray[Any]], with_: float) -> Any:
        padded = np.full((len(arrays), *arrays[0].shape[:-1], self._links), with_, arrays[0].dtype)
        for row, array in zip(padded, arrays, strict=True):
            row[..., : array.shape[-1]] = array
        return padded

    def _queues(self, sends: Bools) -> Bools:
        """Whether jobs wait for each other on links, as in `queue_for_each_other`."""
        every = self._every
        jobs = sends.sum(axis=2) + self._padded([x.around.jobs for x in every], 0)[:, None]
        from_where = self._padded([x.sources for x in every], MOST)[:, None]
        around_least = self._padded([x.around.least_source for x in every], MOST)[:, None]
        around_most = self._padded([x.around.most_source for x in every], LEAST)[:, None]
        least = np.minimum(np.where(sends, from_where, MOST).min(axis=2), around_least)
        most = np.maximum(np.where(sends, from_where, LEAST).max(axis=2), around_most)
        one_queue = self._padded([x.one_queue for x in every], False)[:, None]
        queues: Bools = (jobs > 1) & (least != most) & one_queue
        return queues

    def _filled(self, chains: Ints, rows: Ints, factors: Floats) -> tuple[Floats, Bools]:
        """Speeds in some states, with factors on the jobs' connections, and whether links are full.

        Shapes (states, J) and (states, L).
        """
        up, demands = self._up[rows], self._demands[chains]
        connections = self._connections[chains] * np.where(up, factors, 0.0)[:, :, None]
        usable = self._usable[chains, rows]
        mine = connections.sum(axis=1)
        every = mine + self._around_connections[chains]
        fair = np.divide(mine, every, out=np.ones_like(mine), where=every > 0)
        # Jobs around get their mean rates, but no more than their fair share.
        left = np.maximum(usable - self._around_rates[chains], usable * fair)
        speeds = up.astype(np.float64)
        short = (_sent(demands, speeds) > left).any(axis=1)
        if short.any():
            speeds[short] = filled(demands[short], connections[short], left[short], up[short])
        return speeds, self._queued[chains, rows] & (_sent(demands, speeds) >= FULL * left)

    def _lagging(self, speeds: Floats, full: Bools) -> Floats:
        """Shape (C, states, J): the part of a job's connections that two full links hold back."""
        lagging = np.zeros(speeds.shape)
        if full.sum(axis=2).max() < 2:
            return lagging
        counts = [len(x.owners) for x in self._every]
        chains = np.repeat(np.arange(len(self._every)), counts)
        owners = np.concatenate([x.owners for x in self._every])
        weights = np.concatenate([x.weights for x in self._every])
        longest = max(x.paths.shape[1] for x in self._every)
        paths = np.full((len(owners), longest), self._links - 1)
        ends = np.cumsum(counts)
        for sharers, end in zip(self._every, ends, strict=True):
            length = sharers.paths.shape[1]
            paths[end - len(sharers.owners) : end, :length] = sharers.paths
        # Shapes (F, P, states), then (F, states).
        there = full[chains[:, None], :, paths]
        met = self._met[chains[:, None], :, paths]
        least = np.where(there, met, MOST).min(axis=1)
        most = np.where(there, met, LEAST).max(axis=1)
        held = (least < most) & (speeds[chains, :, owners] < FULL)
        held &= self._up.T[owners]
        firsts = np.flatnonzero(np.diff(chains, prepend=-1) | np.diff(owners, prepend=-1))
        part = np.add.reduceat(np.where(held, weights[:, None], 0.0), firsts, axis=0)
        part /= np.add.reduceat(weights, firsts)[:, None]
        lagging[chains[firsts], :, owners[firsts]] = part
        return lagging


def _sent(demands: Floats, speeds: Floats) -> Floats:
    """Bytes per second on each link."""
    total: Floats = (demands * speeds[:, :, None]).sum(axis=1)
    return total


def filled(demands: Floats, connections: Floats, capacities: Floats, up: Bools) -> Floats:
    """Max-min speeds of jobs on links, in N networks at once: shape (N, J).

    Demands and connections have shape (N, J, L), and connections are 0 where a job is not up.
    """
    speeds = np.zeros(up.shape)
    rows, waits, left = np.arange(len(up)), up, capacities
    sends = connections > 0
    shares = np.divide(connections, demands, out=np.full_like(demands, np.inf), where=sends)
    # Makes the level infinite of links that a job does not cross.
    beyond = np.where(sends, 0.0, np.inf)
    while len(rows):
        total = (connections * waits[:, :, None]).sum(axis=1)
        levels = np.divide(left, total, out=np.full_like(left, np.inf), where=total > 0)
        seen = levels[:, None] + beyond
        reached = np.minimum((seen * shares).min(axis=2), 1.0)
        free = waits & (reached >= 1.0)
        lowest = np.where(waits, seen.min(axis=2), np.inf)
        held = waits & (lowest == lowest.min(axis=1, keepdims=True))
        # Unlimited jobs settle first, since what they leave raises the levels of the others.
        settled = np.where(free.any(axis=1, keepdims=True), free, held)
        now = np.where(settled, reached, 0.0)
        speeds[rows] += now
        left = np.maximum(left - _sent(demands, now), 0.0)
        waits = waits & ~settled
        more = waits.any(axis=1)
        rows, waits, left = rows[more], waits[more], left[more]
        demands, connections = demands[more], connections[more]
        shares, beyond = shares[more], beyond[more]
    return speeds
