"""`astra-docker`: ASTRA-sim in one long-lived container, which answers all queries of a run.

`docker exec` alone costs 60 to 200 ms a query, more than most queries. So each parallel
query has a worker instead: a shell loop in the container, started once, that reads
the name of a folder and runs the program in it (`docker_container`).
"""

from __future__ import annotations

import os
import secrets
import shutil
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path

from artist.astra.files.render import RenderedQuery, render
from artist.astra.programs.binary import TIMEOUT_S, Completed, complete, core_count, in_parallel
from artist.astra.programs.container import Container, GoneError
from artist.astra.programs.docker_client import Engine, work_folder
from artist.astra.programs.images import DEFAULT_IMAGE, ImageEntry, load_image
from artist.errors import BackendError
from artist.estimates.query import Estimate, LatencyBackend, LatencyQuery


class DockerBackend:
    """Answers with the program of `entry`, up to `jobs` queries at a time.

    The container starts with the first query and lives until `close`, the end of a `with`
    block or the end of the process. One that dies is restarted once per query.
    """

    def __init__(
        self,
        entry: ImageEntry,
        *,
        timeout_s: float = TIMEOUT_S,
        jobs: int | None = None,
        docker: str = "docker",
    ) -> None:
        """Raises BackendError where the engine or the image is missing."""
        self._entry = entry
        self._engine = Engine(docker)
        self._image_id = self._engine.image_id(entry)
        self._engine.reap()
        self._timeout_s = timeout_s
        self._jobs = jobs or core_count()
        self._slots = threading.BoundedSemaphore(self._jobs)
        self._lock = threading.Lock()
        self._session = _Session(self._engine, os.getpid())
        self._finalizer = weakref.finalize(self, self._session.close)
        self.source = f"astra-docker@{self._image_id[:19]}"

    def __enter__(self) -> DockerBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop and remove the container; a later query starts another."""
        with self._lock:
            self._session.close()

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query. The program tells no traffic, so `profile` changes nothing.

        Raises:
            BackendSettingError: ASTRA-sim would crash, hang or deadlock on it.
            BackendError: the container or the program failed, or took too long.
        """
        with self._slots:
            with self._lock:
                folder = self._session.folder() / secrets.token_hex(8)
            try:
                rendered = _prepare(query, folder, self._entry.dialect)
                return complete(self._run(rendered), rendered, self.source)
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def estimate_many(self, queries: Sequence[LatencyQuery]) -> list[Estimate]:
        """Answers in the order of the queries, found in parallel.

        Raises:
            BackendError: that of the first query that failed.
        """
        return in_parallel(self.estimate, queries, self._jobs, self.close)

    def _run(self, rendered: RenderedQuery) -> Completed:
        session = self._session
        closed_before = session.times_closed
        for _ in range(2):
            container = self._container()
            try:
                code = container.run(rendered.directory.name, self._timeout_s)
            except GoneError as cause:
                died = str(cause)
                self._retire(container)
                if session.times_closed != closed_before:
                    raise BackendError("the container was closed during the query") from cause
                continue
            command = (*self._entry.command, *rendered.arguments)
            stdout, stderr = (_read(rendered.directory / name) for name in ("stdout", "stderr"))
            where = f"in image {self._entry.image}: "
            return Completed(command, code, stdout, stderr, where)
        raise BackendError(
            f"the container of image {self._entry.image} died twice during one query ({died}): "
            "raise its 'memory' in images.yaml if the kernel killed it (see: dmesg), then run again"
        )

    def _container(self) -> Container:
        with self._lock:
            if self._session.container is None:
                folder = self._session.folder()
                self._session.container = Container(
                    self._engine, self._entry, self._image_id, folder
                )
            return self._session.container

    def _retire(self, container: Container) -> None:
        with self._lock:
            container.close()
            if self._session.container is container:
                self._session.container = None


class _Session:
    """What has to be given back. Kept apart from the backend, so that its end can close it."""

    def __init__(self, engine: Engine, pid: int) -> None:
        self.container: Container | None = None
        self.times_closed = 0
        self._engine = engine
        self._pid = pid
        self._folder: Path | None = None

    def folder(self) -> Path:
        if os.getpid() != self._pid:
            raise BackendError("a DockerBackend serves the process that made it: make one in each")
        if self._folder is None:
            self._folder = work_folder()
        return self._folder

    def close(self) -> None:
        if os.getpid() != self._pid:
            return
        self.times_closed += 1
        container, self.container = self.container, None
        folder, self._folder = self._folder, None
        if container is not None:
            container.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _prepare(query: LatencyQuery, folder: Path, dialect: str) -> RenderedQuery:
    """Render for a program that runs as another user, and opens its traces for writing too."""
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
