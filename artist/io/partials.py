"""Temporary names beside an output, and the removal of those that a killed process left.

A name contains the process that writes there, which distinguishes leftovers from files in progress:

    .report.html.9f86d081884c7d65-4711-530233-0.partial     a file or folder that is being written
    .run.9f86d081884c7d65-4711-530233-1.former              holds a folder that is being replaced
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import stat
from pathlib import Path

from artist.io.processes import is_gone, owner

PARTIAL = "partial"
FORMER = "former"

_OURS = re.compile(r"([0-9a-f]{16}-[0-9]+-[0-9]+)-[0-9]+\.(partial|former)")
_ANY = re.compile(rf"\..*\.{_OURS.pattern}")

_LONGEST = 40  # characters of an output's name, each of at most 4 bytes
_numbers = itertools.count()


def partial_path(path: Path, kind: str = PARTIAL) -> Path:
    """A fresh temporary name next to `path`. It names this process (`owner`)."""
    name = owner().replace(":", "-")
    whole = path.absolute()  # Arrow takes `a:b` for an address
    return whole.with_name(f"{_prefix(whole)}{name}-{next(_numbers)}.{kind}")


def partials(path: Path) -> list[Path]:
    """Temporary files and folders of writers of `path` that are still writing or were killed."""
    folder, prefix = path.absolute().parent, _prefix(path)
    if not folder.is_dir():
        return []
    return sorted(
        one
        for one in folder.iterdir()
        if one.name.startswith(prefix) and _OURS.fullmatch(one.name, len(prefix))
    )


def is_partial(path: Path) -> bool:
    """Whether this is a temporary name of artist, for any output."""
    return _ANY.fullmatch(path.name) is not None


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left; files of living processes stay.

    A folder that was moved away to be replaced is put back if the new one never came.
    """
    for left in partials(path):
        match = _OURS.search(left.name)
        if match and is_gone(match[1].replace("-", ":")):
            _put_back(left, path)
            remove(left)


def remove(path: Path) -> None:
    """Remove a file or a folder if it is there; other things, such as devices, stay."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISDIR(mode):
        shutil.rmtree(path, ignore_errors=True)
    elif stat.S_ISREG(mode):
        path.unlink(missing_ok=True)


def _put_back(left: Path, path: Path) -> None:
    former = left / path.name
    if left.name.endswith(FORMER) and former.is_dir() and not path.exists():
        former.rename(path)


def _prefix(path: Path) -> str:
    """The beginning of the temporary names for `path`, and of no others.

    A long name is cut and gets a digest, since some file systems allow only 255 bytes.
    """
    name = path.name
    if len(name) > _LONGEST:
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()
        name = f"{name[: _LONGEST - 17]}-{digest[:16]}"
    return f".{name}."
