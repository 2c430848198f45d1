"""Reads what ASTRA-sim prints, strictly: a result is complete, or it is an error.

ASTRA-sim also ends with exit code 0 after a deadlock. Therefore every NPU has to report once
that it finished, and all NPUs have to report the same compute time.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

from artist.errors import BackendError

_FINISHED = re.compile(
    r"\[workload\] \[info\] sys\[(\d+)\] finished, (\d+) cycles, "
    r"exposed communication (\d+) cycles\.$"
)

_NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one ASTRA-sim run: when the last NPU finished, and how long each computed."""

    finish_ns: int
    compute_ns: int


class IncompleteError(BackendError):
    """Fewer NPUs finished than there are."""

    def __init__(self, finished: int, npus: int) -> None:
        super().__init__(f"{finished} of {npus} NPUs finished")
        self.finished = finished

    def __reduce__(self) -> tuple[object, ...]:
        return (BackendError, (str(self),))


def parse_astra2(stdout: str, npus: int) -> Outcome:
    """The result of ASTRA-sim 2.x in its standard output.

    Raises:
        IncompleteError: some NPUs did not finish.
        BackendError: a line is garbled, or the NPUs contradict each other.
    """
    finish_ns: dict[int, int] = {}
    compute_ns: set[int] = set()
    for number, line in enumerate(stdout.splitlines(), 1):
        if "finished," not in line:
            continue
        match = _FINISHED.search(line)
        if match is None:
            raise BackendError(f"line {number} of its output is garbled: {line[:120]!r}")
        rank, finish, exposed = (int(text) for text in match.groups())
        if rank >= npus or rank in finish_ns:
            raise BackendError(f"line {number} of its output is one NPU too many: {line[:120]!r}")
        if exposed > finish:
            raise BackendError(f"line {number} of its output is inconsistent: {line[:120]!r}")
        finish_ns[rank] = finish
        compute_ns.add(finish - exposed)
    if len(finish_ns) < npus:
        raise IncompleteError(len(finish_ns), npus)
    if len(compute_ns) > 1:
        raise BackendError(f"its NPUs computed for different times: {sorted(compute_ns)[:4]} ns")
    return Outcome(max(finish_ns.values()), compute_ns.pop())


def parse_astra1(end_to_end_csv: str) -> Outcome:
    """The result of ASTRA-sim 1.0 in its `EndToEnd.csv`, whose times are in microseconds.

    Raises:
        BackendError: a column or value is missing, or the times contradict each other.
    """
    rows = list(csv.reader(end_to_end_csv.splitlines()))
    if len(rows) < 2:
        raise BackendError("its EndToEnd.csv holds no result")
    finish_ns = _cell(rows, "workload finished at")
    compute_ns = _cell(rows, "total comp")
    exposed_ns = _cell(rows, "total exposed comm")
    # Each of the three is rounded to the nanosecond by itself, so their sum may be off by one.
    if compute_ns < 0 or exposed_ns < 0 or abs(finish_ns - compute_ns - exposed_ns) > 1:
        raise BackendError(
            f"its EndToEnd.csv is inconsistent: finished at {finish_ns} ns after {compute_ns} ns "
            f"of compute and {exposed_ns} ns of exposed communication"
        )
    return Outcome(finish_ns, compute_ns)


def _cell(rows: list[list[str]], column: str) -> int:
    names = [name.strip() for name in rows[0]]
    if names.count(column) != 1:
        raise BackendError(f"its EndToEnd.csv has no single column {column!r}: {rows[0]}")
    index = names.index(column)
    text = rows[1][index].strip() if index < len(rows[1]) else ""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise BackendError(f"its EndToEnd.csv has {text!r} for {column!r}, expected microseconds")
    return round(float(text) * _NS_PER_US)
