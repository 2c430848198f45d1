"""Run directories: each is written whole, or not at all.

Single files are written by `artist.io.writing`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import pydantic

from artist import __version__
from artist.errors import ConfigError
from artist.results.arrow_tables import arrow_table
from artist.results.metrics import Table

if TYPE_CHECKING:  # `result.py` imports this module to save a result
    from artist.results.result import Result

MANIFEST = "manifest.json"

# The errors of a rename if another process put its run there first.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def check_target(out: Path) -> None:
    """Refuse a target that cannot be written, before the simulation begins.

    Raises:
        ConfigError: the path exists and is not an earlier run, or its parent is not writable.
    """
    if out.exists() and not (out.is_dir() and (_is_run(out) or not any(out.iterdir()))):
        raise ConfigError(
            f"--out {out}: exists and is not a run directory; choose another path or remove it"
        )
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {out}: {parent} is not a writable directory; choose another path")


def write_run(result: Result, out: Path, command: Sequence[str]) -> None:
    """Write the directory under a temporary name, then rename it into place.

    An earlier run of the same name is replaced.

    Raises:
        ConfigError: the directory cannot be written.
    """
    check_target(out)
    try:
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.absolute().parent))
        try:
            scratch.chmod(0o755)
            _write_files(result, scratch, command)
            _put_in_place(scratch, out)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    except OSError as cause:
        if cause.errno in _TAKEN:
            raise ConfigError(
                f"--out {out}: another run was written there meanwhile and stays; choose another "
                "path for this one"
            ) from cause
        raise ConfigError(f"--out {out}: cannot be written ({cause.strerror or cause})") from cause


def _write_files(result: Result, folder: Path, command: Sequence[str]) -> None:
    for name, table in result.tables.items():
        _write_table(table, folder / f"{name}.parquet")
    _write_json(result.summary, folder / "summary.json")
    _write_json(_manifest(result, command), folder / MANIFEST)


def _write_table(table: Table, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(arrow_table(table), path, compression="zstd")


def _write_json(data: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _manifest(result: Result, command: Sequence[str]) -> dict[str, Any]:
    import pyarrow

    return {
        "scenario": result.scenario.model_dump(),
        "seed": result.scenario.seed,
        "inputs": dict(result.inputs),
        "trace": {"filled": list(result.trace_filled), "dropped": dict(result.trace_dropped)},
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
            "estimates_from_disk_cache": result.store_hits,
        },
    }


def _put_in_place(scratch: Path, out: Path) -> None:
    """Rename. An earlier run stays until the new one is there."""
    if not out.exists():
        scratch.rename(out)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{out.name}-old-", dir=out.absolute().parent))
    try:
        out.rename(aside / "run")
        scratch.rename(out)
    except BaseException:  # interruptions as well
        if not out.exists():
            with contextlib.suppress(OSError):
                (aside / "run").rename(out)
        raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _is_run(out: Path) -> bool:
    return (out / MANIFEST).is_file()
