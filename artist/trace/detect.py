"""Which format a file is of: by the columns it has or, without a header, by its first line."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from artist.errors import TraceError, UnknownNameError
from artist.trace.foreign.formats import EXTERNALS, External, Layout
from artist.trace.native.cells import first_line, read_csv, read_lines, read_table
from artist.trace.native.file_bytes import is_json, is_parquet
from artist.trace.native.schemas import SCHEMAS, Schema, check_columns
from artist.trace.native.table import Table

Kind: TypeAlias = Schema | External

KINDS: dict[str, Kind] = {kind.id: kind for kind in (*SCHEMAS, *EXTERNALS)}


def named(format_: str) -> Kind:
    """A format by name.

    Raises:
        UnknownNameError: there is none of this name.
    """
    if format_ not in KINDS:
        raise UnknownNameError("trace format", format_, KINDS, f"one of {', '.join(KINDS)}")
    return KINDS[format_]


def open_table(path: Path, data: bytes, forced: Kind | None) -> tuple[Table, Kind]:
    """The cells of a file and the format they are in; `forced` settles the format.

    Raises:
        TraceError: no format explains the file, or more than one does.
    """
    if not is_parquet(path, data) and not is_json(path, data):
        line = first_line(data)
        fitting = [
            (kind, layout)
            for kind in ((forced,) if forced else EXTERNALS)
            if isinstance(kind, External)
            for layout in kind.layouts
            if _fits(layout, line)
        ]
        if len(fitting) > 1:
            raise _ambiguous(path, [kind for kind, _ in fitting])
        if fitting:
            (kind, layout) = fitting[0]
            return _headerless(path, data, layout), kind
        if isinstance(forced, External) and forced.layouts:
            _check_shape(path, data, line, forced)
    table = read_table(path, data)
    return table, recognise(table, forced)


def recognise(table: Table, forced: Kind | None) -> Kind:
    """The format whose columns a table has.

    Raises:
        TraceError: none or more than one; a column is missing or means nothing.
    """
    names = set(table.columns)
    kinds = (forced,) if forced else tuple(KINDS.values())
    complete = [kind for kind in kinds if names.issuperset(kind.required)]
    if not forced:
        complete = [x for x in complete if isinstance(x, Schema) or not names & x.unless]
    if len(complete) > 1:
        raise _ambiguous(table.path, complete)
    # The first of those that fit best: artist's own come first.
    kind = complete[0] if complete else max(kinds, key=lambda x: _share(x, names))
    if isinstance(kind, Schema):
        kind.check(table)
    else:
        extra = [name for name in table.columns if name not in kind.required]
        check_columns(table, kind.id, kind.required, f"{table.path}: header", extra)
    return kind


def _share(kind: Kind, names: set[str]) -> float:
    return len(names.intersection(kind.required)) / len(kind.required)


def _fits(layout: Layout, line: str) -> bool:
    cells = line.split(layout.delimiter)
    return len(cells) == len(layout.columns) and layout.fits(cells)


def _headerless(path: Path, data: bytes, layout: Layout) -> Table:
    if layout.delimiter == ",":
        return read_csv(path, data, layout.columns)
    return read_lines(path, data, layout.columns, layout.delimiter)


def _check_shape(path: Path, data: bytes, line: str, kind: External) -> None:
    """Refuse a file that has neither the shape nor the header of the format it is said to be."""
    if set(kind.required).issubset(name.strip() for name in line.split(",")):
        return
    delimiter = kind.layouts[0].delimiter
    widths = " or ".join(str(len(layout.columns)) for layout in kind.layouts)
    number = data[: data.find(line.encode())].count(b"\n") + 1 if line else 1
    raise TraceError(
        f"{path}:{number}: {len(line.split(delimiter))} fields, expected {widths} of the "
        f"{kind.id} format ({kind.source}); give such a file or another --from"
    )


def _ambiguous(path: Path, kinds: list[Kind]) -> TraceError:
    names = ", ".join(dict.fromkeys(kind.id for kind in kinds))
    return TraceError(f"{path}: it could be of several formats: {names}; choose one with --from")
