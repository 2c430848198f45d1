"""The schema of the tables in a run directory: every column, with type, unit, meaning and formula.

`tables.tsv` has one line per table and one per column, in the order in which they are written. If
two tables have a column of one name, it means the same in both. Those who write tables, those who
read them and those who explain them all use this schema.

| cell | what it says |
|---|---|
| type | `text`, `texts` (a list of texts), `bool` or a NumPy type; `?`: a value may be missing |
| least | numbers are `0` or more, or more than 0 (`>0`); empty: any number |
| when | empty: always there. `contention`: only in runs with --contention. `known`: only if the \
backend knows the placement. `optional`, `failures`, `slow`, `tenants`, `kinds`, `shared`, \
`shares`, `goodput`: only in runs that have them |
| read | who reads the column of a run directory: `report` (`artist report`, `export`), `why` |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from artist.results.terms import read_cells

if TYPE_CHECKING:
    import numpy.typing as npt

Column: TypeAlias = "npt.NDArray[Any] | list[Any]"
Table: TypeAlias = dict[str, Column]
"""Column name -> values. All columns have one length."""


class ColumnTerm(NamedTuple):
    """One line of `tables.tsv`."""

    table: str
    name: str
    type: str
    least: str
    when: str
    read: str
    unit: str
    meaning: str
    formula: str

    @property
    def may_miss(self) -> bool:
        """Whether single values may be missing."""
        return self.type.endswith("?")

    def is_read_by(self, reader: str) -> bool:
        """Whether `report` or `why` reads the column."""
        return reader in self.read.split()


_LINES = [ColumnTerm(*cells) for cells in read_cells("tables.tsv")]

TABLE_TERMS: Mapping[str, ColumnTerm] = {
    line.table: line for line in _LINES if line.type == "table"
}
"""Table -> the line about the table as a whole."""

TABLES: Mapping[str, tuple[ColumnTerm, ...]] = {
    table: tuple(line for line in _LINES if line.table == table and line.name)
    for table in TABLE_TERMS
}
"""Table -> its columns, in the order in which they are written."""


def typed(table: str, columns: Mapping[str, Column]) -> Table:
    """The columns as a table whose numbers are arrays of the types of the schema.

    Texts, and numbers that may be missing, stay lists.

    Raises:
        KeyError: the schema lacks a column.
    """
    import numpy as np

    types = {term.name: term.type for term in TABLES[table]}
    return {
        name: np.asarray(values, types[name]) if types[name] in _ARRAYS else values
        for name, values in columns.items()
    }


_ARRAYS = frozenset({"int32", "int64", "float64"})


def find(name: str) -> ColumnTerm | None:
    """The entry of a column by its exact name. If several tables have it, the first one counts."""
    return next((line for line in _LINES if line.name == name), None)


def names() -> list[str]:
    """The names of all columns, each once."""
    return list(dict.fromkeys(line.name for line in _LINES if line.name))
