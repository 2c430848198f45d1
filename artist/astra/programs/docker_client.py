"""The Docker engine behind its command line: what it has, why it refused, what was left in it.

Every container and work folder of artist names the process that it serves, so that what a
killed artist left behind can be told from what is in use.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

from artist.astra.programs.binary import Completed, run_bounded
from artist.astra.programs.images import ImageEntry
from artist.errors import BackendError

LABEL = "artist.run"

_CALL_TIMEOUT_S = 60.0
_ENGINE_DOWN = ("Cannot connect to the Docker daemon", "error during connect", "dial unix")


class Engine:
    """Calls of the `docker` command. Nothing is kept between them."""

    def __init__(self, docker: str = "docker") -> None:
        self._docker = docker

    def command(self, *arguments: str) -> tuple[str, ...]:
        """A command line for the engine.

        Raises:
            BackendError: Docker is not installed.
        """
        if shutil.which(self._docker) is None:
            raise BackendError(
                f"{self._docker!r} is not installed: run 'apt-get install docker.io' "
                "(or docker/ensure-engine.sh), or use --backend analytical"
            )
        return (self._docker, *arguments)

    def call(self, *arguments: str) -> Completed:
        """Run a short command and return what it said, whatever its exit code.

        Raises:
            BackendError: Docker is not installed or does not answer.
        """
        return run_bounded(self.command(*arguments), _CALL_TIMEOUT_S)

    def version(self) -> str:
        """The engine's version.

        Raises:
            BackendError: no engine answers; the message says how to start one.
        """
        done = self.call("version", "--format", "{{.Server.Version}}")
        if done.exit_code:
            raise BackendError(explain(done.stderr))
        return done.stdout.strip()

    def image_id(self, entry: ImageEntry) -> str:
        """The id (`sha256:...`) of an image that the engine has.

        Raises:
            BackendError: the engine or the image is missing, or the image is another one.
        """
        form = "{{.Id}} {{range .RepoDigests}}{{.}} {{end}}"
        done = self.call("image", "inspect", "--format", form, entry.image)
        if done.exit_code:
            raise BackendError(explain(done.stderr, entry))
        image_id, *pulled = done.stdout.split()
        digests = [image_id, *(name.partition("@")[2] for name in pulled)]
        if entry.digest and not any(found.startswith(entry.digest) for found in digests):
            raise BackendError(
                f"image {entry.image} is {image_id}, expected {entry.digest}; run: {entry.obtain}"
            )
        return image_id

    def remove(self, container: str) -> None:
        """Remove a container, running or not; one that is gone is no error."""
        self.call("rm", "--force", "--volumes", container)

    def reap(self) -> int:
        """Remove containers and work folders of artist processes that are gone; returns how many.

        Raises:
            BackendError: the engine does not answer.
        """
        form = '{{.ID}} {{.Label "' + LABEL + '"}}'
        done = self.call("ps", "--all", "--filter", f"label={LABEL}", "--format", form)
        if done.exit_code:
            raise BackendError(explain(done.stderr))
        rows = (line.split() for line in done.stdout.splitlines())
        dead = [row[0] for row in rows if len(row) == 2 and is_gone(row[1])]
        for container in dead:
            self.remove(container)
        return len(dead) + _reap_folders()


def explain(stderr: str, entry: ImageEntry | None = None) -> str:
    """Why the engine refused, and the command that helps."""
    lines = stderr.strip().splitlines()
    said = lines[-1].strip()[:200] if lines else "nothing"
    if any(sign in stderr for sign in _ENGINE_DOWN) and "permission denied" not in stderr:
        return (
            "no Docker engine answers: run 'sudo systemctl start docker' (or "
            "docker/ensure-engine.sh), or use --backend analytical"
        )
    if "permission denied" in stderr and "docker.sock" in stderr:
        return "the Docker engine refuses this user: run 'sudo usermod -aG docker $USER', log in"
    if entry and re.search(r"no such image|unable to find image|no such object", stderr, re.I):
        return f"image {entry.image} is not in the Docker engine; run: {entry.obtain}"
    if entry and re.search(r'"?sh"?: executable file not found', stderr):
        return f"image {entry.image} has no POSIX sh, which artist needs in it; add one"
    return f"the Docker engine refused; it said: {said!r}"


def owner() -> str:
    """Names this process among all of this machine, those of the past included."""
    return f"{_space()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether a process named by `owner` has ended; one seen from elsewhere never has."""
    match = re.fullmatch(r"(.+):([0-9]+):([0-9]+)", name)
    if match is None or match[1] != _space():
        return False
    return _started(int(match[2])) != int(match[3])


def work_folder() -> Path:
    """A new folder for one container's queries, which other users may enter but not list.

    The container's user is not ours, so what it uses has to be open to all.
    """
    name = owner().replace(":", "+")
    folder = Path(tempfile.mkdtemp(prefix=f"artist-docker+{name}+"))
    folder.chmod(0o711)
    return folder


def _reap_folders() -> int:
    reaped = 0
    for folder in Path(tempfile.gettempdir()).glob("artist-docker+*"):
        _, *name, _ = folder.name.split("+")
        if is_gone(":".join(name)):
            shutil.rmtree(folder, ignore_errors=True)
            reaped += 1
    return reaped


def _space() -> str:
    """Host and process namespace: process numbers of another one mean nothing here."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        namespace = "0"
    return f"{socket.gethostname()}:{namespace}"


def _started(pid: int) -> int:
    """When a process started, in the kernel's clock ticks; 0 where unknown, -1 if it has ended."""
    try:
        # The program's name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return -1
        return 0 if _exists(pid) else -1
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[19])


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
