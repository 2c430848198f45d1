"""What an iteration takes at a share of the bandwidth of some levels: the same query, asked again.

A model of contention decides shares. What a share means is for the backend to say, because much of
the time that a dimension is busy is latency, and much of it hides behind computation:

    comm ratio at share phi   of the query with the bandwidth of these dimensions times phi
    busy ratio at share phi   the time in which any of these dimensions is busy, over compute time

Both are asked at geometrically spaced shares. Between them they are linear in 1 / phi, as the time
of bytes is. At share 1 it is the estimate itself.

What a data-parallel job does on a link of its own: Down, then Up, in every iteration.

Each worker has a NIC as fast as the link, and the workers form a ring. Latency is left out, as
circles leave it out. The backend says how long an iteration takes and when it sends:

    Up     the time in which anything is sent, gathered at the end of the iteration
    Down   the rest of the iteration
    demand bytes that a worker sends / Up

Real iterations send in several bursts. Runs gather them too (`artist.network.sharing`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from artist.cluster.fabric import Fabric
from artist.cluster.placement_shape import Shape, gpus_of
from artist.errors import BackendError, ConfigError
from artist.estimates.calibration import with_constant_share
from artist.estimates.latency_service import EstimateStore, answer
from artist.estimates.query import (
    Burst,
    Dimension,
    Estimate,
    LatencyBackend,
    LatencyQuery,
    SystemSettings,
    Topology,
)
from artist.estimates.shape_queries import as_sent, asked_dimensions, query, slowest
from artist.network.demand.traffic import Traffic
from artist.units import TICKS_PER_S
from artist.workload.layers import Workload, quantised

SHARES = tuple(2.0 ** (-power / 2) for power in range(9))
"""From 1 to 1/16 by the root of 2. Between two of them, the comm ratio of the catalogue's models
is interpolated within 1 % of an iteration (tests/network/test_curves.py)."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Iteration and busy time over the share, as multiples of the compute time.

    All three tuples are in the order of falling shares, which start at 1. Beyond the smallest
    share, the last two points are extended.
    """

    shares: tuple[float, ...]
    comm_ratios: tuple[float, ...]
    busy_ratios: tuple[float, ...]
    traffic: Traffic
    """Bytes do not depend on the share."""
    compute_s: float
    """Compute time of the query's iteration; times and bytes are of this one."""
    source: str
    spans: tuple[float, ...] = field(init=False, compare=False)
    """1 / shares: how much longer bytes take."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "spans", tuple([1.0 / x for x in self.shares]))

    def comm_ratio(self, share: float) -> float:
        """Exposed communication over compute time."""
        return self._at(self.comm_ratios, share)

    def busy_ratio(self, share: float) -> float:
        """Time in which a contended dimension is busy, over compute time."""
        return self._at(self.busy_ratios, share)

    def share_at(self, busy_ratio: float) -> float:
        """The share at which a contended dimension is busy for so long; 1 if it is even at 1."""
        if busy_ratio <= self.busy_ratios[0] or len(self.shares) == 1:
            return 1.0
        spans = self.spans
        right = min(bisect_left(self.busy_ratios, busy_ratio), len(spans) - 1)
        rise = self.busy_ratios[right] - self.busy_ratios[right - 1]
        if rise == 0:
            return self.shares[right]  # beyond the smallest share, where nothing becomes longer
        part = (busy_ratio - self.busy_ratios[right - 1]) / rise
        return 1.0 / (spans[right - 1] + part * (spans[right] - spans[right - 1]))

    def _at(self, values: tuple[float, ...], share: float) -> float:
        if not 0 < share <= 1:
            raise ConfigError(f"share {share}: a share of the bandwidth is above 0 and at most 1")
        if share == 1 or len(values) == 1:
            return values[0]
        spans, span = self.spans, 1.0 / share
        right = min(max(bisect_left(spans, span), 1), len(spans) - 1)
        part = (span - spans[right - 1]) / (spans[right] - spans[right - 1])
        return values[right - 1] + part * (values[right] - values[right - 1])


class GrowingCurve:
    """A curve whose points are asked when they are first needed.

    Most jobs lose little, so most curves need two or three of their points.
    """

    def __init__(
        self,
        every: tuple[float, ...],
        ask: Callable[[float], tuple[float, float]],
        traffic: Traffic,
        compute_s: float,
        source: str,
    ) -> None:
        self.every = every
        """The shares at which there are points."""
        self.traffic, self.compute_s, self.source = traffic, compute_s, source
        self._ask = ask
        self._negated = [-point for point in every]
        self._asked = Curve((), (), (), traffic, compute_s, source)

    def comm_ratio(self, share: float) -> float:
        """As `Curve.comm_ratio`."""
        return self._around(share).comm_ratio(share)

    def busy_ratio(self, share: float) -> float:
        """As `Curve.busy_ratio`."""
        return self._around(share).busy_ratio(share)

    def share_at(self, busy_ratio: float) -> float:
        """As `Curve.share_at`."""
        curve = self.up_to(1)
        while curve.busy_ratios[-1] < busy_ratio and len(curve.shares) < len(self.every):
            curve = self.up_to(len(curve.shares) + 1)
        return curve.share_at(busy_ratio)

    def _around(self, share: float) -> Curve:
        """The curve with the two points between which a share lies."""
        larger = bisect_left(self._negated, -share)
        return self.up_to(min(larger + 1, len(self.every)))

    def up_to(self, points: int) -> Curve:
        """The curve with its first points, at least so many of them."""
        known = self._asked
        if len(known.shares) >= points:
            return known
        for share in self.every[len(known.shares) : points]:
            comm, busy = self._ask(share)
            # Another neighbour of an uneven shape may be the slower one, and send for less long.
            longest = max((busy, *known.busy_ratios[-1:]))
            known = replace(
                known,
                shares=(*known.shares, share),
                comm_ratios=(*known.comm_ratios, comm),
                busy_ratios=(*known.busy_ratios, longest),
            )
        self._asked = known
        return known


class LevelTraffic(NamedTuple):
    """What a query's iteration sends at the whole bandwidth, and for how long."""

    traffic: Traffic
    busy_s: float
    """Seconds in which a contended dimension is busy."""
    compute_s: float


class Curves:
    """Curves on one fabric by one backend. Each is asked for once.

    The arguments are those of `artist.estimates.latency_service.LatencyService`.
    """

    def __init__(
        self,
        fabric: Fabric,
        backend: LatencyBackend,
        workload_of: Callable[[str], Workload],
        store: EstimateStore | None = None,
        constant_share_of: Callable[[str], float] | None = None,
        shares: tuple[float, ...] = SHARES,
    ) -> None:
        self._fabric, self._backend, self._store = fabric, backend, store
        self._workload_of, self._constant_share_of = workload_of, constant_share_of
        self._shares = shares
        self._workloads: dict[str, Workload] = {}
        self._known: dict[tuple[str, Shape, frozenset[str]], GrowingCurve] = {}
        self._sent: dict[tuple[str, Shape, frozenset[str]], LevelTraffic] = {}
        self._firsts: dict[tuple[str, Shape], tuple[tuple[Dimension, ...], Estimate]] = {}

    def curve(self, model: str, shape: Shape, contended: frozenset[str]) -> Curve:
        """The curve of a model on a shape, over the share of the levels named `contended`.

        Raises:
            BackendError: the backend cannot answer, or tells no traffic.
        """
        growing = self.growing(model, shape, contended)
        return growing.up_to(len(growing.every))

    def sent(self, model: str, shape: Shape, contended: frozenset[str]) -> LevelTraffic:
        """What `curve` says at the whole bandwidth. One query serves all `contended`.

        Raises:
            BackendError: the backend cannot answer, or tells no traffic.
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
            self._firsts[model, shape] = self._slowest(model, shape, frozenset(), 1.0)
        return self._firsts[model, shape]

    def _traffic(self, model: str, dims: tuple[Dimension, ...], first: Estimate) -> Traffic:
        if first.bytes_per_dimension is None or first.profile is None:
            raise BackendError(
                f"backend {first.source} tells no traffic, so nobody knows what jobs send on links "
                "that they share; take --backend analytical, or --contention none"
            )
        system = query(self._workload(model), dims, self._fabric).system
        return Traffic(dims, system.all_reduce, first.bytes_per_dimension)

    def growing(self, model: str, shape: Shape, contended: frozenset[str]) -> GrowingCurve:
        """The same curve, whose points are asked when they are first needed.

        Raises:
            BackendError: the backend cannot answer, or tells no traffic.
        """
        key = (model, shape, contended)
        if key not in self._known:
            self._known[key] = self._grown(*key)
        return self._known[key]

    def _grown(self, model: str, shape: Shape, contended: frozenset[str]) -> GrowingCurve:
        sent = self.sent(model, shape, contended)
        dims, first = self._first(model, shape)
        crossed = _crossed(dims, contended)
        sends = any(sent.traffic.bytes_per_dimension[index] for index in crossed)
        every = self._shares if sends else (1.0,)
        ask = partial(self._point, model, shape, contended)
        return GrowingCurve(every, ask, sent.traffic, sent.compute_s, first.source)

    def _point(
        self, model: str, shape: Shape, contended: frozenset[str], share: float
    ) -> tuple[float, float]:
        """Comm ratio and busy ratio at a share."""
        constant = 0.0
        if self._constant_share_of is not None and gpus_of(shape) > 1:
            constant = self._constant_share_of(model)
        alone = share == 1.0
        dims, point = (
            self._first(model, shape) if alone else self._slowest(model, shape, contended, share)
        )
        busy = busy_ns(point.profile or (), _crossed(dims, contended)) / point.compute_ns
        return with_constant_share(point, constant).comm_ratio, busy

    def _slowest(
        self, model: str, shape: Shape, contended: frozenset[str], share: float
    ) -> tuple[tuple[Dimension, ...], Estimate]:
        every = asked_dimensions(shape, self._fabric)
        answers = slowest(
            [partial(self._ask, model, at_share(dims, contended, share)) for dims in every]
        )
        return every[answers.index], answers.estimate

    def _ask(self, model: str, dims: tuple[Dimension, ...]) -> Estimate:
        asked = query(self._workload(model), dims, self._fabric)
        store = self._store if dims else None
        kept = store.get(asked, self._backend.source, profile=True) if store is not None else None
        if kept is not None:
            return kept
        estimate = answer(self._backend, asked, profile=True)
        if store is not None:
            store.put(asked, estimate, profile=True)
        return estimate

    def _workload(self, model: str) -> Workload:
        if model not in self._workloads:
            sent = as_sent(self._workload_of(model), self._fabric.system)
            self._workloads[model] = quantised(sent)
        return self._workloads[model]


def at_share(
    dims: tuple[Dimension, ...], contended: frozenset[str], share: float
) -> tuple[Dimension, ...]:
    """The dimensions with a share of the bandwidth on the contended levels."""
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
    """Nanoseconds in which any of these dimensions is busy. Bursts come by start."""
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
    """One iteration, alone. A job of one worker has no Up phase."""

    iteration_s: float
    up_s: float
    bytes_per_s: float


def down_and_up(
    workload: Workload, workers: int, link_gib_per_s: float, backend: LatencyBackend
) -> DownAndUp:
    """Down and Up of a workload on so many workers over a link.

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
