"""Libraries of extras, such as `rl` and `exact`. They may be missing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from artist.errors import ConfigError


def install(extra: str) -> str:
    """The command that installs an extra."""
    return f"pip install 'artist-sim[{extra}]'"


def check_extra(who: str, *libraries: str, extra: str = "rl") -> None:
    """Check that libraries of an extra are installed, without importing them. `who` needs them.

    Raises:
        ConfigError: one is missing; the message says how to install it.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ConfigError(
            f"{who} needs {', '.join(missing)}, which {are} not installed: {install(extra)}"
        )


def check_import(who: str, module: str, *, extra: str) -> None:
    """Check that a module of an extra can be imported. `who` needs it.

    Raises:
        ConfigError: its library is missing, or is installed but broken.
    """
    library = module.partition(".")[0]
    check_extra(who, library, extra=extra)
    try:
        import_module(module)
    except ImportError as cause:
        raise ConfigError(
            f"{who} needs {library}, which is installed but cannot be imported ({cause}): "
            f"{install(extra)} --force-reinstall"
        ) from cause


@contextmanager
def silent() -> Iterator[None]:
    """Discard what is written to stdout in the block.

    HiGHS prints a line now and then even if told to print nothing, which would break the JSON that
    a command prints.
    """
    try:
        stdout = os.dup(1)
    except OSError:  # it is closed
        yield
        return
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
