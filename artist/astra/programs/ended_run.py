"""The result of an ended run of ASTRA-sim: an estimate, or an error that says why it failed.

The exit code alone is not enough: ASTRA-sim also ends with 0 after a deadlock. Therefore every NPU
has to report once that it finished, and all NPUs have to report the same compute time. A crash may
be harmless: ASTRA-sim can abort after all results, because it frees the same memory twice.
"""

from __future__ import annotations

import csv
import re
import shlex
from dataclasses import dataclass

from artist.astra.files import dialects
from artist.astra.files.render import RenderedQuery
from artist.astra.programs.bounded_run import OUTPUT_LIMIT_BYTES, Completed
from artist.errors import BackendError, BackendSettingError
from artist.estimates.query import Estimate

_FINISHED = re.compile(
    r"\[workload\] \[info\] sys\[(\d+)\] finished, (\d+) cycles, "
    r"exposed communication (\d+) cycles\.$"
)

_NS_PER_US = 1000


@dataclass(frozen=True, slots=True)
class PrintedResult:
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


def parse_astra2(stdout: str, npus: int) -> PrintedResult:
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
    return PrintedResult(max(finish_ns.values()), compute_ns.pop())


def parse_astra1(end_to_end_csv: str) -> PrintedResult:
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
    # Each of the three is rounded to nanoseconds separately, so their sum may be off by one.
    if compute_ns < 0 or exposed_ns < 0 or abs(finish_ns - compute_ns - exposed_ns) > 1:
        raise BackendError(
            f"its EndToEnd.csv is inconsistent: finished at {finish_ns} ns after {compute_ns} ns "
            f"of compute and {exposed_ns} ns of exposed communication"
        )
    return PrintedResult(finish_ns, compute_ns)


def _cell(rows: list[list[str]], column: str) -> int:
    names = [name.strip() for name in rows[0]]
    if names.count(column) != 1:
        raise BackendError(f"its EndToEnd.csv has no single column {column!r}: {rows[0]}")
    index = names.index(column)
    text = rows[1][index].strip() if index < len(rows[1]) else ""
    if not re.fullmatch(r"\d+(\.\d+)?", text):
        raise BackendError(f"its EndToEnd.csv has {text!r} for {column!r}, expected microseconds")
    return round(float(text) * _NS_PER_US)


# What ASTRA-sim's exit codes mean, and a shell's: 126, 127 and 128 + N for signal N.
MEANINGS = {
    1: "a system, workload or memory file is missing, or holds an unknown value",
    126: "the file is not executable",
    127: "there is no such file, or a library that it needs is missing",
    134: "it aborted: a file is not valid JSON, or an assertion failed",
    136: "it divided by zero: preferred_dataset_splits reached it as 0",
    137: "it was killed, most likely for using too much memory",
    139: "it crashed (segmentation fault)",
    153: f"it printed more than {OUTPUT_LIMIT_BYTES >> 20} MiB",
    255: "a flag is missing or unknown, or the network file is refused",
}

CRASHES = (134, 139)
"""Exit codes of crashes that may come after every NPU has printed its result."""


def estimate_of(done: Completed, rendered: RenderedQuery, source: str) -> Estimate:
    """The estimate of an ended run.

    Raises:
        BackendSettingError: it ended with exit code 0, but not all NPUs finished (a deadlock).
        BackendError: it failed or printed nonsense.
    """
    failed = done.exit_code != 0
    if failed and (done.exit_code not in CRASHES or rendered.dialect != "astra2"):
        raise BackendError(_failure(done, rendered.dialect))
    try:
        outcome = _outcome(done, rendered)
    except IncompleteError as cause:
        if failed:
            raise BackendError(_failure(done, rendered.dialect, f"; {cause}")) from cause
        if cause.finished == 0 and "[workload]" not in done.stdout + done.stderr:
            why = "it printed no result: is it ASTRA-sim's analytical backend?"
            raise BackendError(_describe(done, why)) from cause
        why = f"{cause}: the NPUs wait for each other forever (or for a value set to 0)"
        raise BackendSettingError(_describe(done, why), "deadlock") from cause
    except BackendError as cause:
        raise BackendError(_describe(done, str(cause))) from cause
    return Estimate(outcome.finish_ns, outcome.compute_ns, source)


def _outcome(done: Completed, rendered: RenderedQuery) -> PrintedResult:
    if rendered.dialect == "astra2":
        return parse_astra2(done.stdout, rendered.npus)
    result = rendered.directory / "result" / "EndToEnd.csv"
    try:
        return parse_astra1(result.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise BackendError("it left no readable EndToEnd.csv") from cause


def _failure(done: Completed, spoken: str, finished: str = "") -> str:
    for other in dialects.DIALECTS.values():
        if other.name != spoken and any(x in done.stdout + done.stderr for x in other.markers):
            why = f"it speaks {other.name}, not {spoken}: set 'dialect: {other.name}' for it"
            return _describe(done, why)
    return _describe(done, MEANINGS.get(done.exit_code, "an undocumented failure") + finished)


def _describe(done: Completed, why: str) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    last = f"; its last line was {lines[-1].strip()[:200]!r}" if lines else ""
    command = shlex.join(done.command)
    return (
        f"{done.where}{command} ended with exit code {done.exit_code}: {why}{last} "
        "(artist render --out DIR writes the files it was given)"
    )
