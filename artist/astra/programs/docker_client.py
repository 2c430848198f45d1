"""The Docker engine, called by the command `docker`: its images and containers, and its errors.

`artist.astra.programs.container` says which containers artist runs.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from artist.astra.programs.bounded_run import Completed, run_bounded
from artist.astra.programs.images import ImageEntry
from artist.errors import BackendError

SYSTEMD = Path("/run/systemd/system")
"""A folder that is there while systemd runs."""

_CALL_TIMEOUT_S = 60.0
_ENGINE_DOWN = ("Cannot connect to the Docker daemon", "error during connect", "dial unix")


class DockerEngine:
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
            BackendError: no engine answers; the message says how to start it.
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
        if entry.digest and not any(digest.startswith(entry.digest) for digest in digests):
            raise BackendError(
                f"image {entry.image} is {image_id}, expected {entry.digest}; run: {entry.obtain}"
            )
        return image_id

    def remove(self, container: str) -> None:
        """Remove a container, running or not. It is no error if there is no such container."""
        self.call("rm", "--force", "--volumes", container)

    def containers(self, label: str) -> list[tuple[str, str]]:
        """(id, value of the label) of all containers that have the label, running or not.

        Raises:
            BackendError: the engine does not answer.
        """
        form = '{{.ID}} {{.Label "' + label + '"}}'
        done = self.call("ps", "--all", "--filter", f"label={label}", "--format", form)
        if done.exit_code:
            raise BackendError(explain(done.stderr))
        rows = (line.split() for line in done.stdout.splitlines())
        return [(row[0], row[1]) for row in rows if len(row) == 2]


def _start_it() -> str:
    """What starts an engine here; containers have no systemd (`sd_booted`)."""
    if SYSTEMD.is_dir():
        return "run 'sudo systemctl start docker' (or docker/ensure-engine.sh)"
    return (
        "no systemd runs here (a container?), so run 'dockerd &' as root (or "
        "docker/ensure-engine.sh), or start the container with -v "
        "/var/run/docker.sock:/var/run/docker.sock"
    )


def explain(stderr: str, entry: ImageEntry | None = None) -> str:
    """Why the engine refused, and the command that helps."""
    lines = stderr.strip().splitlines()
    said = lines[-1].strip()[:200] if lines else "nothing"
    # The message about missing permission also holds "dial unix".
    if any(sign in stderr for sign in _ENGINE_DOWN) and "permission denied" not in stderr:
        return f"no Docker engine answers: {_start_it()}, or use --backend analytical"
    if "permission denied" in stderr and "docker.sock" in stderr:
        return "the Docker engine refuses this user: run 'sudo usermod -aG docker $USER', log in"
    if entry and re.search(r"no such image|unable to find image|no such object", stderr, re.I):
        return (
            f"image {entry.image} is not in the Docker engine; run: {entry.obtain}, or use "
            "--backend analytical, which answers the same in process"
        )
    if entry and re.search(r'"?sh"?: executable file not found', stderr):
        return f"image {entry.image} has no POSIX sh, which artist needs in it; add one"
    return f"the Docker engine refused; it said: {said!r}"
