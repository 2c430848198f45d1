"""YAML files read into pydantic models, with errors that name file and line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from artist.errors import ArtistError, ConfigError

Model = TypeVar("Model", bound=BaseModel)


class Document(BaseModel):
    """Base of everything a user writes: immutable, and a misspelt key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def read_text(path: Path, error: type[ArtistError] = ConfigError) -> str:
    """A text file's content.

    Raises:
        ArtistError: of class `error`, when it cannot be read as UTF-8 text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as cause:
        raise error(f"{path}: cannot be read ({cause.strerror or cause})") from cause
    except UnicodeDecodeError as cause:
        raise error(f"{path}: not UTF-8 text (byte {cause.start})") from cause


def load_yaml(path: Path, model: type[Model]) -> Model:
    """Read a YAML file and validate it.

    Raises:
        ConfigError: unreadable, not YAML or not valid; the message holds file and line.
    """
    text = read_text(path)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as cause:
        mark = getattr(cause, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(cause, "problem", None) or str(cause)
        raise ConfigError(f"{path}{line}: not valid YAML ({problem})") from cause
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1: expected a mapping of settings, got {type(data).__name__}")
    try:
        return model.model_validate(data)
    except ValidationError as cause:
        location = tuple(cause.errors()[0]["loc"])
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
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(key, model.model_fields, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else "known: " + ", ".join(model.model_fields)
        return f"unknown setting '{key}': {hint}"
    if first["type"] == "missing":
        return f"setting '{key}' is missing"
    message = first["msg"].removeprefix("Value error, ")
    subject = f"'{key}': " if key else ""
    return f"{subject}{message}, got {first['input']!r}" if key else message


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
