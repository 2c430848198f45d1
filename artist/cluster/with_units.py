"""Settings that a user may also write with a unit: `bandwidth: 100Gbit/s`, `latency: 2us`.

A key whose name ends in its unit (`bandwidth_gib_per_s`) takes a number of that unit. The key
without it (`bandwidth`) takes a number and a unit, and means the same setting. A document keeps
only the first kind, so that two spellings of one setting are equal and have one digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from artist.io.documents import Document, NonNegative, Positive
from artist.units import (
    BANDWIDTH_UNITS,
    LATENCY_UNITS,
    SIZE_UNITS,
    in_base_unit,
    latency_text,
    quantity,
)


class QuantityKey(NamedTuple):
    """What a key that takes a unit means."""

    units: Mapping[str, Fraction]
    own_unit: str
    """The key of the same setting that takes a plain number."""
    example: str
    units_text: str
    """The units that messages name."""


_RATES = "Gbit/s, Gbps, GB/s, GiB/s, MB/s"
QUANTITIES: Mapping[str, QuantityKey] = {
    "bandwidth": QuantityKey(BANDWIDTH_UNITS, "bandwidth_gib_per_s", "100Gbit/s", _RATES),
    "rate": QuantityKey(BANDWIDTH_UNITS, "rate_gib_per_s", "100Gbit/s", _RATES),
    "latency": QuantityKey(LATENCY_UNITS, "latency_ns", "2us", "ns, us, ms"),
    "storage": QuantityKey(SIZE_UNITS, "storage_bytes", "40PB", "GB, TB, PB, TiB"),
    "size": QuantityKey(SIZE_UNITS, "size_bytes", "565MB", "MB, GB, TB, GiB"),
}
"""By key that takes a unit."""


def other_spelling(key: str) -> str | None:
    """The other key of the same setting; None if there is only one."""
    if key in QUANTITIES:
        return QUANTITIES[key].own_unit
    return next((name for name, one in QUANTITIES.items() if one.own_unit == key), None)


def without_other_spelling(options: Mapping[str, Any], option: str) -> Mapping[str, Any]:
    """The options without `bandwidth_gib_per_s` of a level whose `bandwidth` is set now.

    The later of two settings counts, in whichever spelling the earlier one stands.
    """
    level, _, key = option.partition(".")
    settings, other = options.get(level), other_spelling(key)
    if not isinstance(settings, Mapping) or other not in settings:
        return options
    return {**options, level: {key: old for key, old in settings.items() if key != other}}


def read_quantity(value: Any, key: str) -> float:
    """A text such as `100Gbit/s` as a number of the key's base unit (GiB/s, ns or bytes).

    Raises:
        ValueError: no number, no unit or an unknown one; or a bandwidth of 0; says how to
            write it.
    """
    text = str(value) if isinstance(value, int | float) else value
    known = QUANTITIES[key]
    read = quantity(text, known.units) if isinstance(text, str) and value is not True else None
    if read is None:
        raise ValueError(
            f"expected a number with a unit ({known.units_text}), such as {key}={known.example}"
        )
    number, unit = read
    if not unit:
        raise ValueError(
            f"the number needs a unit ({known.units_text}), such as {key}={known.example}; "
            f"{known.own_unit} takes a number without one"
        )
    if not number and known.units is BANDWIDTH_UNITS:
        raise ValueError("expected more than 0")
    return in_base_unit(number, unit, known.units)


def _schema(key: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "examples": [QUANTITIES[key].example]})


def _reader(key: str) -> BeforeValidator:
    return BeforeValidator(partial(read_quantity, key=key))


Bandwidth = Annotated[float, _reader("bandwidth"), _schema("bandwidth")]
Rate = Annotated[float, _reader("rate"), _schema("rate")]
Latency = Annotated[float, _reader("latency"), _schema("latency")]
Storage = Annotated[float, _reader("storage"), _schema("storage")]

SLOWEST_GIB_PER_S = float(BANDWIDTH_UNITS["Mbit/s"])
FASTEST_GIB_PER_S = float(10**6 * BANDWIDTH_UNITS["Gbit/s"])
LONGEST_LATENCY_NS = 1e9
"""No link of a cluster is slower, faster or longer than these: a line of 1 Mbit/s, a petabit per
second, and a second of delay, in which light goes seven times around the earth. A unit is wrong."""


def _link_speed(gib_per_s: float) -> float:
    if not SLOWEST_GIB_PER_S <= gib_per_s <= FASTEST_GIB_PER_S:
        raise ValueError(
            f"a link of {gib_per_s:.4g} GiB/s; expected 1 Mbit/s to 1 Pbit/s "
            f"({SLOWEST_GIB_PER_S:.4g} to {FASTEST_GIB_PER_S:.4g} GiB/s), so check the unit"
        )
    return gib_per_s


def _link_latency(ns: float) -> float:
    if ns > LONGEST_LATENCY_NS:
        raise ValueError(f"a hop of {latency_text(ns)}; expected at most 1 s, so check the unit")
    return ns


LinkSpeed = Annotated[Positive, AfterValidator(_link_speed)]
"""Bandwidth of a link in GiB/s."""

LinkLatency = Annotated[NonNegative, AfterValidator(_link_latency)]
"""Latency of a hop in ns."""

MOST_BYTES = 10**24
"""A yottabyte, a million exabytes: no data warehouse is so large, so a unit is wrong."""

Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
"""An amount of data in bytes."""


def with_unit(key: str) -> Any:
    """The field of a key that takes a unit. It is None once the document is read."""
    known = QUANTITIES[key]
    description = f"instead of {known.own_unit}, with a unit: {known.example}"
    return Field(default=None, exclude=True, description=description)


class WithUnits(Document):
    """Base of documents with such keys. Of the fields that take a unit, all are None afterwards."""

    TAKE_UNITS: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _into_own_units(cls, data: Any) -> Any:
        """Replace what has a unit by a number in the setting's own unit.

        What cannot be read stays where it is, and its own field reports it.
        """
        if not isinstance(data, Mapping):
            return data
        plain = dict(data)
        for key in cls.TAKE_UNITS:
            if key not in plain:
                continue
            own_unit = QUANTITIES[key].own_unit
            if own_unit in plain:
                raise ValueError(f"{key} and {own_unit} are the same setting; give one of them")
            try:
                plain[own_unit] = read_quantity(plain[key], key)
            except ValueError:
                plain[own_unit] = 1.0  # of no use: the document is refused
            else:
                del plain[key]
        return plain


def either_spelling(schema: dict[str, Any]) -> None:
    """Let a JSON Schema require bandwidth and latency with a unit or in their own units."""
    required = schema.get("required", [])
    own_units = {key: QUANTITIES[key].own_unit for key in ("bandwidth", "latency")}
    asked = {key: own for key, own in own_units.items() if own in required}
    schema["required"] = [name for name in required if name not in asked.values()]
    schema["allOf"] = [
        {"oneOf": [{"required": [key]}, {"required": [own]}]} for key, own in asked.items()
    ]
