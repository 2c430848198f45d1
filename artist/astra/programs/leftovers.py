"""What a killed artist leaves behind in the Docker engine and on disk, and its removal.

Every container and every work folder of artist names the process that it serves (`owner`). After
this process has ended, they are leftovers; before, they may be in use.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from artist.astra.programs.docker_client import DockerEngine
from artist.io.processes import is_gone, owner

LABEL = "artist.run"
"""The label of every container of artist. Its value is the name of the process it serves."""


def remove_leftovers(engine: DockerEngine) -> int:
    """Remove containers and work folders of processes that are gone; returns how many.

    Raises:
        BackendError: the engine does not answer.
    """
    left = [container for container, name in engine.containers(LABEL) if is_gone(name)]
    for container in left:
        engine.remove(container)
    return len(left) + _remove_folders()


def work_folder() -> Path:
    """A new folder for the queries of one container. Other users may enter it, but not list it.

    The container's user is not ours, so everything that the container uses is open to all.
    """
    name = owner().replace(":", "+")
    folder = Path(tempfile.mkdtemp(prefix=f"artist-docker+{name}+"))
    folder.chmod(0o711)
    return folder


def _remove_folders() -> int:
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob("artist-docker+*"):
        _, *name, _ = folder.name.split("+")
        if is_gone(":".join(name)):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed
