"""Writes the files that ASTRA-sim reads, rendered from a query by the templates in `templates`.

The same query gives the same bytes. What a program would ignore, misread or crash on is refused
here. `artist.astra.files.input_reader` reads the files back.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.astra.files import chakra_writer, dialects
from artist.astra.files.dialects import Dialect, check_keys
from artist.errors import ConfigError
from artist.estimates.query import LatencyQuery
from artist.estimates.recorded import dimension_type
from artist.io.shipped import resource
from artist.io.templates import environment

if TYPE_CHECKING:
    import jinja2

TRACE = "workload.{rank}.et"

_TRACE_NAME = re.compile(r"workload\.[0-9]+\.et")


@dataclass(frozen=True, slots=True)
class RenderedQuery:
    """A query on disk. `arguments` are the program's flags when it runs in `directory`."""

    directory: Path
    dialect: str
    npus: int
    arguments: tuple[str, ...]


def render(query: LatencyQuery, directory: Path, dialect: str = "astra2") -> RenderedQuery:
    """Write the files that one ASTRA-sim run of the query reads; make `directory` if missing.

    Raises:
        BackendSettingError: ASTRA-sim would crash, hang or answer nonsense.
        ConfigError: unknown dialect, broken template, or the folder cannot be written.
    """
    spoken = dialects.dialect(dialect)
    files = dict(_contents(query, spoken))  # all checks come before anything is written
    npus = query.gpus
    try:
        for folder in ("", *spoken.folders):
            (directory / folder).mkdir(parents=True, exist_ok=True)
        # Old traces of a query with more NPUs would be read as part of this one.
        for stale in directory.iterdir():
            if is_trace(stale.name):
                stale.unlink()
        for name, data in files.items():
            (directory / name).write_bytes(data)
        if spoken.traces:
            _give_to_all(directory, npus)
    except OSError as cause:
        raise cannot_be_written(directory, cause) from cause
    return RenderedQuery(directory, spoken.name, npus, spoken.arguments(query))


def cannot_be_written(directory: Path, cause: OSError) -> ConfigError:
    """The error of a folder in which a file cannot be written."""
    reason = cause.strerror or str(cause)
    return ConfigError(f"{directory}: cannot be written ({reason}); name another folder")


def is_trace(name: str) -> bool:
    """Whether a file of this name is an execution trace of some NPU."""
    return _TRACE_NAME.fullmatch(name) is not None


def check(query: LatencyQuery, dialect: str) -> None:
    """Refuse a query that `render` would refuse, and write nothing.

    Raises:
        BackendSettingError, ConfigError: as in `render`.
    """
    for _ in _contents(query, dialects.dialect(dialect)):
        pass


def _contents(query: LatencyQuery, spoken: Dialect) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of all distinct files. The trace of rank 0 is that of every NPU."""
    spoken.check(query)
    _check_names(query)
    for name, keys in spoken.files.items():
        text = _filled(f"{spoken.name}/{name}.j2", query)
        if keys:
            check_keys(name, text, keys)
        yield name, text.encode()
    if spoken.traces:
        yield TRACE.format(rank=0), chakra_writer.encode_workload(query.workload, query.passes)


def _check_names(query: LatencyQuery) -> None:
    for layer in query.workload.layers:
        if not layer.name or re.search(r"\s", layer.name):
            raise ConfigError(
                f"layer name {layer.name!r} of workload {query.workload.name!r} is empty or holds "
                "a space, which separates the columns of a text workload; rename the layer"
            )


def _give_to_all(directory: Path, npus: int) -> None:
    """Give every rank the trace of rank 0: as a link where the file system has links."""
    first = directory / TRACE.format(rank=0)
    for rank in range(1, npus):
        name = directory / TRACE.format(rank=rank)
        try:
            os.link(first, name)
        except OSError:
            shutil.copyfile(first, name)


def _filled(name: str, query: LatencyQuery) -> str:
    """A template of the `templates` folder with the query in it."""
    import jinja2

    try:
        return _template(name).render(
            workload=query.workload, dimensions=query.dimensions, system=query.system
        )
    except jinja2.TemplateError as cause:
        raise ConfigError(f"template {name} cannot be used: {cause}; correct it") from cause


@lru_cache(maxsize=16)
def _template(name: str) -> jinja2.Template:
    templates = environment(resource("templates"), autoescape=False, keep_trailing_newline=True)
    templates.filters.update(_FILTERS)
    return templates.get_template(name)


def _nanoseconds(microseconds: float) -> int:
    return round(1000 * microseconds)


_FILTERS: dict[str, Any] = {
    "whole": int,
    "nanoseconds": _nanoseconds,
    "kind": dimension_type,
    "links": dialects.links,
}
