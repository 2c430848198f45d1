"""Settings that users write: pydantic models, read from YAML or built from flags.

`Document` is the base of scenario, experiment, fabric, calibration and other settings. An error
names file and line, and for a misspelt key the nearest known one:

    mine.yaml:2: unknown setting 'polcy': did you mean 'policy'?
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Self, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from artist.errors import ConfigError, did_you_mean, one_line, shortened
from artist.io.reading import as_float, read_text
from artist.io.safe_yaml import parse_yaml
from artist.units import MAX_TIME_S, SHORTEST_LEASE_S, TIME_PATTERN, TIME_UNITS, seconds_of

Model = TypeVar("Model", bound=BaseModel)

# Types of fields that several documents have, with their bounds.
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]

Duration = Annotated[float, Field(ge=1e-9, allow_inf_nan=False)]
"""A length of time in seconds, at least one tick of the engine's clock."""

MOST_GPU_S = 1.6e16
"""The longest time (`units.MAX_TIME_S`) on the most GPUs of a cluster (4 million)."""

GpuSeconds = Annotated[float, Field(ge=1e-9, le=MOST_GPU_S, allow_inf_nan=False)]
"""Attained service, GPUs x seconds."""

Lease = Annotated[float, Field(ge=SHORTEST_LEASE_S, allow_inf_nan=False)]
"""How long a job keeps its GPUs, in seconds."""


def is_time(name: str) -> bool:
    """Whether a setting is a time in seconds, `..._s`: not GPU-seconds, and no rate."""
    return name.endswith("_s") and not name.endswith(("gpu_s", "per_s"))


def in_seconds(name: str, value: Any) -> Any:
    """A setting, in seconds if it is a time with its unit (`10min` is 600), or a list of times.

    Raises:
        ValueError: a time begins as a number, and its unit is not known.
    """
    if is_time(name) and isinstance(value, list | tuple):
        return [in_seconds(name, one) for one in value]
    if not is_time(name) or not isinstance(value, str):
        return value
    seconds = seconds_of(value)
    if seconds is None and not (value[:1].isdigit() and math.isnan(as_float(value))):
        return value  # a name, or a number that YAML reads as text, such as 1e3
    if seconds is None:
        raise ValueError(f"expected seconds, or a time such as 10min ({', '.join(TIME_UNITS)})")
    return int(seconds) if seconds.is_integer() else seconds


@cache
def _numbers(model: type[BaseModel]) -> frozenset[str]:
    """The fields of a model that hold a number or None, and have no reader of their own."""
    found = set()
    for name, field in model.model_fields.items():
        if any(isinstance(one, BeforeValidator) for one in field.metadata):
            continue
        union = get_origin(field.annotation) in (Union, UnionType)
        kinds = get_args(field.annotation) if union else (field.annotation,)
        plain = {get_args(kind)[0] if get_origin(kind) is Annotated else kind for kind in kinds}
        if plain <= {int, float, NoneType}:
            found.add(name)
    return frozenset(found)


_OF_NUMBERS = ("type", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_INNER = ("anyOf", "prefixItems")
_WITH_UNIT = {"type": "string", "pattern": TIME_PATTERN}


def _with_unit(schema: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a time in seconds, or of a list of times, extended by times with units."""
    if schema.get("type") in ("number", "integer"):
        number = {key: schema[key] for key in _OF_NUMBERS if key in schema}
        rest = {key: schema[key] for key in schema if key not in number}
        return {**rest, "anyOf": [number, _WITH_UNIT]}
    inner: dict[str, Any] = {
        key: [_with_unit(x) for x in schema[key]] for key in _INNER if key in schema
    }
    if isinstance(schema.get("items"), dict):
        inner["items"] = _with_unit(schema["items"])
    return {**schema, **inner}


class Document(BaseModel):
    """Base of everything that a user writes: immutable, and a misspelt key is an error."""

    # Deferred, so that a command builds the validators of only those models that it uses.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @field_validator("*", mode="before")
    @classmethod
    def _a_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `racks: true`, which Python takes as 1, and read `mtbf_s: 3d`."""
        name = info.field_name or ""
        if isinstance(value, bool) and name in _numbers(cls):
            raise PydanticCustomError("number_type", "not a number")
        return in_seconds(name, value)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Let editors accept a time with its unit where the schema has a number of seconds."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name in filter(is_time, properties):
            properties[name] = _with_unit(properties[name])
        return schema

    @model_validator(mode="after")
    def _times_fit_the_clock(self) -> Self:
        """Check every time in seconds against the largest time that the engine's clock holds."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            times = value if isinstance(value, tuple) else (value,)
            if is_time(name):
                for time_s in times:
                    if isinstance(time_s, float) and time_s > MAX_TIME_S:
                        raise ValueError(
                            f"{name} is {time_s:g} s, expected at most {MAX_TIME_S:.0e}"
                        )
        return self


def load_yaml(path: Path, model: type[Model]) -> Model:
    """Read a YAML file and validate it.

    Raises:
        ConfigError: unreadable, not YAML (see `parse_yaml`) or not valid; names file and line.
    """
    node, data = parse_yaml(read_text(path), str(path))
    if not isinstance(data, dict):
        is_now = "the file is empty" if data is None else f"it is {shortened(data)}"
        raise ConfigError(f"{path}:1: expected a mapping of settings (KEY: VALUE), but {is_now}")
    try:
        return model.model_validate(data)
    except ValidationError as cause:
        location = tuple(_worst(cause)["loc"])
        raise ConfigError(f"{path}:{_line(node, location)}: {explain(cause, model)}") from cause


def line_in(path: Path, location: tuple[int | str, ...]) -> int:
    """The line of a place in a YAML file that `load_yaml` has read, e.g. `("grid", "racks", 0)`.

    Raises:
        ConfigError: the file cannot be read any more.
    """
    node, _ = parse_yaml(read_text(path), str(path))
    return _line(node, location)


def validate(data: Mapping[str, Any], model: type[Model], where: str) -> Model:
    """Validate settings that come from flags. The message starts with `where`.

    Raises:
        ConfigError: a setting is unknown or out of range.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as cause:
        raise ConfigError(f"{where}: {explain(cause, model)}") from cause


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The most useful problem of a validation error, in one sentence."""
    problem = _worst(error)
    # pydantic adds the type chosen in a union to the location, such as `dict[str,str]`.
    parts = [str(x) for x in problem["loc"] if "[" not in str(x) and x != "constrained-float"]
    key = one_line(".".join(parts))
    if problem["type"] == "extra_forbidden":
        known = _fields(model, problem["loc"][:-1])
        return f"unknown setting '{key}': {did_you_mean(str(problem['loc'][-1]), known)}"
    if problem["type"] == "missing":
        example = _example(model, problem["loc"])
        return f"setting '{key}' is missing" + (f"; add {example}" if example else "")
    if problem["type"] in ("too_short", "too_long"):
        has = problem["ctx"]["actual_length"]
        if has == 0:
            return f"'{key}' is empty, expected at least {problem['ctx']['min_length']}"
        return f"'{key}' has {has}, expected {expected_in_words(problem)}"
    if problem["loc"] and (expected := expected_in_words(problem)):
        if expected == "a number" and is_time(str(problem["loc"][-1])):
            expected = "seconds, or a time such as 10min"
        return f"'{key}' is {shortened(problem['input'])}, expected {expected}{_as_list(problem)}"
    message = one_line(problem["msg"].removeprefix("Value error, "), most=300)
    if not key or isinstance(problem["input"], Mapping):  # the message names the bad entry
        return f"'{key}': {message}" if key else message
    return f"'{key}': {message}, got {shortened(problem['input'])}"


def _example(model: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """How to write a field of the outermost level, `version: 1`; empty if it has no example."""
    field = model.model_fields.get(str(location[0])) if len(location) == 1 else None
    return f"{location[0]}: {field.examples[0]}" if field and field.examples else ""


NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The pattern of names that also name files and folders."""

_EXPECTED = {
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "string_too_short": "at least {min_length} characters",
    "finite_number": "a finite number",
    "int_type": "an integer",
    "number_type": "a number",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping (KEY: VALUE)",
    "model_type": "a mapping (KEY: VALUE)",
    "literal_error": "{expected}",
}
"""By pydantic's type of error, what our messages say; others keep pydantic's sentence."""


def expected_in_words(problem: ErrorDetails) -> str:
    """What was expected instead of a bad value; empty if pydantic's sentence has to say it."""
    context = problem.get("ctx", {})
    if context.get("pattern") == NAME:
        return "letters, digits, '.', '_' and '-', starting with a letter or digit"
    return _EXPECTED.get(problem["type"], "").format(**context)


def _as_list(problem: ErrorDetails) -> str:
    """How to write a single value where a list was expected."""
    value = problem["input"]
    if problem["type"] not in ("list_type", "tuple_type") or not isinstance(
        value, str | int | float
    ):
        return ""
    plain = re.fullmatch(r"[\w.-]+", str(value), re.ASCII)
    return f": write [{value if plain else shortened(value)}]"


def _worst(error: ValidationError) -> ErrorDetails:
    """The problem to report: a misspelt key rather than the key that is missing because of it."""
    every = error.errors()
    # Where a number or a mapping may stand, the mapping's bad entry is reported, not the mapping.
    problems = [
        x for x in every if x["type"] != "float_type" or not isinstance(x["input"], Mapping)
    ]
    problems = problems or every
    return next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])


def _fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Names of the fields that a model has at a place inside a document.

    If a place allows several models (a union), these are the fields of all of them.
    """
    types: list[Any] = [model]
    for part in location:
        inner = [one.model_fields[part].annotation for one in types if part in _own_fields(one)]
        # A number is an index into a list. The list's type is unpacked below.
        types = inner if isinstance(part, str) and inner else types
        while any(get_args(one) for one in types):
            types = [arg for one in types for arg in get_args(one) or (one,)]
    return [name for one in types for name in _own_fields(one)]


def _own_fields(type_: Any) -> list[str]:
    """The field names of a model; none if the type is not a model."""
    is_model = isinstance(type_, type) and issubclass(type_, BaseModel)
    return list(type_.model_fields) if is_model else []


def _line(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """The line of the innermost part of `location` that the document holds."""
    line = node.start_mark.line if node else 0
    for part in location:
        if isinstance(node, yaml.MappingNode):
            pairs = [pair for pair in node.value if pair[0].value == str(part)]
            if not pairs:
                break
            key, node = pairs[0]
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                break
            node = node.value[part]
            line = node.start_mark.line
    return int(line) + 1
