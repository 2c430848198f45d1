"""The folder that `artist render` writes, and whether it may be replaced as a whole.

ASTRA-sim's text format cannot express FSDP, tensor, pipeline and expert parallelism. Their
iterations are composed of single collectives (`artist.estimates.divided.layer_wise`). ASTRA-sim
therefore gets one folder for each different collective:

    iteration.csv                 one row per node: what it waits for, its length or its folder
    01-allgather-all-524288/      the files of one run, as for any other query
    02-reducescatter-all-524288/

A folder may be replaced only if it holds what `artist render` writes and nothing else, such as
the results of a program.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from artist.astra.files.dialects import DIALECTS
from artist.astra.files.render import cannot_be_written, check, is_trace, render
from artist.estimates.divided.layer_wise import Request, collective_queries, nodes_of
from artist.estimates.query import LatencyQuery

ITERATION = "iteration.csv"
COLUMNS = ("node", "name", "after", "compute_us", "collective", "bytes", "gpus", "folder")


def render_collectives(query: LatencyQuery, directory: Path, dialect: str = "astra2") -> None:
    """Write a folder per different collective of an iteration, and `iteration.csv`.

    Raises:
        BackendSettingError: the GPUs do not divide as the model asks, or ASTRA-sim would crash,
            hang or answer nonsense.
        ConfigError: unknown dialect, or the folder cannot be written.
    """
    asked = collective_queries(query)
    folders = dict(zip(asked, _names(asked), strict=True))
    for part in asked.values():
        if part is not None:
            check(part, dialect)  # before anything is written
    for request, part in asked.items():
        if part is not None:
            render(part, directory / folders[request], dialect)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *_rows(query, folders)])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / ITERATION).write_text(text.getvalue(), encoding="utf-8")
    except OSError as cause:
        raise cannot_be_written(directory, cause) from cause


def _names(asked: dict[Request, LatencyQuery | None]) -> Iterator[str]:
    """A folder name per request; none for a collective over one GPU, which takes no time."""
    number = 0
    for (collective, size_bytes, scope), part in asked.items():
        number += part is not None
        name = f"{number:02}-{collective.value.lower()}-{scope.value}-{size_bytes}"
        yield "" if part is None else name


def _rows(query: LatencyQuery, folders: dict[Request, str]) -> Iterator[tuple[object, ...]]:
    for number, node in enumerate(nodes_of(query)):
        after = " ".join(map(str, node.after))
        if node.collective is None:
            yield number, node.name, after, int(node.compute_us), "", "", "", ""
        else:
            folder = folders[node.collective, node.comm_bytes, node.scope]
            size, scope = node.comm_bytes, node.scope.value
            yield number, node.name, after, "", node.collective.value, size, scope, folder


_FILES = {ITERATION, *(name for spoken in DIALECTS.values() for name in spoken.files)}
_EMPTY_FOLDERS = {name for spoken in DIALECTS.values() for name in spoken.folders}


def foreign(folder: Path) -> Path | None:
    """The first path in the folder that artist did not render; None if there is none.

    An empty folder is foreign itself, unless a program writes its results to it.
    """
    inside = sorted(folder.iterdir())
    if not inside:
        return None if folder.name in _EMPTY_FOLDERS else folder
    return next(filter(None, map(_foreign, inside)), None)


def _foreign(path: Path) -> Path | None:
    if path.is_dir() and not path.is_symlink():
        return foreign(path)
    plain = path.is_file() and not path.is_symlink()
    return None if plain and (path.name in _FILES or is_trace(path.name)) else path
