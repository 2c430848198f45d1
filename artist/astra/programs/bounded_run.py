"""Runs commands within limits of time and output."""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from artist.errors import BackendError

OUTPUT_LIMIT_BYTES = 256 * 2**20


class TimeLimitError(BackendError):
    """A run took longer than it may."""


class OutputLimitError(BackendError):
    """A run printed more than it may."""


@dataclass(frozen=True, slots=True)
class Completed:
    """One ended run.

    `exit_code` is the shell's, 128 + N for signal N. `where` begins messages about the run.
    """

    command: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    where: str = ""


def run_bounded(command: Sequence[str], timeout_s: float, *, cwd: Path | None = None) -> Completed:
    """Run a command without a shell and without input, within time and output limits.

    Raises:
        TimeLimitError: it took too long; it was killed.
        OutputLimitError: it printed too much; it was killed.
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
    """(standard output, standard error) of a process that ends before the deadline."""
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
                limit = f"{OUTPUT_LIMIT_BYTES >> 20} MiB"
                raise OutputLimitError(
                    f"{process.args!r}: it printed more than {limit}; it was killed"
                )
    # A program may close both pipes and still run.
    try:
        process.wait(max(0.0, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired as cause:
        raise TimeoutError from cause
    stdout, stderr = (text.decode(errors="replace") for text in texts.values())
    return stdout, stderr
