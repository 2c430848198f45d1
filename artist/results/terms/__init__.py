"""What metrics and columns are called, mean and are counted in.

The texts are data: `tables.tsv` (the schema of a run's tables), `metrics.tsv` and `words.tsv`. Each
is a table whose cells are separated by tabs, below a line with the names of its columns.
"""

from __future__ import annotations

from pathlib import Path


def read_cells(name: str) -> list[list[str]]:
    """The cells of each line of a file in this folder, below its heading."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]
