"""Writing the mapping file of a trace: `artist trace columns`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from artist.errors import ConfigError
from artist.io.documents import validate
from artist.io.reading import is_file
from artist.io.writing import write_whole
from artist.trace.detect import format_named
from artist.trace.foreign.fill_options import Rules
from artist.trace.native.mapping import TraceMapping, beside, mapping_for
from artist.trace.read import read_trace


def write_mapping(
    trace: Path, format_: str | None, given: Mapping[str, Any], *, overwrite: bool = False
) -> Path:
    """Write `FILE.columns.yaml` beside a trace, after the trace could be read with it.

    `given` are the entries of the mapping (`native.mapping.TraceMapping`); `columns` may name a
    mapping file, whose entries stay if they are not given anew. Returns the path.

    Raises:
        ConfigError: nothing given, a bad entry, or a file that is not to be overwritten.
        TraceError: the trace cannot be read so.
    """
    path = beside(trace)
    if is_file(path) and not overwrite:
        raise ConfigError(f"{path}: exists already; change it, or replace it with --overwrite")
    if isinstance(given.get("columns"), str):
        mapping, _ = mapping_for(trace, **given)
    else:
        mapping = validate(given, TraceMapping, "mapping of a trace")
    if format_ is not None:
        mapping = mapping.model_copy(update={"format": format_named(format_).id})
    elif not given:
        raise ConfigError(f"{path}: nothing to write; give --columns, --units, --models or --from")
    required = frozenset(given.get("models") or ())
    read_trace(trace, rules=Rules(required=required), mapping=mapping)
    entries = mapping.model_dump(exclude_defaults=True)
    write_whole(path, yaml.safe_dump(entries, sort_keys=False, allow_unicode=True))
    return path
