"""Rates of flows in each of many states: which jobs send.

The states are copies of the network side by side, so that one call of `max_min` serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from artist.network.models.max_min import Floats, Ints, Network, max_min
from artist.network.models.patterns import Flow, SharedLink
from artist.network.models.queues import Source, queue_for_each_other, sources
from artist.network.models.sending_flows import FULL


@dataclass(frozen=True)
class FlowsOfJobs:
    """Flows, and the job of each, numbered from 0."""

    links: tuple[SharedLink, ...]
    flows: Sequence[Flow]
    owners: Ints

    @classmethod
    def on_their_links(
        cls, links: tuple[SharedLink, ...], flows: Sequence[Flow], owners: Sequence[int]
    ) -> FlowsOfJobs:
        """The flows, with only those of the links that they cross."""
        crossed = sorted({link for flow in flows for link in flow.links})
        number = {link: index for index, link in enumerate(crossed)}
        return cls(
            tuple(links[link] for link in crossed),
            [replace(flow, links=tuple(number[link] for link in flow.links)) for flow in flows],
            np.array(owners, dtype=np.int64),
        )


def rates_in_states(
    these: FlowsOfJobs, up: npt.NDArray[np.bool_], two_bottleneck_weight: float = 1.0
) -> Floats:
    """Rates, shape (states, flows), bytes per second; 0 for flows of jobs that are not Up.

    `up` has shape (states, jobs). `two_bottleneck_weight` as in `SendingFlows`.
    """
    sends = up[:, these.owners]
    state, flow = np.nonzero(sends)
    network = _side_by_side(these, state, flow, len(up))
    jobs, queued = _queues(these, network, flow)
    eta = np.tile([link.eta for link in these.links], len(up))
    network = replace(
        network, capacities=np.where(queued, network.capacities * eta, network.capacities)
    )
    sent = max_min(network)
    if two_bottleneck_weight != 1.0:
        held = _held_twice(network, sent, queued, jobs)
        if held.any():
            weights = np.where(held, network.weights * two_bottleneck_weight, network.weights)
            sent = max_min(replace(network, weights=weights))
    rates = np.zeros(sends.shape)
    rates[sends] = sent
    return rates


def _side_by_side(these: FlowsOfJobs, state: Ints, flow: Ints, states: int) -> Network:
    """Flow `flow[i]` in the copy `state[i]` of the links."""
    lengths = np.array([len(x.links) for x in these.flows], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    links = np.array([link for x in these.flows for link in x.links], dtype=np.int64)
    each = lengths[flow]
    first = np.concatenate(([0], np.cumsum(each)))
    entry = np.arange(first[-1]) + np.repeat(starts[flow] - first[:-1], each)
    return Network(
        np.tile([link.capacity_bytes_per_s for link in these.links], states),
        links[entry] + np.repeat(state * len(these.links), each),
        first,
        np.array([x.cap_bytes_per_s for x in these.flows])[flow],
        np.array([x.weight for x in these.flows])[flow],
    )


def _queues(
    these: FlowsOfJobs, network: Network, flow: Ints
) -> tuple[list[frozenset[int]], npt.NDArray[np.bool_]]:
    """Of each copy of a link: the jobs on it, and whether they wait for each other there."""
    from_where = sources(these.links, these.flows)
    owners = these.owners.tolist()
    count = len(these.links)
    jobs: list[set[int]] = [set() for _ in network.capacities]
    come: list[set[Source]] = [set() for _ in network.capacities]
    for copy, number in zip(
        network.links.tolist(), flow[network.flow_of_entry].tolist(), strict=True
    ):
        jobs[copy].add(owners[number])
        come[copy].add(from_where[number][copy % count])
    queued = [
        queue_for_each_other(these.links[copy % count], there, come[copy])
        for copy, there in enumerate(jobs)
    ]
    return [frozenset(there) for there in jobs], np.array(queued, dtype=bool)


def _held_twice(
    network: Network,
    sent: Floats,
    queued: npt.NDArray[np.bool_],
    jobs: Sequence[frozenset[int]],
) -> npt.NDArray[np.bool_]:
    """Which flows cross two full links with different competitors, below their caps."""
    carried = np.bincount(network.links, sent[network.flow_of_entry], len(network.capacities))
    full = queued & (carried >= FULL * network.capacities)
    entries = full[network.links]
    met: list[set[frozenset[int]]] = [set() for _ in range(network.flows)]
    for flow, link in zip(
        network.flow_of_entry[entries].tolist(), network.links[entries].tolist(), strict=True
    ):
        met[flow].add(jobs[link])
    several = np.array([len(x) > 1 for x in met], dtype=bool)
    return several & (sent < FULL * network.caps)
