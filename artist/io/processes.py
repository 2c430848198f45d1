"""Unique names of processes, whether they have ended, and how many cores there are."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def owner() -> str:
    """A name of this process that no other process of any machine has or had.

    It is `space:number:start`; the start is needed because the kernel reuses process numbers.
    """
    return f"{_space()}:{os.getpid()}:{_started(os.getpid())}"


def is_gone(name: str) -> bool:
    """Whether the process with this name has certainly ended.

    False for a process of another machine, boot or namespace, about which nothing is known.
    """
    match = re.fullmatch(r"(.+):([0-9]+):([0-9]+)", name)
    if match is None or match[1] != _space():
        return False
    started = _started(int(match[2]))
    return started != 0 and started != int(match[3])


def _space() -> str:
    """16 hexadecimal digits that identify the boot and the process namespace.

    The same number is another process in another namespace. Machines can share a host name, but
    boots do not share an id.
    """
    try:
        namespace = Path("/proc/self/ns/pid").readlink().name
        space = f"{_BOOT.read_text(encoding='ascii').strip()} {namespace}"
    except (OSError, ValueError):  # a system without /proc
        space = socket.gethostname()
    return hashlib.sha256(space.encode()).hexdigest()[:16]


def _started(pid: int) -> int:
    """When a process started, in the kernel's clock ticks; 0 if unknown, -1 if it has ended."""
    try:
        # Fields are counted after the program's name, which is in brackets and may itself contain
        # spaces and brackets.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended, or /proc hides it, or there is no /proc
        return 0 if _exists(pid) else -1
    return -1 if fields[0] in "ZX" else int(fields[19])  # zombie or dead; field 22, the start


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
