"""What happens when a container dies: it is restarted, once per query.

the first query                 starts a container
the container dies              the query that was running in it starts another one, and runs
                                there again
it dies again in that query     the query fails
the backend is closed           the container and the work folder are removed; a later query
                                starts another container
the process is killed           the container ends by itself (`artist.astra.programs.container`);
                                the next backend removes the work folder (`leftovers`)
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from artist.astra.programs.container import Container, GoneError
from artist.astra.programs.docker_client import DockerEngine
from artist.astra.programs.images import ImageEntry
from artist.astra.programs.leftovers import work_folder
from artist.errors import BackendError


class RestartedContainer:
    """The container of one backend and its work folder, each made when it is first needed.

    It does not refer to the backend, whose finalizer closes it.
    """

    def __init__(self, engine: DockerEngine, entry: ImageEntry, image_id: str) -> None:
        self._engine = engine
        self._entry = entry
        self._image_id = image_id
        self._pid = os.getpid()
        self._container: Container | None = None
        self._folder: Path | None = None

    def query_folder(self) -> Path:
        """A path for the folder of one query, inside the work folder that the container sees.

        Raises:
            BackendError: this is not the process that made the backend.
        """
        return self._work_folder() / secrets.token_hex(8)

    def run(self, folder: Path, timeout_s: float) -> int:
        """Exit code of the program in the folder of a query.

        Raises:
            TimeLimitError: it took too long; it has been killed.
            BackendError: no container can be started, or it died twice.
        """
        for _ in range(2):
            container = self._started()
            try:
                return container.run(folder.name, timeout_s)
            except GoneError as cause:
                died = str(cause)
                container.close()
                self._container = None
        raise BackendError(
            f"the container of image {self._entry.image} died twice during one query ({died}): "
            "raise its 'memory' in images.yaml if the kernel killed it (see: dmesg), then run again"
        )

    def close(self) -> None:
        """Remove the container and the work folder."""
        if os.getpid() != self._pid:
            return  # a fork of the process: the container is not its own
        container, self._container = self._container, None
        folder, self._folder = self._folder, None
        if container is not None:
            container.close()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _started(self) -> Container:
        if self._container is None:
            folder = self._work_folder()
            self._container = Container(self._engine, self._entry, self._image_id, folder)
        return self._container

    def _work_folder(self) -> Path:
        if os.getpid() != self._pid:
            raise BackendError(
                "a DockerBackend works only in the process that created it: create one in each"
            )
        if self._folder is None:
            self._folder = work_folder()
        return self._folder
