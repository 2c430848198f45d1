"""Fits the latency and bandwidth of a fabric level to a log's alpha and beta.

ASTRA-sim's collective over the log's GPUs must take the fitted time alpha + beta S. It uses the
base fabric's inner levels, and the level's topology, algorithm, endpoint delays and chunks. Its
time grows with the latency and falls with the bandwidth. So the smallest size fixes the latency
and the largest size fixes the bandwidth; the two are solved in turns until both hold.

For one level and a ring of n GPUs, with k = 2 (n - 1) messages, h hops, p chunks and endpoint
delay e, these equations give both:

    alpha = p (k h latency + (k + 1) e)        beta = k / n / bandwidth + reductions
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from artist.calibrate.fit_line import FittedValue, Line
from artist.calibrate.nccl_log_reader import OPERATIONS, Log
from artist.cluster.fabric import Fabric, FabricLevel
from artist.errors import TraceError
from artist.estimates.query import LatencyBackend
from artist.estimates.query_from_text import on_placement
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

FASTEST_GIB_PER_S = 1e5
"""100 times what NVLink 5 gives a GPU. A log that needs more contradicts the base fabric."""

_SLOWEST_GIB_PER_S = 1e-6
_LONGEST_NS = 1e10


@dataclass(frozen=True, slots=True)
class FittedLevel:
    """The numbers of a level that follow from a log, and the placement that the log measured."""

    level: str
    placement: str
    bandwidth_gib_per_s: FittedValue
    latency_ns: FittedValue
    smallest_error: float
    """Simulated time of the log's smallest size over the fitted time, minus one. It is above 0 if
    the inner levels and endpoint delays alone take longer than the log says."""


def placement_of(log: Log, fabric: Fabric, level: str) -> str:
    """The signature of the log's GPUs, if its hosts lie in different units of that level.

    Example: two hosts with 8 GPUs are `8,8` on the level `rack` and `8/8` on `network`.

    Raises:
        TraceError: the log has one host but the level needs several, or the reverse; or it has
            more GPUs than a socket.
    """
    names = fabric.level_names
    machine, index = names.index("machine"), names.index(level)
    each = str(log.hosts[0])
    many = len(log.hosts) > 1
    if many != (index > machine):
        wanted = "one host" if index <= machine else "two or more hosts"
        raise TraceError(
            f"{log.path}:1: {len(log.hosts)} host(s) with {each} GPUs each, but level {level!r} is "
            f"measured on {wanted}; choose the level that the log spans"
        )
    socket = fabric.gpus_per_socket
    if index < machine and socket and log.hosts[0] > socket:
        raise TraceError(
            f"{log.path}:1: {each} GPUs, but a {level} has {socket}; measure within one"
        )
    if index <= machine:
        return each
    return ("," if index == machine + 1 else "/" * (index - machine - 1)).join(
        [each] * len(log.hosts)
    )


def fit_level(
    log: Log, line: Line, fabric: Fabric, level: str, backend: LatencyBackend
) -> FittedLevel:
    """The numbers of the level, with the intervals that follow from those of the line.

    Raises:
        TraceError: no bandwidth makes the level as fast as the log says.
    """
    placement = placement_of(log, fabric, level)
    sizes = [row.size_bytes for row in log.rows]
    solver = _Solver(log, fabric, level, placement, backend)
    ends = (sizes[0], sizes[-1])

    def solved(alpha_us: float, beta: float) -> tuple[float, float]:
        # The interval of alpha may reach below zero, but a time may not.
        targets = [(size, 1000 * (max(alpha_us, 0.0) + beta * size)) for size in ends]
        return solver.solve(targets[0], targets[1], str(log.path))

    alpha, beta = line.alpha_us, line.beta_us_per_byte
    latency, bandwidth = solved(alpha.value, beta.value)
    # The interval of beta may reach below zero, but a bandwidth needs a slope above zero.
    fast = solved(alpha.low, max(beta.low, beta.value * 1e-3))
    slow = solved(alpha.high, beta.high)
    return FittedLevel(
        level,
        placement,
        FittedValue(bandwidth, slow[1], fast[1]),
        FittedValue(latency, fast[0], slow[0]),
        solver.time_ns(ends[0], latency, bandwidth) / (1000 * line.time_us(ends[0])) - 1,
    )


class _Solver:
    """Simulated time of the log's collective as a function of one level's numbers."""

    def __init__(
        self, log: Log, fabric: Fabric, level: str, placement: str, backend: LatencyBackend
    ) -> None:
        self._fabric = fabric
        self._level = level
        self._placement = placement
        self._collective = OPERATIONS[log.operation]
        # The size of an all-gather is what a GPU ends with in nccl-tests. In ASTRA-sim it is what a
        # GPU begins with.
        self._parts = log.ranks if self._collective is Collective.ALL_GATHER else 1
        self._backend = backend

    def solve(
        self, small: tuple[int, float], large: tuple[int, float], where: str
    ) -> tuple[float, float]:
        """(latency in ns, bandwidth in GiB/s) that take the times of a small and a large size.

        `small` and `large` are (bytes, nanoseconds).

        Raises:
            TraceError: no bandwidth is fast enough for `large`.
        """
        latency, bandwidth = 0.0, FASTEST_GIB_PER_S
        if self.time_ns(large[0], latency, bandwidth) > large[1]:
            raise TraceError(
                f"{where}:1: {large[0]} bytes took {large[1] / 1000:.1f} us, less than ASTRA-sim's "
                "reductions and the base fabric's inner levels alone; correct --base, its system "
                "settings or --level"
            )
        for _ in range(50):
            before = (latency, bandwidth)
            bandwidth = self._bandwidth(large, latency)
            latency = self._latency(small, bandwidth)
            if all(
                math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-3)
                for old, new in zip(before, (latency, bandwidth), strict=True)
            ):
                break
        return latency, bandwidth

    def _bandwidth(self, target: tuple[int, float], latency: float) -> float:
        """The bandwidth that takes the target's time, by bisection in its logarithm."""

        def too_slow(logarithm: float) -> bool:
            return self.time_ns(target[0], latency, math.exp(logarithm)) > target[1]

        low, high = math.log(_SLOWEST_GIB_PER_S), math.log(FASTEST_GIB_PER_S)
        return math.exp(_bisect(too_slow, low, high))

    def _latency(self, target: tuple[int, float], bandwidth: float) -> float:
        """The latency that takes the target's time; 0 if even that takes longer."""

        def too_fast(latency: float) -> bool:
            return self.time_ns(target[0], latency, bandwidth) < target[1]

        return _bisect(too_fast, 0.0, _LONGEST_NS) if too_fast(0.0) else 0.0

    def time_ns(self, size_bytes: int, latency: float, bandwidth: float) -> int:
        """Simulated time of the log's collective."""
        fabric = with_level(self._fabric, self._level, latency, bandwidth)
        size = max(size_bytes // self._parts, fabric.system.preferred_dataset_splits)
        question = on_placement(_micro(self._collective, size), self._placement, fabric, {})
        return question.answer(self._backend).estimate.finish_ns


def with_level(fabric: Fabric, level: str, latency_ns: float, bandwidth: float) -> Fabric:
    """A copy of the fabric with another latency and bandwidth of one level."""

    def changed(old: FabricLevel) -> FabricLevel:
        if old.name != level:
            return old
        return old.model_copy(update={"latency_ns": latency_ns, "bandwidth_gib_per_s": bandwidth})

    return fabric.model_copy(update={"levels": tuple(map(changed, fabric.levels))})


def _bisect(low_side: Callable[[float], bool], low: float, high: float) -> float:
    """The point where `low_side` changes from true to false."""
    for _ in range(200):
        middle = (low + high) / 2
        if high - low <= 1e-8 * max(1.0, abs(middle)):
            break
        if low_side(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _micro(collective: Collective, size_bytes: int) -> Workload:
    phase = Phase(0.0, collective, size_bytes)
    return Workload("nccl-tests", Parallelism.MICRO, (Layer("one", Phase(), Phase(), phase),))
