"""From the bytes of a CSV, Parquet or JSON file to a table of raw cells."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from artist.errors import TraceError
from artist.trace.table import Table
from artist.workload.files import decode

_PARQUET_MAGIC = b"PAR1"


def read_table(path: Path, data: bytes) -> Table:
    """The cells in `data`, which was read from `path`; the format shows in the content.

    Raises:
        TraceError: the content is none of the three formats, or broken.
    """
    if data.startswith(_PARQUET_MAGIC) or path.suffix == ".parquet":
        return _parquet(path, data)
    text = decode(path, data)
    is_json = path.suffix == ".json" or text.lstrip()[:1] in ("[", "{")
    return _json(path, text) if is_json else _csv(path, text)


def _csv(path: Path, text: str) -> Table:
    lines: list[int] = []
    rows: list[list[str]] = []
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip() for name in next(reader)]
        _check_header(f"{path}:1", header)
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise TraceError(
                    f"{path}:{reader.line_num}: {len(row)} fields, expected {len(header)} "
                    f"({','.join(header)[:200]!r}); correct this row"
                )
            lines.append(reader.line_num)
            rows.append(row)
    except csv.Error as error:
        raise TraceError(
            f"{path}:{max(reader.line_num, 1)}: not valid CSV ({error}); close all quotes"
        ) from error
    cells: list[Sequence[object]] = list(zip(*rows, strict=True)) or [[] for _ in header]
    return Table(path, "line", lines, dict(zip(header, cells, strict=True)))


def _check_header(place: str, names: list[str]) -> None:
    for name in names:
        if not name:
            raise TraceError(f"{place}: a column has no name; name every column")
        if names.count(name) > 1:
            raise TraceError(f"{place}: column {name!r} appears twice; keep one")


def _parquet(path: Path, data: bytes) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
        names = list(table.column_names)
        _check_header(str(path), names)
        columns = {name: table.column(name).to_pylist() for name in names}
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"{path}: not readable Parquet ({reason}); write it anew") from error
    return Table(path, "row", range(1, table.num_rows + 1), columns)


def _json(path: Path, text: str) -> Table:
    records = _records(path, text)
    lines = list(_lines(text, len(records)))
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return Table(path, "line", lines, columns)


def _records(path: Path, text: str) -> list[dict[str, Any]]:
    try:
        records = json.loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{path}:{error.lineno}: column {error.colno}: not valid JSON ({error.msg}); "
            "give the complete file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not usable JSON ({error}); give a list of jobs") from error
    if not isinstance(records, list):
        raise TraceError(
            f"{path}:1: the JSON is one {type(records).__name__}, expected a list of jobs; "
            "put the jobs in [ ]"
        )
    if not records:
        raise TraceError(f"{path}: the trace has no jobs; give at least one")
    for index, record in enumerate(records):
        if not isinstance(record, dict):
            raise TraceError(
                f"{path}: element {index + 1} is {str(record)[:40]!r}, expected a job as an "
                "object with named fields; correct it"
            )
    return records


_BETWEEN = re.compile(r"[\s,]*")


def _lines(text: str, count: int) -> Iterator[int]:
    """The line on which each element of a valid JSON list begins."""
    decoder = json.JSONDecoder()
    end = text.index("[") + 1
    line, counted = 1, 0
    for _ in range(count):
        separator = _BETWEEN.match(text, end)
        start = separator.end() if separator else end
        line += text.count("\n", counted, start)
        counted = start
        yield line
        _, end = decoder.raw_decode(text, start)
