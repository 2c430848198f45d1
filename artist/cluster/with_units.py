"""Settings that a user may also write with a unit: `bandwidth: 100Gbit/s`, `latency: 2us`.

A key whose name ends in a unit (`bandwidth_gib_per_s`) takes a number in that unit. The key without
the unit (`bandwidth`) means the same setting and takes a number with a unit. A document keeps only
the first spelling, so that both spellings of a setting are equal and have one digest.
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
    """A key that takes a unit."""

    units: Mapping[str, Fraction]
    own_unit: str
    """The key of the same setting that takes a plain number."""
    example: str
    units_text: str
    """The units, as messages name them."""


_RATES = "Gbit/s, Gbps, GB/s, GiB/s, MB/s"
QUANTITIES: Mapping[str, QuantityKey] = {
    "bandwidth": QuantityKey(BANDWIDTH_UNITS, "bandwidth_gib_per_s", "100Gbit/s", _RATES),
    "rate": QuantityKey(BANDWIDTH_UNITS, "rate_gib_per_s", "100Gbit/s", _RATES),
    "latency": QuantityKey(LATENCY_UNITS, "latency_ns", "2us", "ns, us, ms"),
    "storage": QuantityKey(SIZE_UNITS, "storage_bytes", "40PB", "GB, TB, PB, TiB"),
    "size": QuantityKey(SIZE_UNITS, "size_bytes", "565MB", "MB, GB, TB, GiB"),
}
"""The keys that take a unit, by name."""


def other_spelling(key: str) -> str | None:
    """The other key of the same setting; None if there is only one."""
    if key in QUANTITIES:
        return QUANTITIES[key].own_unit
    return next((name for name, known in QUANTITIES.items() if known.own_unit == key), None)


def without_other_spelling(options: Mapping[str, Any], option: str) -> Mapping[str, Any]:
    """The options without the other spelling of an option that is set now.

    If `bandwidth` of a level is set, an earlier `bandwidth_gib_per_s` of the level is dropped, and
    the other way round: the later setting counts.
    """
    level, _, key = option.partition(".")
    settings, other = options.get(level), other_spelling(key)
    if not isinstance(settings, Mapping) or other not in settings:
        return options
    return {**options, level: {key: old for key, old in settings.items() if key != other}}


def read_quantity(value: Any, key: str) -> float:
    """A text such as `100Gbit/s` as a number of the key's base unit (GiB/s, ns or bytes).

    Raises:
        ValueError: no number, no unit, an unknown unit, or a bandwidth of 0. The message says how
            to write the value.
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
"""Bounds of a link: 1 Mbit/s, 1 Pbit/s, and a delay of a second, in which light goes seven times
around the earth. A number beyond them must have a wrong unit."""


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
"""A yottabyte, a million exabytes. No data warehouse is so large: the number has a wrong unit."""

Bytes = Annotated[int, Field(ge=0, le=MOST_BYTES)]
"""An amount of data in bytes."""


def with_unit(key: str) -> Any:
    """The pydantic field of a key that takes a unit. Its value is None once a document is read."""
    known = QUANTITIES[key]
    description = f"instead of {known.own_unit}, with a unit: {known.example}"
    return Field(default=None, exclude=True, description=description)


class WithUnits(Document):
    """Base of documents with keys that take a unit (`TAKE_UNITS`), which are None after reading."""

    TAKE_UNITS: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _into_own_units(cls, data: Any) -> Any:
        """Replace each value with a unit by a number in the setting's own unit.

        A value that cannot be read stays, so that its own field reports it.
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
                plain[own_unit] = 1.0  # a placeholder: the document is refused anyway
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
