"""Libraries of extras, such as `rl` and `exact`. They may be missing."""

from __future__ import annotations

from importlib.util import find_spec

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
