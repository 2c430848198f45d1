"""Finding out the format of a file.

A file with a header is recognised by its columns, a file without one by its first line.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypeAlias

from artist.errors import TraceError
from artist.registry import UnknownNameError
from artist.trace.foreign.formats import FOREIGN_FORMATS, ForeignFormat, Layout
from artist.trace.native.alike import alike
from artist.trace.native.formats import OWN_FORMATS, OwnFormat, check_columns
from artist.trace.native.mapping import (
    TraceMapping,
    check_units,
    in_seconds,
    own_format,
    renamed,
    without_others,
)
from artist.trace.native.read_table import (
    first_line,
    is_json,
    is_parquet,
    read_csv,
    read_lines,
    read_table,
)
from artist.trace.native.table import Table
from artist.trace.native.time_units import ARRIVALS
from artist.units import counted

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


def open_table(
    path: Path,
    data: bytes,
    forced: Format | None,
    mapping: TraceMapping | None,
    place: str,
) -> tuple[Table, Format, tuple[str, ...]]:
    """The cells of a file, its format, and the columns that a mapping left out.

    `forced` is the format that the user named. `place` says where the mapping is from.

    Raises:
        TraceError: no format fits the file, or more than one does.
        ConfigError: the mapping names a column that the format lacks.
    """
    if mapping is not None and mapping.columns:
        return _open_mapped(path, data, forced, mapping, place)
    table, format_ = _open_plain(path, data, forced)
    table, left_out = known_columns(table, format_)
    return in_seconds(table, mapping, place) if mapping else table, format_, left_out


def known_columns(table: Table, format_: Format) -> tuple[Table, tuple[str, ...]]:
    """The table without the columns that a closed format lacks, and the names of these."""
    if isinstance(format_, OwnFormat) and format_.closed:
        return without_others(table, format_)
    return table, ()


def _open_mapped(
    path: Path, data: bytes, forced: Format | None, mapping: TraceMapping, place: str
) -> tuple[Table, Format, tuple[str, ...]]:
    """A table whose columns have other names than in the format."""
    targets = () if forced is None else (*forced.required, *forced.optional)
    own = forced is None or forced.id in ("native", "simple")
    table = renamed(read_table(path, data), mapping, place, () if own else targets)
    format_ = forced or own_format(table)
    left_out: tuple[str, ...] = ()
    _check_required(table, format_)
    if isinstance(format_, OwnFormat):
        table, left_out = without_others(table, format_)
    converted = in_seconds(table, mapping, place)
    check_units(table, mapping, place, dates=isinstance(format_, OwnFormat))
    return converted, format_, left_out


def _open_plain(path: Path, data: bytes, forced: Format | None) -> tuple[Table, Format]:
    """A table whose columns have the names of a format, or that has no header."""
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
            format_, layout = fitting[0]
            return _headerless(path, data, layout), format_
        if isinstance(forced, ForeignFormat) and forced.layouts:
            _check_first_line(path, data, line, forced)
    table = read_table(path, data)
    return table, recognise(table, forced)


def recognise(table: Table, forced: Format | None) -> Format:
    """The format of a table, judged by its columns.

    Raises:
        TraceError: no format fits, or more than one does; a column is missing or misspelt.
    """
    names = set(table.columns)
    candidates = (forced,) if forced else tuple(FORMATS.values())
    complete = [x for x in candidates if names.issuperset(needed_columns(x, table.columns))]
    if not forced:
        complete = [x for x in complete if isinstance(x, OwnFormat) or not names & x.unless]
    if len(complete) > 1:
        raise _ambiguous(table.path, complete)
    format_ = complete[0] if complete else forced or closest(table.names)
    if not complete:
        _check_required(table, format_, named=forced is not None)
    if isinstance(format_, OwnFormat):
        format_.check_extra(table)
    return format_


def closest(names: Sequence[str]) -> Format:
    """The format that a file with these columns comes closest to, although it lacks some.

    It is a published format if the file has at least three quarters of its columns, and a larger
    share of them than of native's or simple's, since a few common words may be chance. Otherwise it
    is native or simple, whichever finds more of its columns, also under other usual names: first
    those that say how long jobs run, then those that say when they arrive. Ties go to simple.
    """

    def own_share(format_: OwnFormat) -> tuple[float, bool]:
        wanted = [name for name in format_.required if name in _WORK]
        missing = [name for name in wanted if name not in names]
        near = alike(missing, [name for name in names if name not in wanted], spelled=True)
        share = 1 - (len(missing) - _LOOKS_ALIKE * len(near)) / len(wanted)
        return share, any(name in names for name in ARRIVALS if name in format_.required)

    native, simple, sensetime = OWN_FORMATS
    published: tuple[Format, ...] = (sensetime, *FOREIGN_FORMATS)
    nearest = max(published, key=lambda x: _share(x, names))
    share = _share(nearest, names)
    known = share >= _PUBLISHED_FROM and all(share > _share(x, names) for x in (native, simple))
    return nearest if known else max(simple, native, key=own_share)


# The columns of native and simple that say how long jobs run.
_WORK = ("duration", "iterations", "compute_s")

# A column with a similar name counts as this part of a column with the right name.
_LOOKS_ALIKE = 0.5

# A published format can be meant if the file has at least this share of its columns.
_PUBLISHED_FROM = 0.75


def _share(format_: Format, names: Sequence[str]) -> float:
    """Which share of its required columns a format finds among `names`."""
    return len(set(names).intersection(format_.required)) / len(format_.required)


def _check_required(table: Table, format_: Format, *, named: bool = True) -> None:
    known = {*format_.required, *format_.optional}
    extra = [name for name in table.columns if name not in known]
    check_columns(table, format_.id, needed_columns(format_, table.columns), extra, named=named)


def needed_columns(format_: Format, names: Collection[str]) -> tuple[str, ...]:
    """The columns that a file with these columns must have to be of a format."""
    return format_.needed(names) if isinstance(format_, OwnFormat) else format_.required


def _fits(layout: Layout, line: str) -> bool:
    cells = line.split(layout.delimiter)
    return len(cells) == len(layout.columns) and layout.fits(cells)


def _headerless(path: Path, data: bytes, layout: Layout) -> Table:
    if layout.delimiter == ",":
        return read_csv(path, data, layout.columns)
    return read_lines(path, data, layout.columns, layout.delimiter)


def _check_first_line(path: Path, data: bytes, line: str, format_: ForeignFormat) -> None:
    """Refuse a file whose first `line` is neither a header nor a row of a headerless format."""
    if set(format_.required).issubset(name.strip() for name in line.split(",")):
        return
    delimiter = format_.layouts[0].delimiter
    widths = " or ".join(str(len(layout.columns)) for layout in format_.layouts)
    number = data[: data.find(line.encode())].count(b"\n") + 1 if line else 1
    fields = counted(len(line.split(delimiter)), "field")
    raise TraceError(
        f"{path}:{number}: {fields}, expected {widths} of the "
        f"{format_.id} format ({format_.source}); give such a file or another --from"
    )


def _ambiguous(path: Path, formats: list[Format]) -> TraceError:
    names = ", ".join(dict.fromkeys(format_.id for format_ in formats))
    return TraceError(
        f"{path}: it could be of several formats: {names}; choose one with --from, or in a mapping "
        f"file: artist trace columns {shlex.quote(str(path))} --from {formats[0].id}"
    )
