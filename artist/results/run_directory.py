"""Run directories: each is written whole, or not at all (`artist.io.writing`)."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pydantic

from artist import __version__
from artist.engine.compiled_core import core
from artist.io.digests import sha256
from artist.io.own_folders import OwnFolder, json_with
from artist.io.partials import remove_leftovers
from artist.io.reading import read_bytes, read_text
from artist.io.writing import check_folder, whole_folder
from artist.results.table_files import arrow_table

if TYPE_CHECKING:  # `result.py` imports this module to save a result
    from artist.results.result import Result

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
RUN_DIRECTORY = OwnFolder(
    "run directory",
    re.compile(r"manifest\.json|summary\.json|[a-z][a-z0-9_-]*\.parquet"),
    MANIFEST,
    json_with("scenario", "inputs", "versions", "volatile"),
)
"""Policies name tables of their own, so a table may have any name."""


def check_target(out: Path, *, overwrite: bool) -> None:
    """Refuse a target that may not or cannot be written, before the simulation begins.

    What a killed process left half-written next to it is removed first.

    Raises:
        ConfigError: the path holds something else, or a run that is not to be overwritten, or its
            parent is not writable.
    """
    with contextlib.suppress(OSError):
        remove_leftovers(out)
    check_folder(out, RUN_DIRECTORY.what, RUN_DIRECTORY.foreign, overwrite=overwrite)


def write_run(
    result: Result, out: Path, command: Sequence[str], *, overwrite: bool = False
) -> None:
    """Write the directory under a temporary name, then rename it into place.

    Raises:
        ConfigError: the path holds something else, or a run that is not to be overwritten, or the
            directory cannot be written.
    """
    check_folder(out, RUN_DIRECTORY.what, RUN_DIRECTORY.foreign, overwrite=overwrite)
    with whole_folder(out, overwrite=overwrite) as scratch:
        _write_files(result, scratch, command)


def _write_files(result: Result, folder: Path, command: Sequence[str]) -> None:
    """Write a run's tables, its summary, and a manifest with the digest of each file."""

    import pyarrow.parquet as pq

    for name, table in result.tables.items():
        if name == "wait_causes" and not table["job_id"]:
            continue  # `waits` has the same information
        pq.write_table(arrow_table(table), folder / f"{name}.parquet", compression="zstd")
    _write_json(result.summary, folder / SUMMARY)
    files = {file.name: _digest(file) for file in sorted(folder.iterdir())}
    manifest = {**_manifest(result, command), "files": files}
    _write_json(manifest, folder / MANIFEST)


def _digest(path: Path) -> str:
    """The digest of a file; of a summary without its wall time, which differs from run to run."""
    data = read_bytes(path)
    if path.name == SUMMARY:
        summary = {key: value for key, value in json.loads(data).items() if key != "wall_s"}
        data = json.dumps(summary).encode()
    return sha256(data)


def changed_file(folder: Path) -> Path | None:
    """The first file of a run that has changed since it was written; None if none has.

    The manifest itself has no digest, and runs of earlier versions of artist have none at all.

    Raises:
        ConfigError: the manifest cannot be read.
    """
    try:
        digests = json.loads(read_text(folder / MANIFEST)).get("files", {})
        for name, digest in digests.items():
            path = folder / Path(str(name)).name
            if not path.is_file() or _digest(path) != digest:
                return path
    except (AttributeError, ValueError, RecursionError):
        return folder / MANIFEST
    return None


def _write_json(data: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _manifest(result: Result, command: Sequence[str]) -> dict[str, Any]:
    """What is needed to repeat a run."""

    import pyarrow

    return {
        "scenario": result.scenario.model_dump(),
        "seed": result.scenario.seed,
        "inputs": dict(result.inputs),
        "world": result.world,
        "trace": {
            "mapped": list(result.trace_mapped),
            "filled": list(result.trace_filled),
            "dropped": dict(result.trace_dropped),
        },
        "versions": {
            "artist": __version__,
            "python": platform.python_version(),
            **{module.__name__: module.__version__ for module in (numpy, pyarrow, pydantic)},
        },
        "command": list(command),
        # Only these entries may differ between two runs of one scenario.
        "volatile": {
            "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "platform": f"{sys.platform} {platform.machine()}",
            "core": core(),
            "estimates_from_disk_cache": result.store_hits,
        },
    }
