"""Tables in pages of the documentation: made by a command, checked by a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from artist.errors import ConfigError
from artist.io.writing import write_whole


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def refresh(page: Path, tables: Mapping[str, str]) -> None:
    """Write tables into a page, each between `<!-- NAME -->` and `<!-- end NAME -->`.

    Raises:
        ConfigError: the page has no place for a table, or cannot be written.
    """
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        before, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        if not end:
            raise ConfigError(f"{page}: no lines '<!-- {name} -->' and '<!-- end {name} -->'")
        text = f"{before}{begin}\n{table}\n{end}{after}"
    write_whole(page, text)
