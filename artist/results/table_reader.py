"""Reads tables of run directories, and checks them against their schema (`terms/columns.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from artist.errors import TraceError, one_line
from artist.io.parquet import is_text, read_parquet
from artist.io.reading import is_file
from artist.results.terms.columns import TABLE_TERMS, TABLES, ColumnTerm


def read_table(folder: Path, name: str, reader: str, *, contended: bool = False) -> Any:
    """The columns of a run's table that `reader` reads, as a `pyarrow.Table`.

    None if the table is one that not every run has, and this run has none of its rows.

    Raises:
        TraceError: the file is missing or damaged, or a column is missing or has wrong values.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    optional = TABLE_TERMS[name].when != ""
    if not path.exists() and optional:
        return None
    if path.exists() and not is_file(path):  # on a pipe Arrow would wait forever
        raise TraceError(f"{path}: cannot be read (not a file)")
    try:
        file = pq.read_metadata(path.absolute())  # Arrow takes `a:b` for an address
        there = file.schema.to_arrow_schema().names
        wanted = _wanted(name, reader, there, contended=contended)
        missing = [term for term in wanted if term.name not in there]
        # A policy that kept no such rows writes a file without columns.
        if missing and optional and not file.num_rows:
            return None
        if missing:
            raise TraceError(f"{path}: lacks the column {missing[0].name!r}")
        table = read_parquet(path, [term.name for term in wanted])
    except (OSError, ValueError, pa.ArrowException) as cause:
        reason = one_line(str(cause).splitlines()[0]) if str(cause) else type(cause).__name__
        raise TraceError(
            f"{path}: cannot be read as Parquet ({reason}); simulate the run again"
        ) from cause
    for term in wanted:
        _check(table[term.name], term, path)
    if {"start_s", "end_s"} <= set(table.column_names):
        _check_order(table["start_s"].to_numpy(), table["end_s"].to_numpy(), path)
    return table


def _wanted(
    table: str, reader: str, there: list[str], *, contended: bool
) -> tuple[ColumnTerm, ...]:
    """The columns that must be there, and those of the others that are."""

    def is_wanted(term: ColumnTerm) -> bool:
        if term.when == "contention":
            return contended
        return not term.when or term.name in there

    return tuple(term for term in TABLES[table] if term.is_read_by(reader) and is_wanted(term))


def _check(column: Any, term: ColumnTerm, path: Path) -> None:
    """Refuse values of another type than the schema's, missing values and numbers too small."""
    if not len(column) or (term.may_miss and column.null_count == len(column)):
        return  # without any value a column has no type
    content = _CONTENTS.get(term.type, "numbers")
    is_number = content == "numbers"
    if not _FITS[content](column.type) or (column.null_count and not is_number):
        raise TraceError(f"{path}: the column {term.name!r} should hold {content}")
    if is_number:
        _check_numbers(column.to_numpy(), term, path)


def _check_numbers(values: Any, term: ColumnTerm, path: Path) -> None:
    if term.may_miss:
        values = values[~np.isnan(values)]
    bad = ~(np.abs(values) < _MOST)
    if bad.any():
        row = int(np.argmax(bad))
        raise TraceError(f"{path}: the column {term.name!r} has no number in row {row}")
    if not term.least:
        return
    bad = values <= 0 if term.least == ">0" else values < 0
    if bad.any():
        row = int(np.argmax(bad))
        expected = "more than 0" if term.least == ">0" else "0 or more"
        raise TraceError(
            f"{path}: the column {term.name!r} holds {values[row]:g} in row {row}, "
            f"expected {expected}"
        )


def _check_order(start_s: Any, end_s: Any, path: Path) -> None:
    bad = start_s > end_s
    if len(bad) and bad.any():
        row = int(np.argmax(bad))
        raise TraceError(
            f"{path}: row {row} starts at {start_s[row]:g} s, after its end at {end_s[row]:g} s"
        )


def _is_number(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind))


def _is_texts(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_list(kind) and is_text(kind.value_type))


_MOST = 2.0**63
"""Beyond all times and counts, and what fits a whole number."""

_CONTENTS = {"text": "text", "texts": "lists of text"}
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "numbers": _is_number,
    "text": is_text,
    "lists of text": _is_texts,
}
