"""Reads logs of nccl-tests (`all_reduce_perf` and its siblings).

A log has one line per rank, one block of rows, and an average at the end. A row has size, count,
type and operation, then time, algbw, busbw and #wrong twice: out of place and in place. Sizes are
bytes, times microseconds, bandwidths 10^9 bytes/s (nccl-tests, doc/PERFORMANCE.md):

    algbw = size / time        busbw = algbw x factor(operation, ranks)

A log is refused if it is cut off, holds more than one run, or contradicts itself; the error names
the line.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from artist.errors import TraceError
from artist.io.digests import sha256
from artist.io.reading import as_float, decode, read_bytes
from artist.units import counted
from artist.workload.layers import Collective

OPERATIONS = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
}

_RANK = re.compile(r"#\s+Rank\s+([0-9]+)\s.*?\bon\s+(\S+)\s+device\s+([0-9]+)")
_NAMED = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|scatter|gather"
    r"|hypercube)_perf\b"
)
_TROUBLE = re.compile(r"NCCL failure|NCCL WARN|Test failure|CUDA failure|Segmentation fault")

_TYPE_BYTES = {
    "int8": 1, "uint8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1, "half": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float": 4, "int64": 8, "uint64": 8, "double": 8,
}  # fmt: skip

# Times and bandwidths are printed with two decimals (newer versions: a fixed number of digits).
# So they agree up to one unit of the last printed digit and 2 %.
_ROUNDING = 0.02
_LAST_DIGIT = 0.011


@dataclass(frozen=True, slots=True)
class NcclRow:
    """The results of one size. `results` is (time_us, algbw, busbw) out of place and in place."""

    line: int
    size_bytes: int
    count: int
    type: str
    reduction: str
    results: tuple[tuple[float, float, float], ...]

    @property
    def times_us(self) -> tuple[float, ...]:
        """Microseconds, out of place and in place."""
        return tuple(result[0] for result in self.results)


@dataclass(frozen=True, slots=True)
class NcclLog:
    """The log of one run. `hosts` holds the number of ranks on each host."""

    path: Path
    digest: str
    operation: str
    hosts: tuple[int, ...]
    rows: tuple[NcclRow, ...]

    @property
    def ranks(self) -> int:
        """The number of GPUs that took part."""
        return sum(self.hosts)

    def points(self) -> list[tuple[float, float]]:
        """(bytes, microseconds) of every measurement, out of place and in place."""
        return [(float(row.size_bytes), time_us) for row in self.rows for time_us in row.times_us]


def read_log(path: Path, operation: str | None = None) -> NcclLog:
    """Read a log. `operation` is needed only if the log does not name its program.

    Raises:
        TraceError: the log is cut off, holds several runs or contradicts itself; names file, line
            and what to do.
    """
    data = read_bytes(path)
    lines = decode(path, data).splitlines()
    _check_trouble(path, lines)
    header = _header(path, lines)
    hosts = _hosts(path, lines, header)
    rows = tuple(_rows(path, lines, header))
    _check_end(path, lines, rows)
    name = _operation(path, lines, header, operation, rows, sum(hosts))
    _check_numbers(path, rows, name, sum(hosts))
    return NcclLog(path, sha256(data), name, hosts, rows)


def _check_trouble(path: Path, lines: list[str]) -> None:
    for number, line in enumerate(lines, 1):
        if _TROUBLE.search(line):
            raise TraceError(f"{path}:{number}: the run failed ({line.strip()[:80]}); repeat it")


def _header(path: Path, lines: list[str]) -> int:
    """The index of the line that names the columns."""
    headers = [
        index for index, line in enumerate(lines) if re.match(r"#\s+size\s+count\s+type", line)
    ]
    if not headers:
        raise TraceError(
            f"{path}:1: no line '# size count type ...': not a log of nccl-tests; give the whole "
            "output of e.g. all_reduce_perf"
        )
    if len(headers) > 1:
        raise TraceError(
            f"{path}:{headers[1] + 1}: a second run begins here; give one log per file"
        )
    _check_columns(f"{path}:{headers[0] + 1}", lines[headers[0]])
    return headers[0]


def _hosts(path: Path, lines: list[str], header: int) -> tuple[int, ...]:
    """The number of ranks on each host; it must be the same on all hosts."""
    ranks: dict[int, str] = {}
    for number, line in enumerate(lines[:header], 1):
        match = _RANK.match(line)
        if not match:
            continue
        rank = int(match[1])
        if rank in ranks:
            raise TraceError(f"{path}:{number}: rank {rank} is listed twice; give one log per file")
        ranks[rank] = match[2]
    if len(ranks) < 2:
        raise TraceError(
            f"{path}:{header + 1}: {len(ranks)} '# Rank' lines before the rows, expected one for "
            "each of two or more GPUs; give the whole output"
        )
    missing = set(range(len(ranks))) - set(ranks)
    if missing:
        raise TraceError(
            f"{path}:{header + 1}: rank {min(missing)} is missing among {len(ranks)} ranks; give "
            "the whole output"
        )
    hosts = tuple(Counter(ranks.values()).values())
    if len(set(hosts)) > 1:
        raise TraceError(
            f"{path}:{header + 1}: hosts have {', '.join(map(str, hosts))} ranks; run the same "
            "number on each"
        )
    return hosts


def _rows(path: Path, lines: list[str], header: int) -> Iterator[NcclRow]:
    """The rows of one run: of one type and operation, with growing sizes."""
    last: NcclRow | None = None
    for number, line in enumerate(lines[header + 1 :], header + 2):
        if line.startswith("#") or not line.strip() or not line.lstrip()[0].isdigit():
            continue
        row = _parse_row(f"{path}:{number}", line, number)
        if last and (row.type, row.reduction) != (last.type, last.reduction):
            raise TraceError(
                f"{path}:{number}: type and operation are {row.type} {row.reduction}, before they "
                f"were {last.type} {last.reduction}; give one run per file"
            )
        if last and row.size_bytes <= last.size_bytes:
            raise TraceError(
                f"{path}:{number}: size {row.size_bytes} after {last.size_bytes}, expected sizes "
                "to grow; give one run per file"
            )
        last = row
        yield row


def _check_end(path: Path, lines: list[str], rows: tuple[NcclRow, ...]) -> None:
    """Refuse a log that is cut off, or whose values were out of bounds."""
    end = len(lines)
    if not rows:
        raise TraceError(f"{path}:{end}: no result rows; the log is cut off: give all of it")
    tail = "\n".join(lines[rows[-1].line :])
    bounds = re.search(r"# Out of bounds values : (\d+) (\w+)", tail)
    if bounds and (bounds[1] != "0" or bounds[2] != "OK"):
        number = rows[-1].line + tail[: bounds.start()].count("\n") + 1
        raise TraceError(f"{path}:{number}: {bounds[1]} values out of bounds; repeat the run")
    if "# Avg bus bandwidth" not in tail:
        raise TraceError(
            f"{path}:{end}: no '# Avg bus bandwidth' after the rows; the log is cut off: give all "
            "of it"
        )


def _guessed(rows: tuple[NcclRow, ...], ranks: int) -> str | None:
    """`all_reduce` if busbw / algbw is its factor; otherwise None.

    The other operations share one factor, so it does not tell them apart.
    """
    _, algbw, busbw = rows[-1].results[0]
    if algbw and math.isclose(busbw / algbw, 2 * (ranks - 1) / ranks, rel_tol=0.02):
        return "all_reduce"
    return None


def _operation(
    path: Path,
    lines: list[str],
    header: int,
    given: str | None,
    rows: tuple[NcclRow, ...],
    ranks: int,
) -> str:
    """The operation that was measured: named in the log, given by the user, or guessed."""
    named = {
        match[1]: number for number, line in enumerate(lines, 1) for match in _NAMED.finditer(line)
    }
    if len(named) > 1:
        number = max(named.values())
        raise TraceError(
            f"{path}:{number}: names {' and '.join(sorted(named))}; give one run per file"
        )
    name = next(iter(named), None) or given or _guessed(rows, ranks)
    if name is None:
        raise TraceError(
            f"{path}:{header + 1}: the log does not name its program; name the operation with "
            f"--operation ({', '.join(OPERATIONS)})"
        )
    if name not in OPERATIONS or (given is not None and given != name):
        known = given or ", ".join(OPERATIONS)
        raise TraceError(
            f"{path}:{named.get(name, header + 1)}: operation is {name!r}, expected {known}"
        )
    return name


def _check_columns(where: str, line: str) -> None:
    """Check that a header has the columns of nccl-tests."""
    names = line.lstrip("#").split()
    blocks = [name for name in names if name in ("time", "algbw", "busbw")]
    if blocks != ["time", "algbw", "busbw"] * 2:
        raise TraceError(
            f"{where}: columns are {' '.join(names)[:90]!r}, expected time, algbw and busbw out of "
            "place and in place; print without -C or other column options"
        )


def _parse_row(where: str, line: str, number: int) -> NcclRow:
    """Read a row: size, count, type, [operation, [root]], twice (time, algbw, busbw, #wrong)."""
    cells = line.split()
    if not 11 <= len(cells) <= 13:
        raise TraceError(
            f"{where}: {counted(len(cells), 'column')}, expected 11 to 13; the row is cut off "
            "or not of nccl-tests: give the whole output"
        )
    size, count = _whole(where, "size", cells[0]), _whole(where, "count", cells[1])
    if cells[2] not in _TYPE_BYTES:
        known = ", ".join(_TYPE_BYTES)
        raise TraceError(f"{where}: type is {cells[2]!r}, expected one of {known}")
    blocks = (cells[-8:-4], cells[-4:])
    for block in blocks:
        _check_right(where, block[3])
    results = tuple(_result(where, block) for block in blocks)
    return NcclRow(number, size, count, cells[2], " ".join(cells[3:-8]), results)


def _check_numbers(path: Path, rows: tuple[NcclRow, ...], operation: str, ranks: int) -> None:
    """Check the rows against the definitions of algbw and busbw."""
    share = (ranks - 1) / ranks
    expected = 2 * share if operation == "all_reduce" else share
    # For example, the count of an all-gather is that of one rank, but its size is that of all.
    parts = {1} if operation == "all_reduce" else {1, ranks}
    for row in rows:
        where = f"{path}:{row.line}"
        width = _TYPE_BYTES[row.type]
        if not any(row.count * width * part == row.size_bytes for part in parts):
            raise TraceError(
                f"{where}: {row.count} elements of {row.type} are not {row.size_bytes} bytes; the "
                "row is damaged"
            )
        for time_us, algbw, busbw in row.results:
            moved = row.size_bytes / time_us / 1e3
            if not _close(algbw, moved):
                raise TraceError(
                    f"{where}: {row.size_bytes} bytes in {time_us:g} us are {moved:.2f} GB/s, the "
                    f"row has algbw {algbw:g}: impossible; repeat the run"
                )
            if not _close(busbw, algbw * expected, slack=_LAST_DIGIT * (1 + expected)):
                raise TraceError(
                    f"{where}: busbw {busbw:g} is not {expected:.4g} x algbw {algbw:g}, as it is "
                    f"for {operation} on {ranks} ranks; the log is another operation's"
                )


def _close(printed: float, exact: float, slack: float = _LAST_DIGIT) -> bool:
    return abs(printed - exact) <= _ROUNDING * exact + slack


def _whole(where: str, name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise TraceError(f"{where}: {name} is {text!r}, expected a whole number, 1 or more")
    return int(text)


def _result(where: str, block: list[str]) -> tuple[float, float, float]:
    names = ("time", "algbw", "busbw")
    values = []
    for name, text in zip(names, block, strict=False):
        value = as_float(text)
        if not 0 <= value < math.inf or (name == "time" and value == 0):
            raise TraceError(f"{where}: {name} is {text!r}, expected a number above 0")
        values.append(value)
    return values[0], values[1], values[2]


def _check_right(where: str, text: str) -> None:
    """Refuse wrong results. #wrong is a count, N/A, or the largest error (old versions)."""
    if text != "N/A" and not as_float(text) < 1:
        raise TraceError(f"{where}: {text} results are wrong (#wrong); the run is not valid")
