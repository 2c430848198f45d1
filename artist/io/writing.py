"""Output files and folders: whole or not at all.

Everything that artist writes for a user appears under its name only when it is complete. It is
written under a temporary name in the same folder (`partials.py`), synced to disk, and then renamed.
A file may replace only a plain file.

Whole folders are written the same way. Such a folder must be new or empty. With `overwrite` it may
hold what artist wrote there before, all of which is replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from artist.errors import ConfigError
from artist.io.partials import FORMER, partial_path, remove, remove_leftovers

_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def check_file(path: Path, option: str) -> None:
    """Refuse a path that cannot be written, before the work on the file's content begins.

    Raises:
        ConfigError: the path is a folder, a link or a device, or its folder is missing or not
            writable.
    """
    folder = path.absolute().parent
    if str(path) == "-":
        raise ConfigError(f"{option} -: nothing is written to standard output; give a file name")
    if kind := special_kind(path):
        raise ConfigError(f"{option} {path}: is {kind}; give the name of a new or a plain file")
    if path.is_dir():
        raise ConfigError(f"{option} {path}: is a folder; give a file name")
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {path}: {folder} is not a writable folder; choose another")


def check_new_file(path: Path, option: str, *, overwrite: bool) -> None:
    """Refuse a file that may not or cannot be written, before the work on its content begins.

    Every file of results or inputs must be new, unless `overwrite`.

    Raises:
        ConfigError: the file exists already, or its place cannot be written.
    """
    check_file(path, option)
    if path.exists() and not overwrite:
        raise ConfigError(
            f"{option} {path}: exists already; choose another name, or replace it with --overwrite"
        )


def special_kind(path: Path) -> str:
    """In words, what a path is if it is neither a file nor a folder; else empty.

    A rename would replace `/dev/null` or a link by a file, which no user wants.
    """
    try:
        mode = path.lstat().st_mode
    except (OSError, ValueError):
        return ""
    return next((kind for is_kind, kind in _KINDS if is_kind(mode)), "")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A temporary name to write to. It becomes `path` when the block ends without an error.

    Raises:
        ConfigError: the file cannot be written, or the path is a link or a device.
    """
    refuse_special(path)
    partial = partial_path(path)
    try:
        remove_leftovers(path)
        try:
            yield partial
            sync(partial)
            refuse_special(path)
            partial.replace(path)
            sync_folder(path.absolute().parent)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as cause:
        reason = cause.strerror or str(cause)
        raise ConfigError(
            f"{path}: cannot be written ({reason}); make room, or give a path in a writable folder"
        ) from cause


def write_whole(path: Path, content: bytes | str) -> None:
    """Write a file at once; text as UTF-8.

    Raises:
        ConfigError: the file cannot be written, or the path is a link or a device.
    """
    data = content.encode() if isinstance(content, str) else content
    with whole_file(path) as partial:
        partial.write_bytes(data)


def sync(path: Path) -> None:
    """Sync a file's content to disk. Otherwise a crash could keep the rename but lose the content.

    Raises:
        OSError: the disk is full or broken.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as cause:
        if cause.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems have no such call
            raise
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Sync a folder's names to disk if that is possible."""
    with contextlib.suppress(OSError):
        sync(folder)


def refuse_special(path: Path) -> None:
    """Refuse to replace a link, a pipe, a device or a socket.

    Raises:
        ConfigError: the path is one.
    """
    if kind := special_kind(path):
        raise ConfigError(f"{path}: is {kind}; give the name of a new or a plain file")


# -- folders -------------------------------------------------------------------------

# The errors of a rename if another process put its folder there first.
_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)


def check_folder(
    out: Path, what: str, foreign: Callable[[Path], Path | None], *, overwrite: bool
) -> None:
    """Refuse a folder that may not or cannot be written.

    `what` names such folders, e.g. run directory. `foreign` gives the first path in a folder that
    does not belong to one; None if all of it does.

    Raises:
        ConfigError: the path holds something else, or a `what` that may not be overwritten, or its
            parent is not writable.
    """
    if kind := special_kind(out):
        raise ConfigError(f"{out}: is {kind}; give the name of a new folder")
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: exists and is not a {what}; choose another path or remove it")
    if out.exists() and any(out.iterdir()):
        if (other := foreign(out)) is not None:
            raise ConfigError(
                f"{out}: exists and is not a {what} (artist did not write "
                f"{other.relative_to(out)}); choose another path or remove it"
            )
        if not overwrite:
            raise ConfigError(
                f"{out}: holds a {what} already; choose another path, or replace it with "
                "--overwrite (overwrite=True in Python)"
            )
    check_parent(out)


def check_parent(out: Path) -> None:
    """Refuse an output in a place that cannot be written.

    Raises:
        ConfigError: the nearest existing path above is not a folder, or is not writable.
    """
    parent = out.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise ConfigError(f"{out}: {parent} is not a writable directory; choose another path")


@contextmanager
def scratch_folder(beside: Path) -> Iterator[Path]:
    """An empty folder with a temporary name next to an output, removed when the block ends."""
    scratch = partial_path(beside)
    try:
        scratch.mkdir(parents=True)
        yield scratch
    finally:
        remove(scratch)


@contextmanager
def whole_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """An empty folder to fill. It becomes `out` when the block ends without an error.

    Without `overwrite`, it replaces only an empty folder.

    Raises:
        ConfigError: the folder cannot be written, or another process wrote there meanwhile.
    """
    try:
        with scratch_folder(out) as scratch:
            yield scratch
            _sync_tree(scratch)
            _put_in_place(scratch, out, overwrite=overwrite)
            sync_folder(out.absolute().parent)
    except OSError as cause:
        if cause.errno in _TAKEN:
            raise ConfigError(
                f"{out}: another process has written there meanwhile, and its files stay; "
                "choose another path"
            ) from cause
        raise ConfigError(f"{out}: cannot be written ({cause.strerror or cause})") from cause


def _put_in_place(scratch: Path, out: Path, *, overwrite: bool) -> None:
    """Rename the folder. One that it replaces is kept until the new one is in place."""
    if not overwrite or not out.exists():
        scratch.rename(out)  # the system refuses if another process wrote there meanwhile
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
    """Sync all files of a folder to disk, each once even if it has several names."""
    seen: set[int] = set()
    for path in [*folder.rglob("*"), folder]:
        inode = path.stat().st_ino
        if path.is_dir():
            sync_folder(path)
        elif inode not in seen:
            sync(path)
        seen.add(inode)
