"""Does one error name all bad cells of a column?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.errors import TraceError
from artist.trace.native.table import MOST_PLACES, Table


def of(column: str, cells: list[str]) -> Table:
    return Table(Path("t.csv"), "line", range(2, len(cells) + 2), {column: cells})


def test_an_error_names_the_other_bad_cells_of_its_column() -> None:
    with pytest.raises(TraceError, match=r"^t\.csv:3: .*'x', .* \(also bad: lines 5, 6\)$"):
        of("gpus", ["1", "x", "2", "0", "1.5"]).counts("gpus")
    with pytest.raises(TraceError, match=r"^t\.csv:2: .* \(also bad: line 4\)$"):
        of("duration", ["n/a", "5", "-1"]).seconds("duration")
    with pytest.raises(TraceError, match=r"^t\.csv:3: .* \(also bad: line 4\)$"):
        of("job_id", ["a", "", ""]).texts("job_id")


def test_one_bad_cell_has_no_others() -> None:
    with pytest.raises(TraceError, match=r"; correct this row$"):
        of("gpus", ["1", "x"]).counts("gpus")


def test_many_bad_cells_are_counted() -> None:
    with pytest.raises(TraceError, match=r"lines 3, .*, 12 and 5 more\)$"):
        of("gpus", ["x"] * (MOST_PLACES + 6)).counts("gpus")
