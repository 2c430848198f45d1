"""The libraries of the extra `rl`. They may be missing; only `artist.rl` imports them."""

from __future__ import annotations

from importlib.util import find_spec

from artist.errors import ConfigError

INSTALL = "pip install 'artist-sim[rl]'"


def check_extra(who: str, *libraries: str) -> None:
    """Check that libraries are installed, without importing them. `who` needs them.

    Raises:
        ConfigError: one is missing; the message says how to install it.
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        are = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{who} needs {', '.join(missing)}, which {are} not installed: {INSTALL}")
