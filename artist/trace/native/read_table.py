"""From a trace file to a `Table` of cells: CSV, Parquet, JSON, and lines of plain text.

`read_data` reads the bytes, with limits so that no file can fill the memory. The other readers know
the line of every cell, so that errors can name it. `plain_csv.py` is a faster reader for large
simple CSV files.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from artist.errors import TraceError
from artist.io.parquet import read_parquet
from artist.io.reading import cannot_be_read, decode, each_key_once, open_binary
from artist.trace.native.table import MAX_COLUMNS, Table
from artist.units import counted

MAX_LINE_BYTES = 2**20  # a line holds one job, which takes a few hundred bytes
MAX_FILE_BYTES = 2**33
# In memory, parsed JSON takes ten times its size on disk. The largest known JSON trace,
# Philly's log, has about 100 MiB.
MAX_JSON_BYTES = 2**29

_CHUNK_BYTES = 2**20
_JSON_STARTS = (b"[", b"{")
_PARQUET_MAGIC = b"PAR1"
_BLOCK_ROWS = 65_536
_CELL_BYTES = 40  # a number in a list: a Python object and the reference to it


def read_data(path: Path) -> bytes:
    """All bytes of a trace file (or pipe).

    Raises:
        TraceError: the file is missing, a folder, empty, not readable, or beyond a limit:
            8 GiB for a file, 512 MiB for JSON, 1 MiB for one line of text.
    """
    try:
        with open_binary(path) as file:
            data = _in_chunks(path, file)
    except (OSError, ValueError) as error:
        raise TraceError(cannot_be_read(path, error)) from error
    if not data or data.isspace():
        raise TraceError(f"{path}: the file is empty; give one with data in it")
    return data


def is_json(path: Path, data: bytes) -> bool:
    """Whether a file is JSON, judged by its name or its first character."""
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return path.suffix == ".json" or start in _JSON_STARTS


def is_parquet(path: Path, data: bytes) -> bool:
    """Whether a file is Parquet, judged by its name or its first four bytes."""
    return path.suffix == ".parquet" or data.startswith(_PARQUET_MAGIC)


def read_table(path: Path, data: bytes) -> Table:
    """The cells in `data`, the content of the file `path`: Parquet, JSON, otherwise CSV.

    Raises:
        TraceError: the content is broken.
    """
    if is_parquet(path, data):
        return _parquet(path, data)
    if is_json(path, data):
        return _json(path, decode(path, data))
    names = [name.strip() for name in first_line(data).split("|")]
    if not any(name in names for name in _OF_SLURM):
        return read_csv(path, data)
    return read_csv(path, data, delimiter="|", repeats=True)


# Slurm's programs write `|` between cells, without quotes. sacct and squeue print these columns.
_OF_SLURM = ("JobID", "JOBID")


def read_csv(
    path: Path,
    data: bytes,
    header: Sequence[str] | None = None,
    delimiter: str | None = None,
    *,
    repeats: bool = False,
) -> Table:
    """The cells of separated text. The first row names the columns, unless `header` does.

    Commas separate them, or what does in the first row, as some programs write semicolons. Between
    a `delimiter` that is given, quotes mean nothing. With `repeats`, of columns with one name the
    first counts.

    Raises:
        TraceError: not UTF-8, a quote left open, or a line with too many or too few cells.
    """
    decode(path, data)  # only to refuse what is not UTF-8, with its line
    # A stream over the bytes saves memory: `io.StringIO` takes four bytes for each character.
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")
    if delimiter is None:
        found = "," if header else _separator(first_line(data))
        reader = csv.reader(text, strict=True, delimiter=found)
    else:
        reader = csv.reader(text, strict=True, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    lines: list[int] = []
    try:
        names = list(header or ())
        if not header:
            first = next((row for row in reader if row), [])
            names = [name.strip() for name in first]
        if repeats:
            names = _without_repeats(names)
        _check_header(f"{path}:{max(reader.line_num, 1)}", names)
        columns: list[list[object]] = [[] for _ in names]
        rows = _rows(path, reader, names, lines)
        while block := list(itertools.islice(rows, _BLOCK_ROWS)):
            for column, cells in zip(columns, zip(*block, strict=True), strict=True):
                # Equal cells of a block become one object: names of models and users repeat.
                known: dict[str, str] = {}
                column.extend(known.setdefault(cell, cell) for cell in cells)
    except csv.Error as error:
        raise TraceError(
            f"{path}:{max(reader.line_num, 1)}: not valid CSV ({error}); close all quotes"
        ) from error
    # Without blank lines, the line numbers are a range, which takes no memory.
    unbroken = lines and lines[-1] - lines[0] + 1 == len(lines)
    numbers = range(lines[0], lines[-1] + 1) if unbroken else lines
    return Table(path, "line", numbers, dict(zip(names, columns, strict=True)))


def first_line(data: bytes) -> str:
    """The first line that is neither blank nor a comment (`;`); an empty text if there is none."""
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", "replace", newline="\n"):
        if line.strip() and not line.startswith(";"):
            return line.rstrip("\r\n")
    return ""


def read_lines(path: Path, data: bytes, header: Sequence[str], delimiter: str | None) -> Table:
    """The cells of lines without quotes, separated by `delimiter` (None: any white space).

    `header` names the columns. Blank lines and lines that begin with `;` are skipped.

    Raises:
        TraceError: not UTF-8, or a line with too many or too few cells.
    """
    decode(path, data)
    lines: list[int] = []
    rows: list[list[str]] = []
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="\n")
    for number, line in enumerate(text, start=1):
        if not line.strip() or line.startswith(";"):
            continue
        cells = line.rstrip("\r\n").split(delimiter)
        if len(cells) != len(header):
            raise TraceError(
                f"{path}:{number}: {counted(len(cells), 'field')}, expected {len(header)} "
                f"({' '.join(header)[:200]!r}); correct this row"
            )
        lines.append(number)
        rows.append(cells)
    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    return Table(path, "line", lines, dict(zip(header, columns, strict=True)))


# Slurm's programs do not quote what users write: a command, the name of a job.
_OF_A_BAR = ", or print the log without the column that has a | in it, such as SubmitLine"


def _rows(path: Path, reader: Any, names: list[str], lines: list[int]) -> Iterator[list[str]]:
    """Rows that are not blank. Appends the line number of each to `lines`."""
    for row in reader:
        if not row:
            continue
        if len(row) != len(names):
            too_many = len(row) > len(names) and reader.dialect.delimiter == "|"
            bar = _OF_A_BAR if too_many else ""
            raise TraceError(
                f"{path}:{reader.line_num}: {counted(len(row), 'field')}, expected {len(names)} "
                f"({','.join(names)[:200]!r}); correct this row{bar}"
            )
        lines.append(reader.line_num)
        yield row


def _check_header(place: str, names: list[str]) -> None:
    _check_width(place, len(names))
    seen: set[str] = set()
    for name in names:
        if not name:
            raise TraceError(f"{place}: a column has no name; name every column")
        if name in seen:
            raise TraceError(f"{place}: column {name!r} appears twice; keep one")
        seen.add(name)


def _without_repeats(names: Sequence[str]) -> list[str]:
    """The names; an empty or repeated one gets its position as a suffix, as in `name#3`."""
    return [
        name if name and name not in names[:place] else f"{name}#{place}"
        for place, name in enumerate(names)
    ]


def _separator(header: str) -> str:
    """The separator in the first row: another sign if no commas separate names."""
    bare = re.sub(r'"[^"]*"', "quoted", header)
    used = (one for one in _OTHER_SEPARATORS if one in bare and all(bare.split(one)))
    return "," if "," in bare else next(used, ",")


# What programs write in the place of the comma.
_OTHER_SEPARATORS = (";", "\t", "|")


def _check_width(place: str, columns: int) -> None:
    if columns > MAX_COLUMNS:
        raise TraceError(
            f"{place}: {columns} columns, expected at most {MAX_COLUMNS}; give those of the jobs"
        )


def _parquet(path: Path, data: bytes) -> Table:
    """The cells of a Parquet file; its rows have numbers, not lines."""
    import pyarrow as pa

    try:
        table = read_parquet(pa.BufferReader(data), value_bytes=_CELL_BYTES)
        names = list(table.column_names)
        _check_header(str(path), names)
        columns = {name: table.column(name).to_pylist() for name in names}
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise TraceError(f"{path}: not readable Parquet ({reason}); write it again") from error
    return Table(path, "row", range(1, table.num_rows + 1), columns)


def _json(path: Path, text: str) -> Table:
    """The cells of a JSON list of objects. Columns are the names in any of the objects."""
    records = _records(path, text)
    lines = list(_lines(text, len(records)))
    if _HALF_A_CHARACTER.search(text):
        _check_characters(path, records, lines)
    names = dict.fromkeys(name for record in records for name in record)
    _check_width(str(path), len(names))
    columns = {name: [record.get(name) for record in records] for name in names}
    return Table(path, "line", lines, columns)


def _records(path: Path, text: str) -> list[dict[str, Any]]:
    """The objects of a JSON list, not empty."""
    try:
        records = json.loads(text, object_pairs_hook=each_key_once)
    except json.JSONDecodeError as error:
        raise TraceError(
            f"{path}:{error.lineno}: column {error.colno}: not valid JSON ({error.msg}); "
            "give the complete file"
        ) from error
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not usable JSON ({error}); give a list of jobs") from error
    if isinstance(records, dict) and "jobs" in records and "meta" in records:
        raise TraceError(
            f"{path}:1: what Slurm prints with --json is not read; print sacct -a -P --format=ALL, "
            "or squeue -a -r -o %all"
        )
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


# A JSON escape of half a surrogate pair. Escapes of whole pairs match too, so a match only means
# that the texts must be checked one by one.
_HALF_A_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")


def _check_characters(path: Path, records: list[dict[str, Any]], lines: list[int]) -> None:
    """Refuse texts with a lone surrogate: they cannot be written to any file as UTF-8."""
    for record, line in zip(records, lines, strict=True):
        try:
            json.dumps(record, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise TraceError(
                f"{path}:{line}: {error.object[error.start]!r} is half a character (a lone "
                "surrogate), expected text; correct this row"
            ) from error


_BETWEEN = re.compile(r"[\s,]*")


def _lines(text: str, count: int) -> Iterator[int]:
    """The line on which each of the `count` elements of a valid JSON list begins."""
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


def _in_chunks(path: Path, file: BinaryIO) -> bytes:
    """All bytes of an open file, in chunks, so that a file beyond a limit is refused early."""
    chunks: list[bytes] = []
    # `line_bytes` is the length so far of the line that the last chunk left unfinished. Only the
    # first line that ends in a chunk can exceed a chunk's length; the others fit by themselves.
    size = lines = line_bytes = 0
    limit, has_lines = MAX_FILE_BYTES, True
    while chunk := file.read(_CHUNK_BYTES):
        if not chunks:
            json = is_json(path, chunk)
            limit = MAX_JSON_BYTES if json else MAX_FILE_BYTES
            has_lines = not json and not is_parquet(path, chunk)
        chunks.append(chunk)
        size += len(chunk)
        if size > limit:
            raise TraceError(f"{path}: more than {limit >> 20} MiB; split the trace")
        if has_lines:
            first = chunk.find(b"\n")
            line_bytes += len(chunk) if first < 0 else first
            if line_bytes > MAX_LINE_BYTES:
                raise TraceError(
                    f"{path}:{lines + 1}: a line of more than {MAX_LINE_BYTES >> 20} MiB, expected "
                    "a job a line; give a text file of jobs"
                )
            if first >= 0:
                lines += chunk.count(b"\n")
                line_bytes = len(chunk) - chunk.rfind(b"\n") - 1
    return b"".join(chunks)
