"""Max-min fair shares of links among flows: water filling, for a whole cluster at once.

    rate of flow f = min(cap of f, weight of f x level of each link that it crosses)

The level of a link rises until the link is full or all its flows are held back elsewhere. This is
the bottleneck fairness that fluid simulators compute (Bertsekas and Gallager, Data Networks,
section 6.5.2). No flow can get more without taking from a flow whose rate per weight is smaller.

A round settles all flows that have found their bottleneck: their cap, or a link that is the
tightest one for each of its unsettled flows. Sums are taken in the order of the summands' values.
So neither the order nor the numbering of flows and links changes a bit of the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from artist.errors import InvariantError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """Flows on links. F flows cross L links.

    Any unit of rate will do, bytes per second say, as long as capacities and caps share it.
    """

    capacities: Floats
    """Shape (L,): what each link carries in its one direction, above 0."""
    links: Ints
    """The links of flow 0, then those of flow 1, and so on."""
    first: Ints
    """Shape (F + 1,): flow f crosses `links[first[f]:first[f + 1]]`. A link listed twice counts
    twice."""
    caps: Floats
    """Shape (F,): what each flow sends at most; infinity if only links limit it."""
    weights: Floats
    """Shape (F,): above 0. n connections that are alike are one flow of weight n."""

    @property
    def flows(self) -> int:
        """Number of flows."""
        return len(self.first) - 1

    @property
    def flow_of_entry(self) -> Ints:
        """The flow of each element of `links`."""
        return np.repeat(np.arange(self.flows), np.diff(self.first))


def max_min(network: Network) -> Floats:
    """The max-min fair rate of each flow, shape (F,), in the unit of the capacities.

    Raises:
        InvariantError: a number of the network is no number.
    """
    order = np.argsort(network.weights, kind="stable")
    weights, caps = network.weights[order], network.caps[order]
    lengths = np.diff(network.first)[order]
    rates = np.where(lengths == 0, caps, 0.0)
    filling = _Filling(network, order, lengths, weights, caps)
    while filling.unsettled:
        flows, settled = filling.round()
        rates[flows] = settled
    result = np.empty_like(rates)
    result[order] = rates
    return result


class _Filling:
    """Water filling under way. Flows are numbered by ascending weight.

    Sums of weights over the entries of a link therefore have one order, whatever the numbering.
    """

    def __init__(
        self, network: Network, order: Ints, lengths: Ints, weights: Floats, caps: Floats
    ) -> None:
        self._weights, self._caps = weights, caps
        self._capped_level = caps / weights
        self._left = network.capacities.copy()
        self._flows = np.flatnonzero(lengths)
        self._lengths = lengths[self._flows]
        starts = np.cumsum(lengths) - lengths
        shift = np.repeat(network.first[order] - starts, lengths)
        self._links = network.links[np.arange(len(shift)) + shift]

    @property
    def unsettled(self) -> int:
        """Number of flows without a rate."""
        return len(self._flows)

    def round(self) -> tuple[Ints, Floats]:
        """Settle every flow that has found its bottleneck: flows, rates."""
        own = np.repeat(np.arange(len(self._flows)), self._lengths)
        weights = self._weights[self._flows]
        levels = self._levels(weights[own])[self._links]
        starts = np.cumsum(self._lengths) - self._lengths
        on_links = np.minimum.reduceat(levels, starts)
        capped = self._capped_level[self._flows]
        least = np.minimum(on_links, capped)
        # A link is a bottleneck if none of its flows is held back more elsewhere.
        bottleneck = np.ones(len(self._left), dtype=bool)
        bottleneck[self._links[levels > least[own]]] = False
        full = np.logical_or.reduceat(bottleneck[self._links], starts)
        settled = full | (capped <= on_links)
        if not settled.any():
            raise InvariantError("max-min shares: a capacity, cap or weight is no number")
        rates = np.where(capped <= on_links, self._caps[self._flows], weights * least)
        self._take(self._links[settled[own]], rates[own][settled[own]])
        flows, rates = self._flows[settled], rates[settled]
        self._links = self._links[~settled[own]]
        self._lengths, self._flows = self._lengths[~settled], self._flows[~settled]
        return flows, rates

    def _levels(self, weights: Floats) -> Floats:
        """Each link's rate per weight if its unsettled flows share what is left."""
        totals = np.bincount(self._links, weights, len(self._left))
        levels: Floats = np.full(len(totals), np.inf)
        np.divide(self._left, totals, out=levels, where=totals > 0)
        np.maximum(levels, 0.0, out=levels)
        return levels

    def _take(self, links: Ints, rates: Floats) -> None:
        order = np.argsort(rates, kind="stable")
        self._left -= np.bincount(links[order], rates[order], len(self._left))
