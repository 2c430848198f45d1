"""Rates of flows in each of many states: which jobs send.

The states are copies of the network side by side, so that one call of `max_min` serves all. Copies
touch no link of each other, so the other copies change no bit of a copy's rates.

The rule for two bottlenecks is the one in `sending_flows`, for all states at once. The two modules
stay apart: their sums have different orders, so their rates differ in the last bits, and arrays
take five times as long for the few flows of an instant. A test compares them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from artist.network.models.max_min import Floats, Ints, Network, max_min
from artist.network.models.patterns import Flow, SharedLink, sources
from artist.network.models.sending_flows import FULL

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Links:
    """Links as arrays, shape (links,)."""

    capacities: Floats
    etas: Floats
    one_queue: Bools
    """Whether jobs can queue for each other there."""

    @classmethod
    def of(cls, links: Sequence[SharedLink]) -> Links:
        """From one object per link."""
        return cls(
            np.array([link.capacity_bytes_per_s for link in links], dtype=np.float64),
            np.array([link.eta for link in links], dtype=np.float64),
            np.array([not link.fair_queued for link in links], dtype=bool),
        )

    def chosen(self, these: Ints) -> Links:
        """Some of the links."""
        return Links(self.capacities[these], self.etas[these], self.one_queue[these])


@dataclass(frozen=True)
class FlowsOfJobs:
    """Flows on links, and the job of each, numbered from 0."""

    links: Links
    paths: Ints
    """The links of flow 0, then those of flow 1, and so on."""
    lengths: Ints
    """Of each flow: how many links it crosses."""
    sources: Ints
    """Of each element of `paths`, where the flow comes from (`patterns.sources`): the number of a
    fair-queued link, or, if there is none, a negative number of the flow itself."""
    caps: Floats
    weights: Floats
    owners: Ints

    @classmethod
    def of(
        cls, links: Sequence[SharedLink], flows: Sequence[Flow], owners: Sequence[int] | Ints
    ) -> FlowsOfJobs:
        """From one object per link and flow."""
        paths = [link for flow in flows for link in flow.links]
        from_where = sources(links, flows)
        numbers = [
            index if fair_queued else -1 - index
            for of_flow, flow in zip(from_where, flows, strict=True)
            for fair_queued, index in (of_flow[link] for link in flow.links)
        ]
        return cls(
            Links.of(links),
            np.array(paths, dtype=np.int64),
            np.array([len(flow.links) for flow in flows], dtype=np.int64),
            np.array(numbers, dtype=np.int64),
            np.array([flow.cap_bytes_per_s for flow in flows], dtype=np.float64),
            np.array([flow.weight for flow in flows], dtype=np.float64),
            np.array(owners, dtype=np.int64),
        )

    def chosen(self, flows: Ints, caps: Floats, owners: Ints) -> FlowsOfJobs:
        """Some of the flows, with other caps and owners, and only those links that they cross."""
        lengths = self.lengths[flows]
        entries = _entries(self.lengths, flows)
        crossed, paths = np.unique(self.paths[entries], return_inverse=True)
        links, weights = self.links.chosen(crossed), self.weights[flows]
        return FlowsOfJobs(links, paths, lengths, self.sources[entries], caps, weights, owners)


def _entries(every_length: Ints, flows: Ints) -> Ints:
    """Positions in `paths` of the links of some flows."""
    starts = np.cumsum(every_length) - every_length
    lengths = every_length[flows]
    ends = np.cumsum(lengths)
    count = int(ends[-1]) if len(ends) else 0
    entries: Ints = np.arange(count) + np.repeat(starts[flows] - (ends - lengths), lengths)
    return entries


def rates_of_several(
    asked: Sequence[tuple[FlowsOfJobs, Bools]], two_bottleneck_weight: float = 1.0
) -> list[Floats]:
    """Rates in all states of several networks that have nothing to do with each other.

    Who is Up in each state has shape (states, jobs). Rates have shape (states, flows), in bytes per
    second, and are 0 for flows of jobs that are not Up. `two_bottleneck_weight` as in
    `SendingFlows`.
    """
    copies = [_Copies(these, up) for these, up in asked]
    sent = _sent([one.network for one in copies])
    if two_bottleneck_weight != 1.0:
        held = [one.held_twice(of_one) for one, of_one in zip(copies, sent, strict=True)]
        again = [index for index, flows in enumerate(held) if flows.any()]
        # Only states in which a flow is held back are asked again.
        fewer = [copies[index].where(held[index], two_bottleneck_weight) for index in again]
        anew = _sent([network for network, _ in fewer])
        for index, (_, flows), rates in zip(again, fewer, anew, strict=True):
            sent[index][flows] = rates
    return [one.in_states(of_one) for one, of_one in zip(copies, sent, strict=True)]


def _sent(networks: Sequence[Network]) -> list[Floats]:
    """Max-min rates of the flows of each network."""
    if not networks:
        return []
    ends = np.cumsum([network.flows for network in networks])[:-1]
    return np.split(max_min(_side_by_side(networks)), ends)


def _side_by_side(networks: Sequence[Network]) -> Network:
    links = np.cumsum([0, *(len(network.capacities) for network in networks)])
    entries = np.cumsum([0, *(len(network.links) for network in networks)])
    return Network(
        np.concatenate([network.capacities for network in networks]),
        np.concatenate([x.links + shift for x, shift in zip(networks, links, strict=False)]),
        np.concatenate(
            [x.first[:-1] + shift for x, shift in zip(networks, entries, strict=False)]
            + [entries[-1:]]
        ),
        np.concatenate([network.caps for network in networks]),
        np.concatenate([network.weights for network in networks]),
    )


class _Copies:
    """One copy of the links per state, and those flows on it that send in this state."""

    def __init__(self, these: FlowsOfJobs, up: Bools) -> None:
        self._these = these
        self._up: Floats = up.astype(np.float64)
        self._sends = up[:, these.owners]
        self._state, self._flow = np.nonzero(self._sends)
        links, jobs = len(these.links.capacities), up.shape[1]
        flow_of_entry = np.repeat(np.arange(len(these.lengths)), these.lengths)
        self._owner_of_entry = these.owners[flow_of_entry]
        self._on: Floats = np.zeros((links, jobs))
        """1 where flows of a job cross a link."""
        self._on[these.paths, self._owner_of_entry] = 1.0
        self._queued = self._queues()
        capacities = these.links.capacities
        usable = np.where(self._queued, capacities * these.links.etas, capacities)
        lengths = these.lengths[self._flow]
        self._link_of_entry = these.paths[_entries(these.lengths, self._flow)]
        self._state_of_entry = np.repeat(self._state, lengths)
        self.network = Network(
            usable.ravel(),
            self._link_of_entry + self._state_of_entry * links,
            np.concatenate(([0], np.cumsum(lengths))),
            these.caps[self._flow],
            these.weights[self._flow],
        )

    def _queues(self) -> Bools:
        """Shape (states, links): whether jobs wait for each other, as `queue_for_each_other`."""
        # A product of matrices counts jobs by state and link. Sums of ones are exact, so the order
        # of summands, which depends on the library, changes nothing.
        several = (self._up @ self._on.T > 1) & self._these.links.one_queue
        if (self._these.sources >= 0).any() and several.any():  # else each flow comes from itself
            several &= self._several_sources()
        return several

    def _several_sources(self) -> Bools:
        paths, from_where = self._these.paths, self._these.sources
        pairs, pair_of_entry = np.unique(np.stack((paths, from_where)), axis=1, return_inverse=True)
        pair_of_entry = pair_of_entry.ravel()
        jobs = np.zeros((pairs.shape[1], self._up.shape[1]))
        jobs[pair_of_entry, self._owner_of_entry] = 1.0
        links = np.zeros((pairs.shape[1], len(self._these.links.capacities)))
        links[np.arange(pairs.shape[1]), pairs[0]] = 1.0
        sends: Floats = (self._up @ jobs.T > 0).astype(np.float64)
        several: Bools = sends @ links > 1
        return several

    def held_twice(self, sent: Floats) -> Bools:
        """Which flows cross two full links with different competitors, below their caps."""
        network = self.network
        carried = np.bincount(
            network.links, np.repeat(sent, np.diff(network.first)), len(network.capacities)
        )
        full = (self._queued.ravel() & (carried >= FULL * network.capacities))[network.links]
        held: Bools = np.zeros(len(sent), dtype=bool)
        flow_of_entry = network.flow_of_entry
        full &= (sent < FULL * network.caps)[flow_of_entry]
        entries = np.flatnonzero(full)
        # The competitors on a flow's full links are compared with those on the first of these.
        flows, firsts, counts = np.unique(
            flow_of_entry[entries], return_index=True, return_counts=True
        )
        if not len(flows) or counts.max() < 2:
            return held
        there = self._on[self._link_of_entry[entries]] * self._up[self._state_of_entry[entries]]
        others = (there != np.repeat(there[firsts], counts, axis=0)).any(axis=1)
        held[flows] = np.logical_or.reduceat(others, firsts)
        return held

    def where(self, held: Bools, factor: float) -> tuple[Network, Bools]:
        """The states in which flows are held, with a factor on their weights; all flows in them.

        A smaller weight of one flow moves the rates of all others in its state, but of none in
        other states. So whole states are asked again, and only these.
        """
        states = np.zeros(len(self._up), dtype=bool)
        states[self._state[held]] = True
        flows = states[self._state]
        lengths = np.diff(self.network.first)[flows]
        entries = states[self._state_of_entry]
        shift = (np.cumsum(states) - 1) * len(self._these.links.capacities)
        weights = self.network.weights[flows]
        fewer = replace(
            self.network,
            capacities=self.network.capacities.reshape(len(states), -1)[states].ravel(),
            links=self._link_of_entry[entries] + shift[self._state_of_entry[entries]],
            first=np.concatenate(([0], np.cumsum(lengths))),
            caps=self.network.caps[flows],
            weights=np.where(held[flows], weights * factor, weights),
        )
        return fewer, flows

    def in_states(self, sent: Floats) -> Floats:
        """Shape (states, flows): the rates, and 0 where a flow does not send."""
        rates = np.zeros(self._sends.shape)
        rates[self._sends] = sent
        return rates
