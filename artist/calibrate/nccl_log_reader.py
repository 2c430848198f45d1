"""Reads logs of nccl-tests (`all_reduce_perf` and its siblings).

A log has one line per rank, one block of rows, and an average at the end. A row has size, count,
type and operation, then time, algbw, busbw and #wrong twice: out of place and in place. Sizes are
bytes, times microseconds, bandwidths 10^9 bytes/s (nccl-tests, doc/PERFORMANCE.md):

    algbw = size / time        busbw = algbw x factor(operation, ranks)

A log is refused if it is cut off, holds more than one run, or contradicts itself; the error names
the line. `nccl_rows.py` reads and checks the rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from artist.calibrate.nccl_rows import Row, check_columns, check_numbers, parse_row
from artist.errors import TraceError
from artist.io.data_files import decode, read_bytes
from artist.io.digests import sha256
from artist.workload.layers import Collective

OPERATIONS = {
    "all_reduce": Collective.ALL_REDUCE,
    "all_gather": Collective.ALL_GATHER,
    "reduce_scatter": Collective.REDUCE_SCATTER,
    "alltoall": Collective.ALL_TO_ALL,
}

_RANK = re.compile(r"#\s+Rank\s+(\d+)\s.*?\bon\s+(\S+)\s+device\s+(\d+)")
_NAMED = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|scatter|gather"
    r"|hypercube)_perf\b"
)
_TROUBLE = re.compile(r"NCCL failure|NCCL WARN|Test failure|CUDA failure|Segmentation fault")


@dataclass(frozen=True, slots=True)
class Log:
    """The log of one run. `hosts` holds the number of ranks on each host."""

    path: Path
    digest: str
    operation: str
    hosts: tuple[int, ...]
    rows: tuple[Row, ...]

    @property
    def ranks(self) -> int:
        """The number of GPUs that took part."""
        return sum(self.hosts)

    def points(self) -> list[tuple[float, float]]:
        """(bytes, microseconds) of every measurement, out of place and in place."""
        return [(float(row.size_bytes), time_us) for row in self.rows for time_us in row.times_us]


def read_log(path: Path, operation: str | None = None) -> Log:
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
    name = _operation(path, lines, header, operation, (rows, sum(hosts)))
    check_numbers(path, rows, name, sum(hosts))
    return Log(path, sha256(data), name, hosts, rows)


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
    check_columns(f"{path}:{headers[0] + 1}", lines[headers[0]])
    return headers[0]


def _hosts(path: Path, lines: list[str], header: int) -> tuple[int, ...]:
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


def _rows(path: Path, lines: list[str], header: int) -> Iterator[Row]:
    last: Row | None = None
    for number, line in enumerate(lines[header + 1 :], header + 2):
        if line.startswith("#") or not line.strip() or not line.lstrip()[0].isdigit():
            continue
        row = parse_row(f"{path}:{number}", line, number)
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


def _check_end(path: Path, lines: list[str], rows: tuple[Row, ...]) -> None:
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


def _guessed(rows: tuple[Row, ...], ranks: int) -> str | None:
    """`all_reduce` if busbw / algbw is its factor; otherwise None.

    The other operations share one factor, so it does not tell them apart.
    """
    _, algbw, busbw = rows[-1].results[0]
    if algbw and math.isclose(busbw / algbw, 2 * (ranks - 1) / ranks, rel_tol=0.02):
        return "all_reduce"
    return None


def _operation(
    path: Path, lines: list[str], header: int, told: str | None, log: tuple[tuple[Row, ...], int]
) -> str:
    rows, ranks = log
    named = {
        match[1]: number for number, line in enumerate(lines, 1) for match in _NAMED.finditer(line)
    }
    if len(named) > 1:
        number = max(named.values())
        raise TraceError(
            f"{path}:{number}: names {' and '.join(sorted(named))}; give one run per file"
        )
    name = next(iter(named), None) or told or _guessed(rows, ranks)
    if name is None:
        raise TraceError(
            f"{path}:{header + 1}: the log does not name its program; say which with --operation "
            f"({', '.join(OPERATIONS)})"
        )
    if name not in OPERATIONS or (told is not None and told != name):
        known = told or ", ".join(OPERATIONS)
        raise TraceError(
            f"{path}:{named.get(name, header + 1)}: operation is {name!r}, expected {known}"
        )
    return name
