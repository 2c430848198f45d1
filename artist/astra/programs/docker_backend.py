"""The backend `astra-docker`: ASTRA-sim in one long-lived container for all queries of a run.

`docker exec` alone costs 60 to 200 ms per query, more than most queries take. Therefore there is a
worker: a shell loop in the container, started once, that reads the name of a folder and runs the
program there (`artist.astra.programs.container`).

    container            the container, its worker, and what it may do and see
    container_restarts   what happens when it dies
    docker_client        how artist calls the Docker engine
    leftovers            what a killed artist leaves behind
"""

from __future__ import annotations

import shutil
import weakref
from pathlib import Path

from artist.astra.files.render import RenderedQuery, render
from artist.astra.programs.binary_backend import TIMEOUT_S
from artist.astra.programs.bounded_run import Completed
from artist.astra.programs.container_restarts import RestartedContainer
from artist.astra.programs.docker_client import DockerEngine
from artist.astra.programs.ended_run import estimate_of
from artist.astra.programs.images import DEFAULT_IMAGE, ImageEntry, load_image
from artist.astra.programs.leftovers import remove_leftovers
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery


class DockerBackend:
    """Answers with the program of `entry`.

    The container starts with the first query. It lives until `close`, the end of a `with` block
    or the end of the process.
    """

    def __init__(
        self, entry: ImageEntry, *, timeout_s: float = TIMEOUT_S, docker: str = "docker"
    ) -> None:
        """Raises BackendError where the engine or the image is missing."""
        self._entry = entry
        engine = DockerEngine(docker)
        image_id = engine.image_id(entry)
        remove_leftovers(engine)
        self._timeout_s = timeout_s
        self._container = RestartedContainer(engine, entry, image_id)
        self._finalizer = weakref.finalize(self, self._container.close)
        # `sha256:` and twelve digits.
        self.source = f"astra-docker@{image_id[:19]}"

    def __enter__(self) -> DockerBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop and remove the container; a later query starts another."""
        self._container.close()

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query. ASTRA-sim prints no traffic, so `profile` changes nothing.

        Raises:
            BackendSettingError: ASTRA-sim would crash, hang or deadlock on it.
            BackendError: the container or the program failed, or took too long.
        """
        folder = self._container.query_folder()
        try:
            rendered = _prepare(query, folder, self._entry.dialect)
            return estimate_of(self._run(rendered), rendered, self.source)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, rendered: RenderedQuery) -> Completed:
        exit_code = self._container.run(rendered.directory, self._timeout_s)
        command = (*self._entry.command, *rendered.arguments)
        stdout, stderr = (_read(rendered.directory / name) for name in ("stdout", "stderr"))
        where = f"in image {self._entry.image}: "
        return Completed(command, exit_code, stdout, stderr, where)


def _prepare(query: LatencyQuery, folder: Path, dialect: str) -> RenderedQuery:
    """Render for a program that runs as another user, and that opens its traces for writing too."""
    rendered = render(query, folder, dialect)
    (folder / "arguments").write_text("".join(f"{flag}\n" for flag in rendered.arguments))
    for path in (folder, *folder.iterdir()):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return rendered


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def docker_backend(argument: str, fallback: LatencyBackend | None) -> DockerBackend:
    """The backend that `--backend astra-docker[:NAME]` names: an image of `images.yaml`.

    Raises:
        ConfigError: no such image.
        BackendError: there is no Docker engine, or it lacks the image.
    """
    return DockerBackend(load_image(argument or DEFAULT_IMAGE))
