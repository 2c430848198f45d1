"""One running container, how it is isolated, and the shell in it (its worker) that runs queries.

The program in the container is not trusted. It has no network and no privileges, it can write
only to `/tmp` and to the work folder, and its memory and its processes are limited.

The first process of the container waits for the end of its input, which artist holds open.
Whatever ends artist, `kill -9` included, closes this input. The container then stops, and the
engine removes it.

The worker is a shell loop in the container. It reads the name of a folder from its input, prints
the process number of the program that it starts there, waits, and prints the exit code:

    artist -> worker    3f2a91
    worker -> artist    17
    worker -> artist    0
"""

from __future__ import annotations

import os
import secrets
import selectors
import subprocess
import time
from pathlib import Path

from artist.astra.programs.bounded_run import OUTPUT_LIMIT_BYTES, TimeLimitError
from artist.astra.programs.docker_client import DockerEngine, explain
from artist.astra.programs.images import ImageEntry
from artist.astra.programs.leftovers import LABEL
from artist.errors import BackendError
from artist.io.processes import owner

# The work folder inside the container.
MOUNT = "/artist-jobs"

_NOBODY = "65534:65534"


def isolation(entry: ImageEntry, folder: Path) -> tuple[str, ...]:
    """The flags for a container that sees `folder` and nothing else of this machine."""
    # The program is never root, neither in the container nor in the files that it writes.
    user = f"{os.getuid()}:{os.getgid()}" if os.getuid() else _NOBODY
    return (
        # It ends when its input ends, and is then removed (`artist.astra.programs.container`).
        *("--interactive", "--rm"),
        # An image that is missing is an error: pulling it here would take minutes unasked.
        *("--pull", "never"),
        *("--network", "none", "--read-only"),
        *("--tmpfs", "/tmp"),  # noqa: S108  # the container's
        *("--user", user, "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
        *("--memory", entry.memory, "--pids-limit", str(entry.pids_limit)),
        # Names the process that it serves, for `remove_leftovers`.
        *("--label", f"{LABEL}={owner()}"),
        *("--mount", f"type=bind,source={folder},target={MOUNT}", "--workdir", MOUNT),
        *("--entrypoint", "sh"),
    )


START_TIMEOUT_S = 60.0
_CLOSE_TIMEOUT_S = 10.0

_WAIT_FOR_END_OF_INPUT = "echo ready; read -r _"

# Flags come from a file, one per line, and are never parsed as shell text. `ulimit -f` counts
# blocks of 512 bytes.
_WORKER_LOOP = f"""
ulimit -f {OUTPUT_LIMIT_BYTES // 512}
echo ready
while read -r folder; do
  (
    cd "{MOUNT}/$folder" || exit 125
    while read -r flag; do set -- "$@" "$flag"; done <arguments
    exec "$0" "$@" >stdout 2>stderr </dev/null
  ) &
  echo $!
  wait $!
  echo $?
done
"""


class GoneError(Exception):
    """A docker client has ended, and with it the process that it was attached to."""


class Container:
    """One running container and its worker."""

    def __init__(
        self, engine: DockerEngine, entry: ImageEntry, image_id: str, folder: Path
    ) -> None:
        self.name = f"artist-{os.getpid()}-{secrets.token_hex(4)}"
        self._engine = engine
        self._entry = entry
        self._worker: _AttachedClient | None = None
        flags = isolation(entry, folder)
        command = ("run", "--name", self.name, *flags, image_id, "-c", _WAIT_FOR_END_OF_INPUT)
        self._main = self._attach(command)

    def run(self, folder_name: str, timeout_s: float) -> int:
        """Run the program in a folder of the work folder; its exit code.

        Raises:
            TimeLimitError: it took too long; it has been killed.
            GoneError: the container died.
            BackendError: the engine does not answer.
        """
        deadline_s = time.monotonic() + timeout_s
        worker, self._worker = self._worker, None
        if worker is None:
            command = ("exec", "--interactive", self.name, "sh", "-c", _WORKER_LOOP)
            worker = self._attach((*command, *self._entry.command))
        pid = ""
        try:
            worker.send(folder_name)
            pid = worker.line(deadline_s)
            code = int(worker.line(deadline_s))
        except TimeoutError as cause:
            # Ending the worker alone would leave the program running.
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
        self._worker = worker
        return code

    def close(self) -> None:
        """Stop and remove the container."""
        if self._worker is not None:
            self._worker.close()
        self._main.close()
        try:
            self._engine.remove(self.name)
        except BackendError:
            return  # no engine, no container

    def _attach(self, arguments: tuple[str, ...]) -> _AttachedClient:
        """Start a docker client, and wait until the shell in the container answers.

        Raises:
            GoneError: the container has died.
            BackendError: no container starts.
        """
        client = _AttachedClient(self._engine.command(*arguments))
        try:
            if client.line(time.monotonic() + START_TIMEOUT_S) == "ready":
                return client
            why = "something other than artist's shell answered"
        except TimeoutError:
            why = f"no answer within {START_TIMEOUT_S:g} s"
        except GoneError as cause:
            why = str(cause)
        client.close()
        # If no worker starts (exec), the container has died. If no container starts (run), another
        # attempt would fail too.
        if arguments[0] == "exec":
            raise GoneError(why)
        raise BackendError(
            f"no container of image {self._entry.image}: {explain(why, self._entry)}"
        )


class _AttachedClient:
    """A docker client whose pipes artist holds. Lines go in and come out."""

    def __init__(self, command: tuple[str, ...]) -> None:
        # In a session of its own it does not get Ctrl-C: artist does, and closes the pipes.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._pending = b""

    def send(self, line: str) -> None:
        """Send a line.

        Raises:
            GoneError: the other side does not read any more.
        """
        assert self._process.stdin is not None  # for mypy: it is a pipe
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except OSError:
            raise GoneError(self._complaint()) from None

    def line(self, deadline_s: float) -> str:
        """The next line of the other side.

        Raises:
            TimeoutError: there is none until `deadline_s`, on the monotonic clock.
            GoneError: the other side has ended.
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
        """End the input of the other side, and wait until the other side has ended."""
        try:
            self._process.communicate(timeout=_CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        except (OSError, ValueError):
            self._process.kill()
            self._process.wait()

    def _complaint(self) -> str:
        """What the other side printed to its standard error before it ended."""
        try:
            _, stderr = self._process.communicate(timeout=_CLOSE_TIMEOUT_S)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            return "it ended without output"
        return stderr.decode(errors="replace").strip() or "it ended without output"
