"""Rows of CSV files that users write, each with its place for messages."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from artist.errors import TraceError

Row = tuple[str, dict[str, str]]
"""Where the row is, `FILE:LINE`, and its cells by column."""


def csv_rows(path: Path, text: str, *, commented: bool = False) -> tuple[list[str], list[Row]]:
    """The columns and the rows of a CSV `text`, which was read from `path`.

    Names and cells are stripped of blanks. Rows without any text are left out. In a `commented`
    file, lines that begin with # may come before the columns.

    Raises:
        TraceError: the file is empty or not CSV, or the number of cells in a row is not that of the
            columns.
    """
    above = 0
    while commented and text.startswith("#"):
        text = text.partition("\n")[2]
        above += 1
    reader = csv.reader(io.StringIO(text), strict=True)
    rows: list[Row] = []
    try:
        first = next(reader, None)
        if first is None:
            raise TraceError(f"{path}: the file is empty; give one with data in it")
        columns = [name.strip() for name in first]
        for cells in reader:
            if not any(cells):
                continue
            where = f"{path}:{above + reader.line_num}"
            if len(cells) != len(columns):
                raise TraceError(
                    f"{where}: {len(cells)} cells, expected {len(columns)}; correct this row"
                )
            rows.append((where, dict(zip(columns, map(str.strip, cells), strict=True))))
    except csv.Error as cause:
        raise TraceError(
            f"{path}:{above + reader.line_num}: not CSV ({cause}); correct it"
        ) from cause
    return columns, rows
