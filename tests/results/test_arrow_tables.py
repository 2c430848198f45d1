"""Are our columns the arrays that pyarrow itself would make of them?"""

from __future__ import annotations

from itertools import repeat

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.results import table_files
from artist.results.table_files import arrow_table

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
