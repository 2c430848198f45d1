"""One running container: how it is isolated, and the shells in it that run queries.

The container's own process waits for the end of its input, which we hold. Whatever
ends artist, kill -9 included, closes it, and the container stops and is removed.
"""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import threading
import time
from pathlib import Path

from artist.astra.programs.binary import OUTPUT_LIMIT_BYTES, TimeLimitError
from artist.astra.programs.docker_client import LABEL, Engine, explain, owner
from artist.astra.programs.images import ImageEntry
from artist.errors import BackendError

START_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = 10.0
_NOBODY = "65534:65534"
_MOUNT = "/artist-jobs"  # inside the container

_WAIT_FOR_US = "echo ready; read -r _"

# Flags come from a file, one a line, and are never parsed as shell text.
_WORKER_LOOP = f"""
ulimit -f {OUTPUT_LIMIT_BYTES // 512}
echo ready
while read -r job; do
  (
    cd "{_MOUNT}/$job" || exit 125
    while read -r flag; do set -- "$@" "$flag"; done <arguments
    exec "$0" "$@" >stdout 2>stderr </dev/null
  ) &
  echo $!
  wait $!
  echo $?
done
"""


class GoneError(Exception):
    """A docker client has ended, and with it what it was attached to."""


class Container:
    """One running container and its idle workers."""

    def __init__(self, engine: Engine, entry: ImageEntry, image_id: str, folder: Path) -> None:
        self.name = f"artist-{os.getpid()}-{secrets.token_hex(4)}"
        self._engine = engine
        self._entry = entry
        self._idle: list[_Attached] = []
        self._lock = threading.Lock()
        flags = _isolation(entry, folder)
        command = ("run", "--name", self.name, *flags, image_id, "-c", _WAIT_FOR_US)
        self._main = self._attach(command)

    def run(self, job: str, timeout_s: float) -> int:
        """Exit code of the program in folder `job`.

        Raises:
            TimeLimitError: it took too long; it has been killed.
            GoneError: the container died.
        """
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        deadline_s = time.monotonic() + timeout_s
        if worker is None:
            command = ("exec", "--interactive", self.name, "sh", "-c", _WORKER_LOOP)
            worker = self._attach((*command, *self._entry.command))
        pid = ""
        try:
            worker.send(job)
            pid = worker.line(deadline_s)
            code = int(worker.line(deadline_s))
        except TimeoutError as cause:
            if pid:
                self._engine.call("exec", self.name, "sh", "-c", 'kill -9 "$0"', pid)
            worker.close()
            raise TimeLimitError(
                f"{self._entry.command[0]} in container {self.name} was killed after "
                f"{timeout_s:g} s; raise the time limit or simplify the query"
            ) from cause
        except BaseException:
            worker.close()
            raise
        with self._lock:
            self._idle.append(worker)
        return code

    def close(self) -> None:
        """Stop and remove the container."""
        with self._lock:
            workers, self._idle = self._idle, []
        for worker in (*workers, self._main):
            worker.close()
        try:
            self._engine.remove(self.name)
        except BackendError:
            return  # no engine, no container

    def _attach(self, arguments: tuple[str, ...]) -> _Attached:
        client = _Attached(self._engine.command(*arguments))
        try:
            if client.line(time.monotonic() + START_TIMEOUT_S) == "ready":
                return client
            why = "something else than our shell answered"
        except TimeoutError:
            why = f"no answer within {START_TIMEOUT_S:g} s"
        except GoneError as cause:
            why = str(cause)
        client.close()
        if arguments[0] == "exec":
            raise GoneError(why)
        raise BackendError(
            f"no container of image {self._entry.image}: {explain(why, self._entry)}"
        )


def _isolation(entry: ImageEntry, folder: Path) -> tuple[str, ...]:
    """No network, no privileges, nothing to write to but `/tmp` and the work folder."""
    user = f"{os.getuid()}:{os.getgid()}" if os.getuid() else _NOBODY
    return (
        *("--interactive", "--rm", "--pull", "never", "--network", "none", "--read-only"),
        *("--tmpfs", "/tmp", "--user", user, "--cap-drop", "ALL"),  # noqa: S108  # the container's
        *("--security-opt", "no-new-privileges"),
        *("--memory", entry.memory, "--pids-limit", str(entry.pids_limit)),
        *("--label", f"{LABEL}={owner()}"),
        *("--mount", f"type=bind,source={folder},target={_MOUNT}", "--workdir", _MOUNT),
        *("--entrypoint", "sh"),
    )


class _Attached:
    """A docker client whose pipes we hold; lines go in and out."""

    def __init__(self, command: tuple[str, ...]) -> None:
        # A session of its own: Ctrl-C is for artist, which then closes the pipes.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._pending = b""

    def send(self, line: str) -> None:
        """Raises GoneError where nobody reads any more."""
        assert self._process.stdin is not None  # for mypy: it is a pipe
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise GoneError(self._complaint()) from None

    def line(self, deadline_s: float) -> str:
        """The next line of the other side.

        Raises:
            TimeoutError: none until `deadline_s`, on the monotonic clock.
            GoneError: there will be none.
        """
        assert self._process.stdout is not None  # for mypy: it is a pipe
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                if not selector.select(max(0.0, deadline_s - time.monotonic())):
                    raise TimeoutError
                chunk = os.read(descriptor, 4096)
                if not chunk:
                    raise GoneError(self._complaint())
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line.decode(errors="replace")

    def close(self) -> None:
        """End the other side's input and wait until it has left."""
        try:
            self._process.communicate(timeout=_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        except (OSError, ValueError):
            self._process.kill()
            self._process.wait()

    def _complaint(self) -> str:
        try:
            _, stderr = self._process.communicate(timeout=_CLOSE_TIMEOUT_S)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return "it ended without a word"
        return stderr.decode(errors="replace").strip() or "it ended without a word"
