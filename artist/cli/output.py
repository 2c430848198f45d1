"""Prints results on stdout, as a table for people or as JSON for programs; notes on stderr."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from typing import Any

from artist.errors import printable

_NARROWEST = 12  # characters of a column of sentences
_BETWEEN = 3  # characters that rich puts between two columns


class Format(StrEnum):
    """Value of `--format`."""

    TABLE = "table"
    JSON = "json"


def print_json(data: Any) -> None:
    """Print JSON on stdout."""
    sys.stdout.write(json.dumps(data, indent=2) + "\n")


def or_null(value: Any) -> Any:
    """A value for JSON, which has no NaN and no infinity."""
    return None if isinstance(value, float) and not isfinite(value) else value


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print CSV on stdout, lines ended by a line feed."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, header: bool = True
) -> None:
    """Print a table on stdout: for a terminal drawn to its width, else as plain lines.

    Plain lines are the title after `# `, the header if there is one, and the rows, cells separated
    by a tab. Nothing is padded or cut.
    """
    title, columns = printable(title), [*map(printable, columns)]
    texts = [[printable(_text(cell)) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw_table(title, columns, texts, header=header)
        return
    lines = ([columns] if header else []) + texts
    sys.stdout.write("".join(f"{line}\n" for line in [f"# {title}", *map(_plain_line, lines)]))


def _plain_line(cells: Sequence[str]) -> str:
    """The cells with tabs between them. A cell's own tabs and line ends become blanks."""
    return "\t".join(" ".join(cell.split()) for cell in cells).rstrip()


def _draw_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, header: bool
) -> None:
    """Draw a table with rich, as wide as the terminal."""

    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=escape(title),
        box=box.SIMPLE_HEAD if header else None,
        title_justify="left",
        pad_edge=False,
        show_header=header,
    )
    console = Console()
    for column, width in zip(columns, _widths(columns, rows, console.width), strict=True):
        table.add_column(escape(column), overflow="fold", width=width)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _widths(
    columns: Sequence[str], rows: Sequence[Sequence[str]], room: int
) -> Sequence[int | None]:
    """Fixed widths for columns of names and numbers, None for columns of sentences.

    Without them, rich breaks names to give sentences more room. All are None if the fixed widths
    do not fit into `room`.
    """
    widths: list[int | None] = []
    for index, column in enumerate(columns):
        cells = [row[index] for row in rows]
        title = max(map(len, column.split()), default=0)
        in_words = any(" " in cell for cell in cells)
        widths.append(None if in_words else max(title, *map(len, cells), 0))
    needed = sum(_NARROWEST if width is None else width for width in widths)
    return widths if needed + _BETWEEN * len(columns) <= room else [None] * len(columns)


def print_facts(title: str, facts: Mapping[str, Any], format_: Format = Format.TABLE) -> None:
    """Print facts: a table with one fact per line, or JSON (without the title)."""
    if format_ is Format.JSON:
        print_json(facts)
    else:
        print_table(title, ("", ""), list(facts.items()), header=False)


def print_heading(text: str) -> None:
    """Print a line on stdout, above a table; after `# ` where the table is plain lines."""
    mark = "" if sys.stdout.isatty() else "# "
    sys.stdout.write(f"{mark}{printable(text)}\n")


def print_text(text: str) -> None:
    """Print a sentence on stdout, below a table."""
    sys.stdout.write(f"{printable(text)}\n")


def note(text: str) -> None:
    """Print a hint on stderr."""
    sys.stderr.write(f"{printable(text)}\n")


def _text(cell: Any) -> str:
    if isinstance(cell, float):
        return f"{cell:,.3f}" if abs(cell) < 1000 else f"{cell:,.0f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    if isinstance(cell, Mapping):
        return ", ".join(f"{key}: {_text(value)}" for key, value in cell.items())
    if isinstance(cell, list):
        return ", ".join(map(_text, cell))
    return "" if cell is None else str(cell)
