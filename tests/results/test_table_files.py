"""Are small tables written whole, by suffix, and never over another file unasked?"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from artist.errors import ConfigError
from artist.results.table_files import check_table_file, write_table

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
    check_table_file(file, "--values", overwrite=False)
    file.write_text("mine")
    with pytest.raises(ConfigError, match="exists already; choose another name"):
        check_table_file(file, "--values", overwrite=False)
    check_table_file(file, "--values", overwrite=True)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("overwrite", [False, True])
def test_links_devices_and_other_suffixes_are_refused(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    for name, words in (("link.csv", "a symbolic link"), ("t.txt", "ends in .csv or .parquet")):
        with pytest.raises(ConfigError, match=words):
            check_table_file(tmp_path / name, "--values", overwrite=overwrite)
