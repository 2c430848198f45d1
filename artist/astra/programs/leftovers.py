"""What a killed artist leaves behind in the Docker engine and on disk, and its removal.

Every container and every work folder of artist names the process that it serves (`owner`). If
this process has ended, they are leftovers; otherwise they may be in use.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
from pathlib import Path

from artist.astra.programs.docker_client import Engine

LABEL = "artist.run"
"""The label of every container of artist. Its value is the name of the process it serves."""


def remove_leftovers(engine: Engine) -> int:
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


def owner() -> str:
    """The name of this process: no other process of this machine has or had it.

    It is `host:namespace:number:start`, as the kernel gives process numbers away again.
    """
    return f"{_space()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether the process with this name has ended.

    False for a process of another host or namespace: nothing is known about it here.
    """
    match = re.fullmatch(r"(.+):([0-9]+):([0-9]+)", name)
    if match is None or match[1] != _space():
        return False
    return _started(int(match[2])) != int(match[3])


def _remove_folders() -> int:
    removed = 0
    for folder in Path(tempfile.gettempdir()).glob("artist-docker+*"):
        _, *name, _ = folder.name.split("+")
        if is_gone(":".join(name)):
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def _space() -> str:
    """Host and process namespace: in another one the same number is another process."""
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    except OSError:
        namespace = "0"
    return f"{socket.gethostname()}:{namespace}"


def _started(pid: int) -> int:
    """When a process started, in the kernel's clock ticks; 0 if unknown, -1 if it has ended."""
    try:
        # Fields are counted from behind the program's name, which stands in brackets and may
        # itself hold spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return -1
        return 0 if _exists(pid) else -1  # a system without /proc
    except OSError:
        return -1
    return -1 if fields[0] in "ZX" else int(fields[19])  # zombie or dead; field 22, the start


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
