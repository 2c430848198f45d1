"""What an ended run of ASTRA-sim means: an estimate, or an error that says why it failed.

The exit code alone is not enough: ASTRA-sim also ends with 0 after a deadlock
(`artist.astra.files.output_reader`).
"""

from __future__ import annotations

import shlex

from artist.astra.files import dialects
from artist.astra.files.output_reader import (
    IncompleteError,
    Outcome,
    parse_astra1,
    parse_astra2,
)
from artist.astra.files.render import RenderedQuery
from artist.astra.programs.bounded_run import OUTPUT_LIMIT_BYTES, Completed
from artist.errors import BackendError, BackendSettingError
from artist.estimates.query import Estimate

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


def estimate_of(done: Completed, rendered: RenderedQuery, source: str) -> Estimate:
    """The estimate of an ended run.

    Raises:
        BackendSettingError: it ended with exit code 0, but not all NPUs finished (a deadlock).
        BackendError: it failed or printed nonsense.
    """
    if done.exit_code:
        raise BackendError(_failure(done, rendered.dialect))
    try:
        outcome = _outcome(done, rendered)
    except IncompleteError as cause:
        if cause.finished == 0 and "[workload]" not in done.stdout + done.stderr:
            why = "it printed no result: is it ASTRA-sim's analytical backend?"
            raise BackendError(_describe(done, why)) from cause
        why = f"{cause}: the NPUs wait for each other for ever (or for a value set to 0)"
        raise BackendSettingError(_describe(done, why), "deadlock") from cause
    except BackendError as cause:
        raise BackendError(_describe(done, str(cause))) from cause
    return Estimate(outcome.finish_ns, outcome.compute_ns, source)


def _outcome(done: Completed, rendered: RenderedQuery) -> Outcome:
    if rendered.dialect == "astra2":
        return parse_astra2(done.stdout, rendered.npus)
    result = rendered.directory / "result" / "EndToEnd.csv"
    try:
        return parse_astra1(result.read_text(encoding="utf-8"))
    except (OSError, ValueError) as cause:
        raise BackendError("it left no readable EndToEnd.csv") from cause


def _failure(done: Completed, spoken: str) -> str:
    for other in dialects.DIALECTS.values():
        if other.name != spoken and any(x in done.stdout + done.stderr for x in other.markers):
            why = f"it speaks {other.name}, not {spoken}: set 'dialect: {other.name}' for it"
            return _describe(done, why)
    return _describe(done, MEANINGS.get(done.exit_code, "an undocumented failure"))


def _describe(done: Completed, why: str) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    last = f"; its last line was {lines[-1].strip()[:200]!r}" if lines else ""
    command = shlex.join(done.command)
    return (
        f"{done.where}{command} ended with exit code {done.exit_code}: {why}{last} "
        "(artist render --out DIR writes the files it was given)"
    )
