"""Finding out the format of a file.

A file with a header is recognised by its columns, a file without one by its first line.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from artist.errors import TraceError
from artist.registry import UnknownNameError
from artist.trace.foreign.formats import FOREIGN_FORMATS, ForeignFormat, Layout
from artist.trace.native.file_bytes import is_json, is_parquet
from artist.trace.native.formats import OWN_FORMATS, OwnFormat, check_columns
from artist.trace.native.read_table import first_line, read_csv, read_lines, read_table
from artist.trace.native.table import Table

Format: TypeAlias = OwnFormat | ForeignFormat

FORMATS: dict[str, Format] = {format_.id: format_ for format_ in (*OWN_FORMATS, *FOREIGN_FORMATS)}


def format_named(name: str) -> Format:
    """A format by name.

    Raises:
        UnknownNameError: no format has this name.
    """
    if name not in FORMATS:
        raise UnknownNameError("trace format", name, FORMATS, f"one of {', '.join(FORMATS)}")
    return FORMATS[name]


def open_table(path: Path, data: bytes, forced: Format | None) -> tuple[Table, Format]:
    """The cells of a file and its format. If the user named the format, it is `forced`.

    Raises:
        TraceError: no format fits the file, or more than one does.
    """
    if not is_parquet(path, data) and not is_json(path, data):
        line = first_line(data)
        fitting = [
            (format_, layout)
            for format_ in ((forced,) if forced else FOREIGN_FORMATS)
            if isinstance(format_, ForeignFormat)
            for layout in format_.layouts
            if _fits(layout, line)
        ]
        if len(fitting) > 1:
            raise _ambiguous(path, [format_ for format_, _ in fitting])
        if fitting:
            (format_, layout) = fitting[0]
            return _headerless(path, data, layout), format_
        if isinstance(forced, ForeignFormat) and forced.layouts:
            _check_first_line(path, data, line, forced)
    table = read_table(path, data)
    return table, recognise(table, forced)


def recognise(table: Table, forced: Format | None) -> Format:
    """The format of a table, judged by its columns.

    Raises:
        TraceError: no format fits, or more than one does; a column is missing or unknown.
    """
    names = set(table.columns)
    candidates = (forced,) if forced else tuple(FORMATS.values())
    complete = [x for x in candidates if names.issuperset(x.required)]
    if not forced:
        complete = [x for x in complete if isinstance(x, OwnFormat) or not names & x.unless]
    if len(complete) > 1:
        raise _ambiguous(table.path, complete)
    # If no format is complete, the error below is about the one that comes closest. Of those
    # that come equally close, `max` takes the first, which is an own format.
    format_ = complete[0] if complete else max(candidates, key=lambda x: _share(x, names))
    if isinstance(format_, OwnFormat):
        format_.check(table)
    else:
        extra = [name for name in table.columns if name not in format_.required]
        check_columns(table, format_.id, format_.required, f"{table.path}: header", extra)
    return format_


def _share(format_: Format, names: set[str]) -> float:
    """Which share of its required columns a format finds among `names`."""
    return len(names.intersection(format_.required)) / len(format_.required)


def _fits(layout: Layout, line: str) -> bool:
    cells = line.split(layout.delimiter)
    return len(cells) == len(layout.columns) and layout.fits(cells)


def _headerless(path: Path, data: bytes, layout: Layout) -> Table:
    if layout.delimiter == ",":
        return read_csv(path, data, layout.columns)
    return read_lines(path, data, layout.columns, layout.delimiter)


def _check_first_line(path: Path, data: bytes, line: str, format_: ForeignFormat) -> None:
    """Refuse a file whose first `line` fits no layout of a headerless format and is no header."""
    if set(format_.required).issubset(name.strip() for name in line.split(",")):
        return
    delimiter = format_.layouts[0].delimiter
    widths = " or ".join(str(len(layout.columns)) for layout in format_.layouts)
    number = data[: data.find(line.encode())].count(b"\n") + 1 if line else 1
    raise TraceError(
        f"{path}:{number}: {len(line.split(delimiter))} fields, expected {widths} of the "
        f"{format_.id} format ({format_.source}); give such a file or another --from"
    )


def _ambiguous(path: Path, formats: list[Format]) -> TraceError:
    names = ", ".join(dict.fromkeys(format_.id for format_ in formats))
    return TraceError(f"{path}: it could be of several formats: {names}; choose one with --from")
