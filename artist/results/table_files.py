"""Small tables as CSV or Parquet, chosen by the file's suffix. A file that exists is not replaced
unasked, and every file is written whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.errors import ConfigError
from artist.io.writing import check_new_file, whole_file, write_whole
from artist.results.arrow_tables import arrow_table

SUFFIXES = (".csv", ".parquet")


def check_table_file(path: Path, option: str, *, overwrite: bool) -> None:
    """Refuse a file that may not or cannot be written, before the work on its content begins.

    Raises:
        ConfigError: another suffix, a file that is there already, or a place that cannot be
            written.
    """
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"{option} {path}: expected a name that ends in .csv or .parquet")
    check_new_file(path, option, overwrite=overwrite)


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write rows; a column that a row lacks is empty there.

    Raises:
        ConfigError: the file cannot be written.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        table = {name: [row.get(name) for row in rows] for name in columns}
        with whole_file(path) as partial:
            pq.write_table(arrow_table(table), partial)
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row.get(name) for name in columns] for row in rows)
    write_whole(path, text.getvalue())
