"""All columns of a trace that have bad cells, so that they can be mended at once.

Readers stop at the first bad column. Here its cells are replaced by good ones, and the table is
read again, until nothing is left to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from artist.errors import ArtistError
from artist.trace.detect import format_named, open_table
from artist.trace.native.assemble import assemble_own
from artist.trace.native.formats import OwnFormat
from artist.trace.native.mapping import TraceMapping
from artist.trace.native.read_table import read_data
from artist.trace.native.table import CellError, Table


def bad_cells(path: Path, mapping: TraceMapping) -> Iterator[str]:
    """A sentence for each column that has bad cells: the first of them, and where others are.

    Of foreign formats, and of files that are no table of jobs, none.
    """
    data = read_data(path)
    forced = None if mapping.format is None else format_named(mapping.format)
    named: set[str] = set()
    while True:
        try:
            table, format_, _ = open_table(path, data, forced, mapping, "given")
        except CellError as bad:  # while times are converted
            if bad.column in named:
                return
            yield str(bad)
            named.add(bad.column)
            # Numbers need no conversion, and `_without` puts some there.
            mapping = mapping.model_copy(update={"units": {**mapping.units, bad.column: "s"}})
        except ArtistError:
            return
        else:
            break
    if isinstance(format_, OwnFormat):
        for name in named:
            table = _without(table, name, format_)
        yield from _while_reading(table, format_)


def _while_reading(table: Table, format_: OwnFormat) -> Iterator[str]:
    named: set[str] = set()
    while True:
        try:
            assemble_own(table, format_, "")
        except CellError as bad:
            if bad.column in named:
                return
            named.add(bad.column)
            yield str(bad)
            table = _without(table, bad.column, format_)
        except ArtistError:
            return  # about several columns: one of them is named above, or nothing is
        else:
            return


def _without(table: Table, column: str, format_: OwnFormat) -> Table:
    """The table without a column, or with good cells in it if the format requires it."""
    columns = {name: cells for name, cells in table.columns.items() if name != column}
    if column in format_.required:
        columns[column] = [*map(str, range(len(table)))] if column == "job_id" else [1] * len(table)
    return replace(table, columns=columns)
