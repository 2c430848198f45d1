"""Reads the rows of an nccl-tests log and checks that their numbers agree with each other."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from artist.errors import TraceError

_TYPE_BYTES = {
    "int8": 1,
    "uint8": 1,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "uint64": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
}

# Times and bandwidths are printed with two decimals (newer versions: a fixed number of digits).
# So they agree to one unit of the last printed digit and 2 %.
_ROUNDING = 0.02
_LAST_DIGIT = 0.011


@dataclass(frozen=True, slots=True)
class Row:
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


def check_columns(where: str, line: str) -> None:
    """Check that a header has the columns of nccl-tests.

    Raises:
        TraceError: it has others.
    """
    names = line.lstrip("#").split()
    blocks = [name for name in names if name in ("time", "algbw", "busbw")]
    if blocks != ["time", "algbw", "busbw"] * 2:
        raise TraceError(
            f"{where}: columns are {' '.join(names)[:90]!r}, expected time, algbw and busbw out of "
            "place and in place; print without -C or other column options"
        )


def parse_row(where: str, line: str, number: int) -> Row:
    """Read a row: size, count, type, [operation, [root]], twice (time, algbw, busbw, #wrong).

    Raises:
        TraceError: the row is cut off, a cell is malformed, or the run computed wrong results.
    """
    cells = line.split()
    if not 11 <= len(cells) <= 13:
        raise TraceError(
            f"{where}: {len(cells)} columns, expected 11 to 13; the row is cut off or not of "
            "nccl-tests: give the whole output"
        )
    size, count = _whole(where, "size", cells[0]), _whole(where, "count", cells[1])
    if cells[2] not in _TYPE_BYTES:
        known = ", ".join(_TYPE_BYTES)
        raise TraceError(f"{where}: type is {cells[2]!r}, expected one of {known}")
    blocks = (cells[-8:-4], cells[-4:])
    for block in blocks:
        _check_right(where, block[3])
    results = tuple(_result(where, block) for block in blocks)
    return Row(number, size, count, cells[2], " ".join(cells[3:-8]), results)


def check_numbers(path: Path, rows: tuple[Row, ...], operation: str, ranks: int) -> None:
    """Check the rows against the definitions of algbw and busbw.

    Raises:
        TraceError: a row contradicts itself or the operation; names the line.
    """
    share = (ranks - 1) / ranks
    expected = 2 * share if operation == "all_reduce" else share
    # The count of an all-gather, for example, is that of one rank, its size that of all ranks.
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
                    f"row says algbw {algbw:g}: impossible; repeat the run"
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
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf or (name == "time" and value == 0):
            raise TraceError(f"{where}: {name} is {text!r}, expected a number above 0")
        values.append(value)
    return values[0], values[1], values[2]


def _check_right(where: str, text: str) -> None:
    """Refuse wrong results. #wrong is a count, N/A, or the largest error (old versions)."""
    if text == "N/A":
        return
    try:
        wrong = float(text)
    except ValueError:
        wrong = math.nan
    if not wrong < 1:
        raise TraceError(f"{where}: {text} results are wrong (#wrong); the run is not valid")
