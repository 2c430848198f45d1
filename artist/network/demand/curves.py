"""Curves: how long an iteration takes at a share of the bandwidth of some levels.

A model of contention decides shares. The backend says what a share means, because much of the time
that a dimension is busy is latency, and much of it overlaps with computation:

    comm ratio at share phi   of the query with the bandwidth of these dimensions times phi
    busy ratio at share phi   the time in which any of these dimensions is busy, over compute time

The backend is asked for both at geometrically spaced shares. Between these shares both are linear
in 1 / phi, as the time to send bytes is. At share 1 the curve is the estimate itself.

`down_and_up` gives the phases of a data-parallel job on a link of its own: Down, then Up, in every
iteration. Each worker has a NIC as fast as the link, and the workers form a ring. Latency is left
out, as CASSINI's circles leave it out. The backend says how long an iteration takes and when it
sends:

    Up     the time in which anything is sent, gathered at the end of the iteration
    Down   the rest of the iteration
    demand bytes that a worker sends / Up

Real iterations send in several bursts. Runs gather them too (`artist.network.co_located`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from artist.cluster.placement_shape import Shape
from artist.errors import BackendError, shortened
from artist.estimates.latency_service import Asker, answer
from artist.estimates.query import (
    Burst,
    Dimension,
    Estimate,
    LatencyBackend,
    LatencyQuery,
    SystemSettings,
    Topology,
)
from artist.estimates.shape_queries import counted, query, takes_fastest
from artist.network.demand.traffic import Traffic
from artist.units import TICKS_PER_S
from artist.workload.layers import Workload, quantised
from artist.workload.models import is_graph

SHARES = tuple(2.0 ** (-power / 2) for power in range(9))
"""From 1 to 1/16 by the root of 2. Between two of them, the comm ratio of the catalogue's models
is interpolated within 1 % of an iteration (tests/network/test_curves.py)."""


class Curve:
    """Exposed communication and busy time over the share, as multiples of the compute time.

    `shares` fall from 1. `ask` gives the comm ratio and the busy ratio at a share. It is called
    only when a point is first needed: most jobs lose little, so most curves need two or three
    points. Below the smallest share, the line through the last two points goes on. `traffic` and
    `compute_s` are those of the query's iteration; its bytes do not depend on the share.
    """

    def __init__(
        self,
        shares: tuple[float, ...],
        ask: Callable[[float], tuple[float, float]],
        traffic: Traffic,
        compute_s: float,
        source: str,
    ) -> None:
        self.shares = shares
        self.traffic, self.compute_s, self.source = traffic, compute_s, source
        self._ask = ask
        self._spans = [1.0 / share for share in shares]
        """How many times longer bytes take at each share."""
        self._comm_ratios: list[float] = []
        self._busy_ratios: list[float] = []
        """Both at the first shares, as many as were asked for."""

    def comm_ratio(self, share: float) -> float:
        """Exposed communication over compute time, at a share above 0 and at most 1."""
        return self._at(self._comm_ratios, share)

    def busy_ratio(self, share: float) -> float:
        """Time in which a contended dimension is busy, over compute time."""
        return self._at(self._busy_ratios, share)

    def share_at(self, busy_ratio: float) -> float:
        """The share at which a contended dimension is busy this long, at most 1."""
        self._ask_first(1)
        busy = self._busy_ratios
        while busy[-1] < busy_ratio and len(busy) < len(self.shares):
            self._ask_first(len(busy) + 1)
        if busy_ratio <= busy[0] or len(busy) == 1:
            return 1.0
        right = min(bisect_left(busy, busy_ratio), len(busy) - 1)
        rise = busy[right] - busy[right - 1]
        if rise == 0:
            return self.shares[right]  # no share makes the job busy for so long
        part = (busy_ratio - busy[right - 1]) / rise
        left_span, right_span = self._spans[right - 1 : right + 1]
        return 1.0 / (left_span + part * (right_span - left_span))

    def _at(self, values: list[float], share: float) -> float:
        if share == 1 or len(self.shares) == 1:
            self._ask_first(1)
            return values[0]
        spans, span = self._spans, 1.0 / share
        right = min(max(bisect_left(spans, span), 1), len(spans) - 1)
        self._ask_first(right + 1)
        part = (span - spans[right - 1]) / (spans[right] - spans[right - 1])
        return values[right - 1] + part * (values[right] - values[right - 1])

    def _ask_first(self, points: int) -> None:
        for share in self.shares[len(self._busy_ratios) : points]:
            comm, busy = self._ask(share)
            self._comm_ratios.append(comm)
            # An uneven shape may count by another query at a smaller share, which sends for less
            # long. `share_at` needs busy ratios that do not fall.
            self._busy_ratios.append(max((busy, *self._busy_ratios[-1:])))


class LevelTraffic(NamedTuple):
    """What a query's iteration sends at the whole bandwidth, and for how long."""

    traffic: Traffic
    busy_s: float
    """Seconds in which a contended dimension is busy."""
    compute_s: float


class Curves:
    """Curves on one fabric by one backend. Each curve is built once.

    An uneven shape has several queries, of which one counts. `known_query` gives that query, or
    None where it is not known yet.
    """

    def __init__(
        self,
        asker: Asker,
        known_query: Callable[[str, Shape], tuple[Dimension, ...] | None] | None = None,
        shares: tuple[float, ...] = SHARES,
    ) -> None:
        self._asker, self._known_query, self._shares = asker, known_query, shares
        self._known: dict[tuple[str, Shape, frozenset[str]], Curve] = {}
        self._sent: dict[tuple[str, Shape, frozenset[str]], LevelTraffic] = {}
        self._firsts: dict[tuple[str, Shape], tuple[tuple[Dimension, ...], Estimate]] = {}

    def sent(self, model: str, shape: Shape, contended: frozenset[str]) -> LevelTraffic:
        """What an iteration sends at the whole bandwidth. One query serves all `contended`.

        Raises:
            BackendError: the backend cannot answer, or reports no traffic.
        """
        key = (model, shape, contended)
        if key not in self._sent:
            dims, first = self._first(model, shape)
            traffic = self._traffic(model, dims, first)
            busy = busy_ns(first.profile or (), _crossed(dims, contended))
            self._sent[key] = LevelTraffic(
                traffic, busy / TICKS_PER_S, first.compute_ns / TICKS_PER_S
            )
        return self._sent[key]

    def _first(self, model: str, shape: Shape) -> tuple[tuple[Dimension, ...], Estimate]:
        if (model, shape) not in self._firsts:
            # Only the query that counts needs a profile.
            dims = self._known_query(model, shape) if self._known_query is not None else None
            self._firsts[model, shape] = (
                self._counted(model, shape, frozenset(), 1.0)
                if dims is None
                else (dims, self._asker.ask(model, dims, profile=True))
            )
        return self._firsts[model, shape]

    def _traffic(self, model: str, dims: tuple[Dimension, ...], first: Estimate) -> Traffic:
        if first.bytes_per_dimension is None or first.profile is None:
            if is_graph(model):
                raise BackendError(
                    f"what the traces of {shortened(model)} send on shared links is not known; "
                    "leave that job out, or --contention and --links"
                )
            raise BackendError(
                f"backend {first.source} reports no traffic, so what jobs send on shared links "
                "is not known; use --backend analytical, or --contention none"
            )
        system = query(self._asker.workload(model), dims, self._asker.fabric).system
        return Traffic(dims, system.all_reduce, first.bytes_per_dimension, first.axes)

    def curve(self, model: str, shape: Shape, contended: frozenset[str]) -> Curve:
        """The curve of a model on a shape, over the share of the levels named `contended`.

        Raises:
            BackendError: the backend cannot answer, or reports no traffic.
        """
        key = (model, shape, contended)
        if key not in self._known:
            sent = self.sent(*key)
            dims, first = self._first(model, shape)
            crossed = _crossed(dims, contended)
            sends = any(sent.traffic.bytes_per_dimension[index] for index in crossed)
            shares = self._shares if sends else (1.0,)
            ask = partial(self._point, *key)
            self._known[key] = Curve(shares, ask, sent.traffic, sent.compute_s, first.source)
        return self._known[key]

    def _point(
        self, model: str, shape: Shape, contended: frozenset[str], share: float
    ) -> tuple[float, float]:
        """Comm ratio and busy ratio at a share."""
        if share == 1.0:
            dims, point = self._first(model, shape)
        else:
            dims, point = self._counted(model, shape, contended, share)
        busy = busy_ns(point.profile or (), _crossed(dims, contended)) / point.compute_ns
        return self._asker.with_constant(model, shape, point).comm_ratio, busy

    def _counted(
        self, model: str, shape: Shape, contended: frozenset[str], share: float
    ) -> tuple[tuple[Dimension, ...], Estimate]:
        fastest = takes_fastest(self._asker.fabric.system)
        if fastest and share < 1:  # the job keeps the shape that it takes in isolation
            every = [self._first(model, shape)[0]]
        else:
            every = self._asker.dimensions(model, shape)
        asks = [
            partial(self._asker.ask, model, at_share(dims, contended, share), profile=True)
            for dims in every
        ]
        answers = counted(asks, fastest=fastest)
        return every[answers.index], answers.estimate


def at_share(
    dims: tuple[Dimension, ...], contended: frozenset[str], share: float
) -> tuple[Dimension, ...]:
    """The dimensions, those of contended levels with this share of their bandwidth."""
    if share == 1:
        return dims
    return tuple(
        replace(dim, bandwidth_gib_per_s=dim.bandwidth_gib_per_s * share)
        if dim.level in contended
        else dim
        for dim in dims
    )


def _crossed(dims: Sequence[Dimension], contended: frozenset[str]) -> set[int]:
    return {index for index, dim in enumerate(dims) if dim.level in contended}


def busy_ns(profile: Iterable[Burst], dimensions: Iterable[int]) -> int:
    """Nanoseconds in which any of these dimensions is busy. Bursts are in the order of starts."""
    wanted = set(dimensions)
    total = until_ns = 0
    for burst in profile:
        if burst.dimension in wanted:
            end_ns = burst.offset_ns + burst.duration_ns
            total += max(end_ns - max(burst.offset_ns, until_ns), 0)
            until_ns = max(until_ns, end_ns)
    return total


@dataclass(frozen=True, slots=True)
class DownAndUp:
    """One iteration in isolation; `bytes_per_s` while Up. A job of one worker has no Up phase."""

    iteration_s: float
    up_s: float
    bytes_per_s: float


def down_and_up(
    workload: Workload, workers: int, link_gib_per_s: float, backend: LatencyBackend
) -> DownAndUp:
    """Down and Up of a workload on a number of workers over a link.

    Raises:
        BackendError: the backend cannot answer.
    """
    network = (Dimension(Topology.SWITCH, workers, link_gib_per_s, 0.0),) if workers > 1 else ()
    rings = ("ring",) * len(network)
    system = SystemSettings(rings, rings, rings, rings)
    estimate = answer(backend, LatencyQuery(quantised(workload), network, system), profile=True)
    up_ns = busy_ns(estimate.profile or (), {0})
    sent_bytes = sum(estimate.bytes_per_dimension or ())
    rate = sent_bytes * TICKS_PER_S / up_ns if up_ns else 0.0
    return DownAndUp(estimate.finish_ns / TICKS_PER_S, up_ns / TICKS_PER_S, rate)
