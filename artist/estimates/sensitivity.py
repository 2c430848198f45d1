"""Where a network hurts: iteration times over a range of one setting of one level.

    fabric.network.latency=1us..100us           points of a range
    fabric.rack.bandwidth=25Gbit/s,100Gbit/s    these values

A **range** has as many points as are asked for, both ends among them, evenly on a logarithmic
scale if its ends differ by more than a factor of ten, else evenly. The value that the fabric has
is the **present** one. It is always asked too, and the slowdown is relative to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from artist.cluster.fabric import Fabric
from artist.cluster.fabric_options import LevelOptions, level_of, with_options
from artist.cluster.with_units import FASTEST_GIB_PER_S, QUANTITIES, other_spelling, read_quantity
from artist.errors import ConfigError, shortened
from artist.estimates.iteration_split import IterationSplit
from artist.estimates.latency_service import EstimateStore
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery
from artist.estimates.query_from_text import Question
from artist.io.documents import validate
from artist.units import from_base_unit, quantity
from artist.workload.goodput import Useful

NUMBERS = ("bandwidth", "bandwidth_gib_per_s", "latency", "latency_ns", "pair_share")
"""Settings of a level that are numbers, and decide an estimate."""

MOST_POINTS = 1000
"""More points than a plot can show."""

HURTS = 1.1
"""The slowdown at which a network is said to hurt: ten percent."""

LITTLE = 0.02
"""A gain within this share is next to nothing, as `--equivalence` has it by default."""

LOG_FACTOR = 10
"""Ends that differ by more than this factor get points on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class SettingSweep:
    """One setting of a level and the values to ask about, in the unit that the user wrote."""

    level: str
    key: str
    unit: str
    """Empty if the key has a unit of its own, or none."""
    values: tuple[float, ...]
    logarithmic: bool

    @property
    def setting(self) -> str:
        """The setting with its unit, for headings: `network latency, us`."""
        unit = self.unit or {"bandwidth_gib_per_s": "GiB/s", "latency_ns": "ns"}.get(self.key, "")
        with_unit = self.key if self.key in QUANTITIES else other_spelling(self.key)
        name = with_unit or self.key
        return f"{self.level} {name}" + (f", {unit}" if unit else "")

    @property
    def field(self) -> str:
        """The name of the level's field."""
        return QUANTITIES[self.key].own_unit if self.key in QUANTITIES else self.key

    def in_fields_unit(self, value: float) -> float:
        """A value of this sweep in the unit of the level's field."""
        return read_quantity(f"{value!r}{self.unit}", self.key) if self.unit else value

    def present(self, fabric: Fabric) -> float:
        """The fabric's own value, in the unit of this sweep.

        Raises:
            ConfigError: the fabric has no such level.
        """
        value: float = getattr(level_of(fabric, self.level), self.field)
        return from_base_unit(value, self.unit, QUANTITIES[self.key].units) if self.unit else value


@dataclass(frozen=True, slots=True)
class Point:
    """One placement at one value of the setting. Times are of one training iteration."""

    placement: str
    value: float
    """In the unit of the sweep."""
    present: bool
    """Whether the fabric has this value."""
    compute_s: float
    comm_s: float
    """Exposed communication."""
    slowdown: float
    """Iteration time over that at the present value."""

    @property
    def iteration_s(self) -> float:
        """Compute time and exposed communication."""
        return self.compute_s + self.comm_s

    @property
    def comm_ratio(self) -> float:
        """Exposed communication over compute time."""
        return self.comm_s / self.compute_s if self.compute_s else 0.0


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One iteration on some GPUs; their batch grows with them."""

    gpus: int
    placement: str
    compute_s: float
    comm_s: float
    """Exposed communication."""
    useful: Useful | None
    base_gpus: int
    base_s: float
    """The iteration on `base_gpus` GPUs that speedup is over."""
    split: IterationSplit

    @property
    def iteration_s(self) -> float:
        """Compute time and exposed communication."""
        return self.compute_s + self.comm_s

    @property
    def speedup(self) -> float:
        """Samples per second over those of the base."""
        return self.gpus / self.base_gpus * self.base_s / self.iteration_s


Ask = Callable[[Fabric, str], Estimate]
"""The estimate of a placement on a fabric."""


def parse_sweep(text: str, points: int) -> SettingSweep:
    """The sweep that `fabric.LEVEL.KEY=A..B` or `fabric.LEVEL.KEY=A,B,...` describes.

    Raises:
        ConfigError: another setting, a bad value, or too many or too few points.
    """
    name, equals, values = text.partition("=")
    group, _, rest = name.partition(".")
    level, _, key = rest.partition(".")
    if not (equals and group == "fabric" and level and key):
        raise ConfigError(
            f"--sweep {shortened(text)}: expected fabric.LEVEL.KEY=FROM..TO, such as "
            "fabric.network.latency=1us..100us"
        )
    if key not in NUMBERS:
        raise ConfigError(
            f"--sweep {name}: {shortened(key)} is not a number of a level; "
            f"known: {', '.join(NUMBERS)}"
        )
    if not 2 <= points <= MOST_POINTS:
        raise ConfigError(f"--points {points}: expected 2 to {MOST_POINTS}")
    low, dots, high = values.partition("..")
    texts = [low, high] if dots else values.split(",")
    read = [_value(name, key, text) for text in texts]
    unit = read[0][1]
    numbers = [_in_unit(number, own, unit, key) for number, own in read]
    logarithmic = min(numbers) > 0 and max(numbers) > LOG_FACTOR * min(numbers)
    if dots:
        if not numbers[0] < numbers[1]:
            raise ConfigError(f"--sweep {shortened(text)}: FROM must be less than TO")
        numbers = _points(numbers[0], numbers[1], points, logarithmic)
    return SettingSweep(level, key, unit, tuple(sorted(set(numbers))), logarithmic)


def _value(name: str, key: str, text: str) -> tuple[float, str]:
    """A number and its unit, checked as the level's own setting is."""
    where = f"--sweep {name}={shortened(text)[1:-1]}"
    validate({key: text}, LevelOptions, where)
    if key not in QUANTITIES:
        return float(text), ""
    known = QUANTITIES[key]
    read = quantity(text, known.units)
    if read is None:  # `validate` has refused such a text
        raise ConfigError(f"{where}: expected {known.units_text}, such as {known.example}")
    return float(read[0]), read[1]


def _in_unit(number: float, own: str, unit: str, key: str) -> float:
    if own == unit:
        return number
    return from_base_unit(read_quantity(f"{number!r}{own}", key), unit, QUANTITIES[key].units)


def _points(low: float, high: float, count: int, logarithmic: bool) -> list[float]:
    """The points of a range. Those between its ends have four digits, so that they can be read."""
    steps = [index / (count - 1) for index in range(1, count - 1)]
    if logarithmic:
        between = [low * (high / low) ** step for step in steps]
    else:
        between = [low + (high - low) * step for step in steps]
    return [low, *(float(f"{value:.4g}") for value in between), high]


def sweep_fabric(
    sweep: SettingSweep, fabric: Fabric, placements: Sequence[str], ask: Ask
) -> list[Point]:
    """The points of each placement, by value; the fabric's own value is one of them.

    Raises:
        ConfigError: the fabric has no such level, or a placement is none of that fabric.
        BackendError: a query has no answer.
    """
    present = sweep.present(fabric)
    values = sorted({*sweep.values, present})
    fabrics = [fabric if value == present else _changed(sweep, fabric, value) for value in values]
    points: list[Point] = []
    for placement in placements:
        now_s = sum(_times(ask(fabric, placement)))
        for value, changed in zip(values, fabrics, strict=True):
            compute_s, comm_s = _times(ask(changed, placement))
            slowdown = (compute_s + comm_s) / now_s if now_s else 1.0
            points.append(Point(placement, value, value == present, compute_s, comm_s, slowdown))
    return points


def _changed(sweep: SettingSweep, fabric: Fabric, value: float) -> Fabric:
    options = {sweep.field: sweep.in_fields_unit(value)}
    return with_options(
        fabric, {sweep.level: validate(options, LevelOptions, f"--sweep {sweep.setting}")}
    )


def _times(estimate: Estimate) -> tuple[float, float]:
    """Compute time and exposed communication in seconds, a constant share among the latter."""
    compute_s = estimate.compute_ns / 1e9
    return compute_s, compute_s * estimate.comm_ratio


class Remembered:
    """A backend that asks another one each query once, if neither its memo nor a store knows it.

    Many values of a setting may make one query: a level that a placement does not leave has no say.
    """

    def __init__(self, backend: LatencyBackend, store: EstimateStore | None = None) -> None:
        self.source = backend.source
        self._backend = backend
        self._store = store
        self._memo: dict[tuple[LatencyQuery, bool], Estimate] = {}

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """The backend's answer, whoever kept it."""
        key = (query, profile)
        if key not in self._memo:
            self._memo[key] = self._kept_or_asked(query, profile)
        return self._memo[key]

    def _kept_or_asked(self, query: LatencyQuery, profile: bool) -> Estimate:
        if self._store is None:
            return self._backend.estimate(query, profile=profile)
        kept = self._store.get(query, self.source, profile=profile)
        if kept is None:
            kept = self._backend.estimate(query, profile=profile)
            self._store.put(query, kept, profile=profile)
        return kept


def asking(
    question_on: Callable[[Fabric, str], Question],
    backend: LatencyBackend,
    complete: Callable[[LatencyQuery, Estimate], Estimate],
) -> Ask:
    """How `sweep_fabric` asks a backend; `complete` adds what a calibration adds to an answer."""
    return partial(_answer, question_on, backend, complete)


def _answer(
    question_on: Callable[[Fabric, str], Question],
    backend: LatencyBackend,
    complete: Callable[[LatencyQuery, Estimate], Estimate],
    fabric: Fabric,
    placement: str,
) -> Estimate:
    question = question_on(fabric, placement)
    answer = question.answer(backend)
    return complete(question.asked[answer.index].query, answer.estimate)


class LevelShares(NamedTuple):
    """What part of communication ends without hops or without bytes on a level, or with both.

    What is left of 1 is `shared`: above 0 where hops and bytes hide behind each other, so that it
    goes only if both go; below 0 where removing one of them removes some of the other.
    """

    hops: float
    bytes: float
    elsewhere: float
    """What stays without both: other levels, and a calibration's constant share."""

    @property
    def shared(self) -> float:
        """What ends only without both, or less than 0."""
        return 1 - self.hops - self.bytes - self.elsewhere

    def __str__(self) -> str:
        """Parts in whole percents that add up to 100."""
        hops, sent, elsewhere = (round(100 * max(0.0, one)) for one in self[:3])
        both = 100 - hops - sent - elsewhere
        if both < 0:  # each of the two gone takes it away, so both shares have it
            hops, sent = hops + both, sent + both
        words = [f"{hops} % is latency of hops", f"{sent} % bytes", f"{elsewhere} % other levels"]
        if both > 0:
            words.append(f"{both} % would go only with hops and bytes together")
        if both < 0:
            words.append(f"{-both} % would go with either hops or bytes alone")
        return f"{', '.join(words[:-1])} and {words[-1]}"


def level_fabrics(fabric: Fabric, level: str) -> tuple[Fabric, Fabric, Fabric]:
    """The fabric without latency on a level, with as much bandwidth as a link can have, and both.

    Raises:
        ConfigError: the fabric has no such level.
    """
    fastest = LevelOptions(bandwidth_gib_per_s=FASTEST_GIB_PER_S)
    no_hops, no_bytes = (
        with_options(fabric, {level: one}) for one in (LevelOptions(latency_ns=0.0), fastest)
    )
    return no_hops, no_bytes, with_options(no_hops, {level: fastest})


def level_shares(fabric: Fabric, level: str, placement: str, ask: Ask) -> LevelShares:
    """What the communication of one placement waits for on a level.

    Raises:
        BackendError: a query has no answer.
    """
    now_s, *without = (
        _times(ask(one, placement))[1] for one in (fabric, *level_fabrics(fabric, level))
    )
    return shares_of(now_s, without)


def shares_of(now: float, without: Sequence[float]) -> LevelShares:
    """The shares, if of the communication `now`, `without` is left on each of `level_fabrics`."""
    hops, sent, both = ((now - one) / now if now else 0.0 for one in without)
    return LevelShares(hops, sent, 1 - both)


def little_gained(sweep: SettingSweep, points: Sequence[Point]) -> list[str]:
    """The placements that communicate, and gain next to nothing from any bandwidth of the sweep."""
    if sweep.field != "bandwidth_gib_per_s":
        return []
    least = {one.placement: 1.0 for one in points if one.comm_s > 0}
    for one in points:
        least[one.placement] = min(least.get(one.placement, 0.0), one.slowdown)
    return [name for name, slowdown in least.items() if slowdown > 1 - LITTLE]


def where_it_hurts(sweep: SettingSweep, points: Sequence[Point]) -> list[str]:
    """One sentence per placement: what the setting does to its iterations over the range."""
    placements = dict.fromkeys(point.placement for point in points)
    return [
        f"{placement}: {_verdict(sweep, [p for p in points if p.placement == placement])}"
        for placement in placements
    ]


def _verdict(sweep: SettingSweep, points: Sequence[Point]) -> str:
    now = next(point for point in points if point.present)
    best = min(points, key=lambda point: point.slowdown)
    share = 100 * now.comm_s / now.iteration_s if now.iteration_s else 0.0
    begin = (
        f"at {_written(sweep, now.value)}, the present value, {share:.1f} % of an iteration is "
        "communication"
    )
    if len({point.iteration_s for point in points}) == 1:
        return f"{begin}; nothing in this range changes that"
    worse = [point for point in points if point.slowdown >= HURTS]
    hurt = min(worse, key=lambda point: abs(point.value - now.value), default=None)
    parts = [begin]
    if hurt is None:
        parts.append("no value in this range makes it 10 % slower")
    else:
        parts.append(f"at {_written(sweep, hurt.value)} it takes {hurt.slowdown:.2f} times as long")
    if best.slowdown < 1:
        gain = 100 * (1 - best.slowdown)
        parts.append(f"{_written(sweep, best.value)} saves {gain:.2g} %")
    return "; ".join(parts)


def _written(sweep: SettingSweep, value: float) -> str:
    unit = sweep.setting.partition(", ")[2]
    return f"{float(f'{value:.4g}'):.12g}" + (f" {unit}" if unit else "")
