"""Output folders: whole or not at all, and nothing is replaced unasked.

One rule for every folder that artist writes as a whole: it is new or empty. With `overwrite` it may
hold what artist wrote there before, all of which is then replaced. Anything else stays.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from artist.errors import ConfigError
from artist.io.partials import FORMER, partial_path, remove
from artist.io.writing import special_kind, sync, sync_folder

# The errors of a rename if another process put its folder there first.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def check_folder(out: Path, what: str, is_one: Callable[[Path], bool], *, overwrite: bool) -> None:
    """Refuse a folder that may not or cannot be written.

    `is_one` tells whether a folder is `what`, which artist writes, such as a run directory.

    Raises:
        ConfigError: the path holds something else, or a `what` that is not to be overwritten, or
            its parent is not writable.
    """
    if kind := special_kind(out):
        raise ConfigError(f"--out {out}: is {kind}; give the name of a new folder")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or is_one(out))):
        raise ConfigError(
            f"--out {out}: exists and is not a {what}; choose another path or remove it"
        )
    if out.exists() and any(out.iterdir()) and not overwrite:
        raise ConfigError(
            f"--out {out}: holds a {what} already; choose another path, or replace it with "
            "--overwrite (overwrite=True in Python)"
        )
    check_parent(out)


def check_parent(out: Path) -> None:
    """Refuse an output in a place that cannot be written.

    Raises:
        ConfigError: the nearest folder above that exists is no folder or not writable.
    """
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--out {out}: {parent} is not a writable directory; choose another path")


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """An empty folder with a temporary name beside an output. It goes when the block ends."""
    scratch = partial_path(beside)
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        remove(scratch)


@contextmanager
def whole_folder(out: Path) -> Iterator[Path]:
    """An empty folder to fill. It becomes `out`, and replaces it, when the block ends well.

    Raises:
        ConfigError: the folder cannot be written, or another process wrote there meanwhile.
    """
    try:
        with scratch_folder(out) as scratch:
            yield scratch
            _sync_tree(scratch)
            _put_in_place(scratch, out)
            sync_folder(out.absolute().parent)
    except OSError as cause:
        if cause.errno in _TAKEN:
            raise ConfigError(
                f"--out {out}: another process wrote there meanwhile, and that stays; choose "
                "another path for this one"
            ) from cause
        raise ConfigError(f"--out {out}: cannot be written ({cause.strerror or cause})") from cause


def _put_in_place(scratch: Path, out: Path) -> None:
    """Rename. A folder that is replaced stays until the new one is there."""
    if not out.exists():
        scratch.rename(out)
        return
    aside = partial_path(out, FORMER)
    aside.mkdir()
    try:
        out.rename(aside / out.name)
        scratch.rename(out)
    except BaseException:  # interruptions as well
        if not out.exists():
            with contextlib.suppress(OSError):
                (aside / out.name).rename(out)
        raise
    finally:
        if out.exists():
            remove(aside)


def _sync_tree(folder: Path) -> None:
    """Bring all files to the disk, each once if it has several names."""
    seen: set[int] = set()
    for path in [*folder.rglob("*"), folder]:
        inode = path.stat().st_ino
        if path.is_dir():
            sync_folder(path)
        elif inode not in seen:
            sync(path)
        seen.add(inode)
