"""The page of a study and its pictures: made from the kept rows, compared by a test."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from artist.io.templates import environment


def rendered(folder: Path, **values: object) -> str:
    """`page.md.j2` of a folder with values. It holds the words; a number asks for its value.

    Raises:
        jinja2.UndefinedError: the template asks for something that does not exist.
    """
    layout = {"keep_trailing_newline": True, "trim_blocks": True}
    templates = environment(folder, autoescape=False, **layout)
    return templates.get_template("page.md.j2").render(**values)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A Markdown table. The first columns are text, the others numbers."""
    rules = ["---" if index < left else "---:" for index in range(len(columns))]
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, rules, *rows))


def differing(write: Callable[[Path], None], folder: Path) -> list[str]:
    """The files of the folder that are not what `write` writes into a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch))
        pairs = [(path, folder / path.name) for path in sorted(Path(scratch).iterdir())]
        return [
            str(kept)
            for made, kept in pairs
            if not kept.is_file() or kept.read_bytes() != made.read_bytes()
        ]
