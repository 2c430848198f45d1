"""`astra-binary`: ASTRA-sim as an executable on this machine, one run per query.

A run is a rendered temporary folder, a command in it and a strict look at what came
out; `complete` turns the three into an estimate or a `BackendError`, here and in the container.
"""

from __future__ import annotations

import hashlib
import os
import selectors
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from artist.astra.files import dialects
from artist.astra.files.output import IncompleteError, Outcome, parse_astra1, parse_astra2
from artist.astra.files.render import RenderedQuery, render
from artist.errors import BackendError, BackendSettingError, ConfigError
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery

# The largest query measured (1,024 NPUs) takes a minute.
TIMEOUT_S = 600.0

OUTPUT_LIMIT_BYTES = 256 * 2**20

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


class TimeLimitError(BackendError):
    """A run took longer than it may."""


class OutputLimitError(BackendError):
    """A run printed more than is useful."""


@dataclass(frozen=True, slots=True)
class Completed:
    """One ended run. `exit_code` is the shell's: 128 + N for signal N; `where` begins messages."""

    command: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    where: str = ""


class BinaryBackend:
    """Runs `binary` for every query, without a shell; up to `jobs` at a time."""

    def __init__(
        self,
        binary: Path,
        *,
        dialect: str = "astra2",
        timeout_s: float = TIMEOUT_S,
        jobs: int | None = None,
    ) -> None:
        """Raises BackendError where the file is missing or cannot be executed."""
        self._binary = _executable(binary)
        self._dialect = dialects.dialect(dialect).name
        self._timeout_s = timeout_s
        self._jobs = jobs or core_count()
        digest = hashlib.sha256(self._binary.read_bytes()).hexdigest()
        self.source = f"astra-binary@sha256:{digest[:12]}"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query. The program tells no traffic, so `profile` changes nothing.

        Raises:
            BackendSettingError: ASTRA-sim would crash, hang or deadlock on it.
            BackendError: the program failed, took too long or printed nonsense.
        """
        with tempfile.TemporaryDirectory(prefix="artist-astra-") as folder:
            rendered = render(query, Path(folder), self._dialect)
            command = (str(self._binary), *rendered.arguments)
            done = run_bounded(command, self._timeout_s, cwd=rendered.directory)
            return complete(done, rendered, self.source)

    def estimate_many(self, queries: Sequence[LatencyQuery]) -> list[Estimate]:
        """Answers in the order of the queries, found in parallel.

        Raises:
            BackendError: that of the first query that failed.
        """
        return in_parallel(self.estimate, queries, self._jobs)


def in_parallel(
    estimate: Callable[[LatencyQuery], Estimate],
    queries: Sequence[LatencyQuery],
    jobs: int,
    abandon: Callable[[], None] = lambda: None,
) -> list[Estimate]:
    """Answers in order, up to `jobs` at a time; after an error no more are begun.

    After Ctrl-C `abandon` has to end those that are under way.
    """
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(estimate, query) for query in queries]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            if not isinstance(error, Exception):
                abandon()
            raise


def complete(done: Completed, rendered: RenderedQuery, source: str) -> Estimate:
    """The estimate of an ended run.

    Raises:
        BackendSettingError: it ended well but not all NPUs finished: a deadlock.
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


def run_bounded(command: Sequence[str], timeout_s: float, *, cwd: Path | None = None) -> Completed:
    """Run a command without a shell and without input, within time and output limits.

    Raises:
        TimeLimitError, OutputLimitError: it took too long or printed too much, and was killed.
        BackendError: it could not be started.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as cause:
        reason = cause.strerror or str(cause)
        raise BackendError(f"{command[0]}: cannot be run ({reason}); check the path") from cause
    with process:
        try:
            stdout, stderr = _collect(process, time.monotonic() + timeout_s)
        except TimeoutError as cause:
            raise TimeLimitError(
                f"{shlex.join(command)} was killed after {timeout_s:g} s; "
                "raise the time limit or simplify the query"
            ) from cause
        finally:
            if process.poll() is None:
                process.kill()
        process.wait()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Completed(tuple(command), code, stdout, stderr)


def _collect(process: subprocess.Popen[bytes], deadline_s: float) -> tuple[str, str]:
    streams = [stream for stream in (process.stdout, process.stderr) if stream]
    texts = {stream.fileno(): bytearray() for stream in streams}
    with selectors.DefaultSelector() as selector:
        for descriptor in texts:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                texts[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
            if sum(map(len, texts.values())) > OUTPUT_LIMIT_BYTES:
                raise OutputLimitError(f"{process.args!r}: {MEANINGS[153]}; it was killed")
    # Both pipes are closed, but the program may linger.
    try:
        process.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired as cause:
        raise TimeoutError from cause
    stdout, stderr = (text.decode(errors="replace") for text in texts.values())
    return stdout, stderr


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _executable(binary: Path) -> Path:
    path = binary.absolute()
    if not path.is_file():
        raise BackendError(f"{binary}: no such file; give the path of an ASTRA-sim executable")
    if not os.access(path, os.X_OK):
        raise BackendError(f"{binary}: not executable; run: chmod +x {shlex.quote(str(binary))}")
    return path


def binary_backend(argument: str, fallback: LatencyBackend | None) -> BinaryBackend:
    """The backend that `--backend astra-binary:PATH` names.

    Raises:
        ConfigError: no path is given.
        BackendError: there is no such executable.
    """
    if not argument:
        raise ConfigError("backend astra-binary: name the executable, astra-binary:PATH")
    return BinaryBackend(Path(argument))
