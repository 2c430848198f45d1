"""Calibrates a fabric: fits the latency and bandwidth of one level to a log's alpha and beta.

`fit_line.py` fits a line to the log. ASTRA-sim's collective over the log's GPUs must take the
fitted time alpha + beta S. It uses the base fabric's inner levels, and the level's topology,
algorithm, endpoint delays and chunks. Its time grows with the latency and falls with the
bandwidth. The smallest size determines the latency and the largest size the bandwidth; the two are
solved in turn until both match.

For one level and a ring of n GPUs, with k = 2 (n - 1) messages, h hops, p chunks and endpoint
delay e, these equations give both:

    alpha = p (k h latency + (k + 1) e)        beta = k / n / bandwidth + reductions
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from artist.calibrate.fit_line import CONFIDENCE, FittedValue, Line, fit_line
from artist.calibrate.nccl_log import OPERATIONS, NcclLog
from artist.cluster.fabric import Fabric, FabricOrigin
from artist.errors import ConfigError, TraceError, did_you_mean
from artist.estimates.query import LatencyBackend
from artist.estimates.query_from_text import on_placement
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

FASTEST_GIB_PER_S = 1e5
"""100 times what NVLink 5 gives a GPU. A log that needs more contradicts the base fabric."""

_SLOWEST_GIB_PER_S = 1e-6
_LONGEST_NS = 1e10


@dataclass(frozen=True, slots=True)
class FittedLevel:
    """The latency and bandwidth of a level fitted to a log, and the placement of the log."""

    level: str
    placement: str
    bandwidth_gib_per_s: FittedValue
    latency_ns: FittedValue
    smallest_error: float
    """Simulated time of the log's smallest size over the fitted time, minus one. It is above 0 if
    the inner levels and endpoint delays alone take longer than the log reports."""


@dataclass(frozen=True, slots=True)
class FabricFit:
    """A log, the line fitted to it, the level fitted to the line, and the new fabric."""

    log: NcclLog
    line: Line
    level: FittedLevel
    fabric: Fabric

    @property
    def facts(self) -> dict[str, float | int | str]:
        """The facts to print. Names end in the unit; `low` and `high` bound an interval."""
        alpha, beta = self.line.alpha_us, self.line.beta_us_per_byte
        bandwidth, latency = self.level.bandwidth_gib_per_s, self.level.latency_ns
        return {
            "fabric": self.fabric.name,
            "level": self.level.level,
            "operation": self.log.operation,
            "placement": self.level.placement,
            "alpha_us": alpha.value,
            "alpha_low_us": alpha.low,
            "alpha_high_us": alpha.high,
            "algbw_gb_per_s": 1e-3 / beta.value,
            "algbw_low_gb_per_s": 1e-3 / beta.high,
            # If the interval of the slope reaches below zero, the bandwidth has no upper bound.
            "algbw_high_gb_per_s": 1e-3 / beta.low if beta.low > 0 else float("inf"),
            "bandwidth_gib_per_s": bandwidth.value,
            "bandwidth_low_gib_per_s": bandwidth.low,
            "bandwidth_high_gib_per_s": bandwidth.high,
            "latency_ns": latency.value,
            "latency_low_ns": latency.low,
            "latency_high_ns": latency.high,
            "smallest_error": self.level.smallest_error,
            "confidence": CONFIDENCE,
            "points": self.line.points,
            "outliers": self.line.outliers,
            "spread": self.line.spread,
        }


def calibrate_fabric(
    log: NcclLog, name: str, base: Fabric, level: str, backend: LatencyBackend
) -> FabricFit:
    """Fit one level of the fabric `base` to a log. The new fabric is called `name`.

    Raises:
        ConfigError: the fabric has no such level.
        TraceError: the log was not measured on this level, or no line fits the log.
    """
    if level not in base.level_names:
        hint = did_you_mean(level, base.level_names)
        raise ConfigError(f"--level {level!r}: fabric {base.name!r} has no such level; {hint}")
    line = fit_line(log.points(), str(log.path))
    fitted = _fit_level(log, line, base, level, backend)
    changed = with_level(
        base,
        level,
        latency_ns=_six_digits(fitted.latency_ns.value),
        bandwidth_gib_per_s=_six_digits(fitted.bandwidth_gib_per_s.value),
        source=_source(log, line, fitted),
    )
    origin = FabricOrigin(
        kind="measured", of=f"{log.operation} on level {level}, the other levels as {base.name}"
    )
    # The base's calibration was fitted with the base's links, so it is dropped.
    named = changed.model_copy(update={"name": name, "origin": origin, "calibration": None})
    return FabricFit(log, line, fitted, named)


def _source(log: NcclLog, line: Line, fitted: FittedLevel) -> str:
    bandwidth, latency = fitted.bandwidth_gib_per_s, fitted.latency_ns
    return (
        f"{log.operation} of nccl-tests on {len(log.hosts)} host(s) of {log.hosts[0]} GPUs, "
        f"{log.path.name} ({log.digest}); alpha {line.alpha_us.value:.4g} us, "
        f"{1e-3 / line.beta_us_per_byte.value:.4g} GB/s; {100 * CONFIDENCE:.0f} % confidence: "
        f"bandwidth {bandwidth.low:.4g} to {bandwidth.high:.4g} GiB/s, latency "
        f"{latency.low:.4g} to {latency.high:.4g} ns"
    )


def _six_digits(value: float) -> float:
    return float(f"{value:.6g}")


def placement_of(log: NcclLog, fabric: Fabric, level: str) -> str:
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


def _fit_level(
    log: NcclLog, line: Line, fabric: Fabric, level: str, backend: LatencyBackend
) -> FittedLevel:
    """The latency and bandwidth of the level, with intervals from those of the line.

    Raises:
        TraceError: no bandwidth makes the level as fast as the log reports.
    """
    placement = placement_of(log, fabric, level)
    sizes = [row.size_bytes for row in log.rows]
    solver = _Solver(log, fabric, level, placement, backend)
    ends = (sizes[0], sizes[-1])

    def targets(alpha_us: float, beta: float) -> tuple[tuple[int, float], tuple[int, float]]:
        # The interval of alpha may reach below zero, but a time may not.
        first, last = ((size, 1000 * (max(alpha_us, 0.0) + beta * size)) for size in ends)
        return first, last

    alpha, beta = line.alpha_us, line.beta_us_per_byte
    latency, bandwidth = solver.solve(*targets(alpha.value, beta.value), str(log.path))
    # For an interval, the other number stays fixed. Messages take whole ns, so solving for both
    # would move the latency by up to 1 ns, which may be more than its interval.
    short, long = (
        solver.latency(targets(one, beta.value)[0], bandwidth) for one in (alpha.low, alpha.high)
    )
    # The interval of beta may reach below zero, but a bandwidth needs a slope above zero.
    fast, slow = (
        solver.bandwidth(targets(alpha.value, one)[1], latency)
        for one in (max(beta.low, beta.value * 1e-3), beta.high)
    )
    return FittedLevel(
        level,
        placement,
        # `bandwidth` was solved for the latency before the last step: it is off by about 1e-6.
        FittedValue(bandwidth, min(slow, bandwidth), max(fast, bandwidth)),
        FittedValue(latency, short, long),
        solver.time_ns(ends[0], latency, bandwidth) / (1000 * line.time_us(ends[0])) - 1,
    )


class _Solver:
    """Simulated time of the log's collective as a function of one level's numbers."""

    def __init__(
        self, log: NcclLog, fabric: Fabric, level: str, placement: str, backend: LatencyBackend
    ) -> None:
        self._fabric = fabric
        self._level = level
        self._placement = placement
        self._collective = OPERATIONS[log.operation]
        # The size of an all-gather is what a GPU has at the end in nccl-tests, and what it has at
        # the beginning in ASTRA-sim.
        self._parts = log.ranks if self._collective is Collective.ALL_GATHER else 1
        self._backend = backend

    def solve(
        self, small: tuple[int, float], large: tuple[int, float], where: str
    ) -> tuple[float, float]:
        """(latency in ns, bandwidth in GiB/s) that give the times of a small and a large size.

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
            bandwidth = self.bandwidth(large, latency)
            latency = self.latency(small, bandwidth)
            if all(
                math.isclose(old, new, rel_tol=1e-6, abs_tol=1e-3)
                for old, new in zip(before, (latency, bandwidth), strict=True)
            ):
                break
        return latency, bandwidth

    def bandwidth(self, target: tuple[int, float], latency: float) -> float:
        """The bandwidth that gives the target's time, by bisection in its logarithm."""

        def too_slow(logarithm: float) -> bool:
            return self.time_ns(target[0], latency, math.exp(logarithm)) > target[1]

        low, high = math.log(_SLOWEST_GIB_PER_S), math.log(FASTEST_GIB_PER_S)
        return math.exp(_bisect(too_slow, low, high))

    def latency(self, target: tuple[int, float], bandwidth: float) -> float:
        """The latency that gives the target's time; 0 if even that takes longer."""

        def too_fast(latency: float) -> bool:
            return self.time_ns(target[0], latency, bandwidth) < target[1]

        return _bisect(too_fast, 0.0, _LONGEST_NS) if too_fast(0.0) else 0.0

    def time_ns(self, size_bytes: int, latency: float, bandwidth: float) -> int:
        """Simulated time of the log's collective."""
        fabric = with_level(
            self._fabric, self._level, latency_ns=latency, bandwidth_gib_per_s=bandwidth
        )
        size = max(size_bytes // self._parts, fabric.system.preferred_dataset_splits)
        question = on_placement(_micro(self._collective, size), self._placement, fabric, {})
        return question.answer(self._backend).estimate.finish_ns


def with_level(fabric: Fabric, level: str, **changes: object) -> Fabric:
    """A copy of the fabric with changes to one level."""
    levels = tuple(
        one.model_copy(update=changes) if one.name == level else one for one in fabric.levels
    )
    return fabric.model_copy(update={"levels": levels})


def _bisect(low_side: Callable[[float], bool], low: float, high: float) -> float:
    """The point at which `low_side` changes from true to false."""
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
