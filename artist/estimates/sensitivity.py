"""Where a network hurts: iteration times over a range of one setting of one level.

    fabric.network.latency=1us..100us           points of a range
    fabric.rack.bandwidth=25Gbit/s,100Gbit/s    these values

A **range** has as many points as are asked for, including both ends. They are evenly spaced: on a
logarithmic scale if the ends differ by more than a factor of ten, else on a linear one. The
fabric's own value is the **present** one. It is always asked too, and slowdowns are relative to it.
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
"""Numeric settings of a level that change estimates."""

MOST_POINTS = 1000
"""More points than a plot can show."""

HURTS = 1.1
"""The slowdown at which a network is said to hurt: ten percent."""

LITTLE = 0.02
"""A gain up to this share counts as next to nothing: the default of `--equivalence`."""

LOG_FACTOR = 10
"""Ends that differ by more than this factor get points on a logarithmic scale."""


@dataclass(frozen=True, slots=True)
class SettingSweep:
    """One setting of a level and the values to ask about, in the unit that the user wrote."""

    level: str
    key: str
    unit: str
    """Empty if the key names its own unit, or has none."""
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
    """Iteration time over the iteration time at the present value."""

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
    """One iteration on a number of GPUs. The total batch grows with the number."""

    gpus: int
    placement: str
    compute_s: float
    comm_s: float
    """Exposed communication."""
    useful: Useful | None
    base_gpus: int
    base_s: float
    """The iteration on `base_gpus` GPUs, to which the speedup is relative."""
    split: IterationSplit

    @property
    def iteration_s(self) -> float:
        """Compute time and exposed communication."""
        return self.compute_s + self.comm_s

    @property
    def speedup(self) -> float:
        """Samples per second over the samples per second on `base_gpus`."""
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
    """A number and its unit, checked like the level's own setting."""
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
    """The points of a range. Points between the ends are rounded to four digits, for readers."""
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
        ConfigError: the fabric has no such level, or a placement does not fit it.
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
    """Compute time and exposed communication in seconds, the latter with any constant share."""
    compute_s = estimate.compute_ns / 1e9
    return compute_s, compute_s * estimate.comm_ratio


class RememberingBackend:
    """A backend with a memo, and perhaps a store, before another backend.

    Many values of a setting may make the same query: a level outside a placement does not matter.
    """

    def __init__(self, backend: LatencyBackend, store: EstimateStore | None = None) -> None:
        self.source = backend.source
        self._backend = backend
        self._store = store
        self._memo: dict[tuple[LatencyQuery, bool], Estimate] = {}

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """The answer from the memo, the store or the backend."""
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
    """How `sweep_fabric` asks a backend; `complete` adds a calibration's constant to an answer."""
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
    """The parts of communication that would go without latency (`hops`) or `bytes` on a level.

    `shared` is what the other parts leave of 1. It is above 0 where hops and bytes overlap, so that
    this part goes only without both, and below 0 where either of them alone removes the same time.
    """

    hops: float
    bytes: float
    elsewhere: float
    """What stays without both: time on other levels, and a calibration's constant share."""

    @property
    def shared(self) -> float:
        """The part that goes only without both; below 0 if either alone removes the same time."""
        return 1 - self.hops - self.bytes - self.elsewhere

    def __str__(self) -> str:
        """Parts in whole percents that add up to 100."""
        hops, sent, elsewhere = (round(100 * max(0.0, part)) for part in self[:3])
        both = 100 - hops - sent - elsewhere
        if both < 0:  # removing either takes this time away, so both parts include it
            hops, sent = hops + both, sent + both
        words = [f"{hops} % is latency of hops", f"{sent} % bytes", f"{elsewhere} % other levels"]
        if both > 0:
            words.append(f"{both} % would go only with hops and bytes together")
        if both < 0:
            words.append(f"{-both} % would go with either hops or bytes alone")
        return f"{', '.join(words[:-1])} and {words[-1]}"


def level_fabrics(fabric: Fabric, level: str) -> tuple[Fabric, Fabric, Fabric]:
    """The fabric without latency on a level, with the most bandwidth there, and with both.

    Raises:
        ConfigError: the fabric has no such level.
    """
    fastest = LevelOptions(bandwidth_gib_per_s=FASTEST_GIB_PER_S)
    no_hops, no_bytes = (
        with_options(fabric, {level: x}) for x in (LevelOptions(latency_ns=0.0), fastest)
    )
    return no_hops, no_bytes, with_options(no_hops, {level: fastest})


def level_shares(fabric: Fabric, level: str, placement: str, ask: Ask) -> LevelShares:
    """What the communication of one placement waits for on a level.

    Raises:
        BackendError: a query has no answer.
    """
    fabrics = (fabric, *level_fabrics(fabric, level))
    now_s, *without_s = (_times(ask(changed, placement))[1] for changed in fabrics)
    return shares_of(now_s, without_s)


def shares_of(now: float, without: Sequence[float]) -> LevelShares:
    """The shares of a level, from communication `now` and `without`, on each of `level_fabrics`."""
    hops, sent, both = ((now - left) / now if now else 0.0 for left in without)
    return LevelShares(hops, sent, 1 - both)


def little_gained(sweep: SettingSweep, points: Sequence[Point]) -> list[str]:
    """The placements that communicate, and gain next to nothing from any bandwidth of the sweep."""
    if sweep.field != "bandwidth_gib_per_s":
        return []
    least = {point.placement: 1.0 for point in points if point.comm_s > 0}
    for point in points:
        least[point.placement] = min(least.get(point.placement, 0.0), point.slowdown)
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
