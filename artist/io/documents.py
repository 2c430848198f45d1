"""YAML files read into pydantic models, with errors that name file and line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import ErrorDetails

from artist.errors import ConfigError, did_you_mean, one_line, shortened
from artist.io.reading import read_text
from artist.io.yaml_text import parse_yaml
from artist.units import MAX_TIME_S

Model = TypeVar("Model", bound=BaseModel)


class Document(BaseModel):
    """Base of everything a user writes: immutable, and a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="after")
    def _times_fit_the_clock(self) -> Self:
        """A field named `..._s` holds seconds, which become ticks; one `..._gpu_s` does not."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            times = value if isinstance(value, tuple) else (value,)
            if name.endswith("_s") and not name.endswith("_gpu_s"):
                for time_s in times:
                    if isinstance(time_s, float) and time_s > MAX_TIME_S:
                        raise ValueError(
                            f"{name} is {time_s:g} s, expected at most {MAX_TIME_S:.0e}"
                        )
        return self


def load_yaml(path: Path, model: type[Model]) -> Model:
    """Read a YAML file and validate it.

    Raises:
        ConfigError: unreadable, not YAML (`parse_yaml`) or not valid; names file and line.
    """
    node, data = parse_yaml(read_text(path), str(path))
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1: expected a mapping of settings, got {type(data).__name__}")
    try:
        return model.model_validate(data)
    except ValidationError as cause:
        location = tuple(_worst(cause)["loc"])
        raise ConfigError(f"{path}:{_line(node, location)}: {explain(cause, model)}") from cause


def validate(data: Mapping[str, Any], model: type[Model], where: str) -> Model:
    """Validate settings that came from flags; `where` starts the message.

    Raises:
        ConfigError: a setting is unknown or out of range.
    """
    try:
        return model.model_validate(dict(data))
    except ValidationError as cause:
        raise ConfigError(f"{where}: {explain(cause, model)}") from cause


def explain(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem of a validation error, in one sentence."""
    first = _worst(error)
    key = one_line(".".join(str(part) for part in first["loc"]))
    if first["type"] == "extra_forbidden":
        known = _fields(model, first["loc"][:-1])
        return f"unknown setting '{key}': {did_you_mean(str(first['loc'][-1]), known)}"
    if first["type"] == "missing":
        return f"setting '{key}' is missing"
    message = one_line(first["msg"].removeprefix("Value error, "), most=300)
    subject = f"'{key}': " if key else ""
    return f"{subject}{message}, got {shortened(first['input'])}" if key else message


def _worst(error: ValidationError) -> ErrorDetails:
    """The problem to tell: a misspelt key before the key that is missing because of it."""
    found = error.errors()
    return next((one for one in found if one["type"] == "extra_forbidden"), found[0])


def _fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Fields of the model at a place inside a document; none where it is not one model."""
    kinds: list[Any] = [model]
    for part in location:
        inner = [kind.model_fields[part].annotation for kind in kinds if part in _names(kind)]
        kinds = inner if isinstance(part, str) and inner else kinds
        while any(get_args(kind) for kind in kinds):
            kinds = [arg for kind in kinds for arg in get_args(kind) or (kind,)]
    return [name for kind in kinds for name in _names(kind)]


def _names(kind: Any) -> list[str]:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return list(kind.model_fields) if is_model else []


def _line(node: yaml.Node | None, location: tuple[int | str, ...]) -> int:
    """Line of the innermost part of `location` that the document holds."""
    line = node.start_mark.line if node else 0
    for part in location:
        if isinstance(node, yaml.MappingNode):
            found = [pair for pair in node.value if pair[0].value == str(part)]
            if not found:
                break
            line = found[0][0].start_mark.line
            node = found[0][1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                break
            node = node.value[part]
            line = node.start_mark.line
    return int(line) + 1
