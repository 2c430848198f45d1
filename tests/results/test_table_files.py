"""Are tables the arrays that pyarrow would make, and written whole, by suffix, if they may be?"""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.errors import ConfigError
from artist.results import table_files
from artist.results.table_files import arrow_table, check_table_file, write_table

ROWS = [{"a": 1, "b": "x"}, {"a": 2, "c": 0.5}]


def test_a_column_that_a_row_lacks_is_empty(tmp_path: Path) -> None:
    write_table(ROWS, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "a,b,c\n1,x,\n2,,0.5\n"
    write_table(ROWS, tmp_path / "t.parquet")
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.column_names == ["a", "b", "c"]
    assert table["b"].to_pylist() == ["x", None]


def test_a_file_that_exists_needs_overwrite(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    check_table_file(file, overwrite=False)
    file.write_text("mine")
    with pytest.raises(ConfigError, match="exists already; choose another name"):
        check_table_file(file, overwrite=False)
    check_table_file(file, overwrite=True)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("overwrite", [False, True])
def test_links_devices_and_other_suffixes_are_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    for name, words in (("link.csv", "a symbolic link"), ("t.txt", "ends in .csv or .parquet")):
        with pytest.raises(ConfigError, match=words):
            check_table_file(tmp_path / name, overwrite=overwrite)


BIG = 2**63


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.5, np.nan, -0.0]),
        np.arange(6, dtype=np.int32)[::2],
        np.array([], dtype=np.int64),
        np.array(["a", "b"], dtype=object),
        np.array([True, False]),
        ["a", "", "é€😀"],
        ["a", None, ""],
        [1, -BIG, BIG - 1],
        [1, None],
        [1.5, None, float("nan")],
        [None, *repeat(0.25, 20)],
        [1, 2.5],
        [True, False],
        [None, None],
        [[1], [2, 3]],
        [["a", "é€😀"], [], ["b"]],
        [["a", None], ["b"]],
        [],
    ],
    ids=repr,
)
def test_a_column_is_what_pyarrow_makes_of_it(values) -> None:
    # On text, for NaN is not equal to NaN.
    ours, theirs = arrow_table({"x": values}), pa.table({"x": values})
    ours.validate(full=True)
    assert ours.schema == theirs.schema
    assert str(ours["x"].to_pylist()) == str(theirs["x"].to_pylist())


def test_empty_lists_are_lists_of_text() -> None:
    """Alone pyarrow cannot know their type, and a column has one type whatever the run."""
    assert arrow_table({"x": [[], []]})["x"].type == pa.list_(pa.string())


@given(st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"])))))
def test_any_texts_are_what_pyarrow_makes_of_them(values: list[str | None]) -> None:
    ours = arrow_table({"x": values})
    ours.validate(full=True)
    assert ours.equals(pa.table({"x": values}))


@pytest.mark.parametrize("values", [[1, "z", None], [BIG, 1], ["z", 1.5]], ids=repr)
def test_hints_of_mixed_types_become_text(values) -> None:
    told = [None if value is None else str(value) for value in values]
    assert arrow_table({"hint_x": values})["hint_x"].to_pylist() == told


def test_texts_too_long_for_one_array_are_left_to_pyarrow(monkeypatch) -> None:
    monkeypatch.setattr(table_files, "_MOST_BYTES", 3)
    monkeypatch.setattr(table_files, "_anything", lambda values: pa.array(["left", "to"]))
    assert arrow_table({"x": ["ab", "cd"]})["x"].to_pylist() == ["left", "to"]
