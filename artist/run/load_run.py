"""Reads a run directory back as the `Result` that was written."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from artist.config import SIZES, Scenario
from artist.errors import ConfigError, TraceError
from artist.io.documents import validate
from artist.io.parquet import read_parquet
from artist.io.reading import is_file, read_json
from artist.results.result import LazyTables, Result
from artist.results.run_directory import MANIFEST, SUMMARY
from artist.results.table_files import unreadable
from artist.results.terms.columns import TABLES, Column, Table, typed
from artist.results.waiting.job_story import waited_by_cause

_SHOWN = ("policy", "trace", "gpus", "jobs_total", "makespan_s", "jct_mean_s")
"""Entries that a result shows, so that no summary may lack them."""

_FIRST = ("jobs", "placements", "timeline")
"""The tables that every run has."""


def load_run(folder: Path) -> Result:
    """The run in a directory of `artist sim --out` or `Result.save`.

    Tables are read only when they are needed.

    Raises:
        ConfigError: the folder is not a run directory.
        TraceError: the manifest or the summary is damaged.
    """
    if not is_file(folder / MANIFEST):
        raise ConfigError(
            f"{folder}: not a run directory (no {MANIFEST}); make one with artist sim --out DIR"
        )
    manifest, summary = read_json(folder / MANIFEST), read_json(folder / SUMMARY)
    if lacking := [name for name in _SHOWN if name not in summary]:
        raise TraceError(f"{folder / SUMMARY}: lacks {lacking[0]}; simulate the run again")
    trace, volatile = (_part(manifest, name) for name in ("trace", "volatile"))
    names = {"wait_causes", *(path.stem for path in folder.glob("*.parquet"))}
    ordered = [*_FIRST, *sorted(names.difference(_FIRST))]
    return Result(
        scenario=_scenario(_part(manifest, "scenario"), folder / MANIFEST),
        summary=summary,
        tables=LazyTables({}, {name: partial(_table, folder, name) for name in ordered}),
        inputs=_part(manifest, "inputs"),
        store_hits=volatile.get("estimates_from_disk_cache", 0),
        trace_filled=trace.get("filled", ()),
        trace_dropped=trace.get("dropped", {}),
        trace_mapped=trace.get("mapped", ()),
        waited_by_cause=partial(waited_by_cause, folder),
        world=str(manifest.get("world", "")),
    )


def _scenario(settings: Mapping[str, Any], path: Path) -> Scenario:
    """The scenario of a run, as far as this version knows its settings.

    A manifest has all settings. Settings with default values count as not given.
    """
    sizes = SIZES if settings.get("tree") is not None else ()
    defaults = Scenario().model_dump()
    known = {
        key: value
        for key, value in settings.items()
        if key in Scenario.model_fields and key not in sizes and value != defaults.get(key)
    }
    try:
        return validate(known, Scenario, f"{path}: scenario")
    except ConfigError as cause:
        raise TraceError(str(cause)) from cause


def _part(manifest: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = manifest.get(name, {})
    return part if isinstance(part, dict) else {}


def _table(folder: Path, name: str) -> Table:
    """The columns of a table, as arrays of numbers and lists of texts."""
    import pyarrow as pa

    path = folder / f"{name}.parquet"
    if name == "wait_causes" and not is_file(path):  # it had no rows
        return typed(name, {term.name: [] for term in TABLES[name]})
    try:
        table = read_parquet(path)
    except (OSError, ValueError, pa.ArrowException) as cause:
        raise unreadable(path, cause) from cause
    return {column: _values(table[column]) for column in table.column_names}


def _values(column: Any) -> Column:
    from pyarrow import types

    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind)
    values: Column = column.to_numpy() if is_number else column.to_pylist()
    return values
