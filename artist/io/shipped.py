"""Paths of the files that ship with artist: `astra_configs`, `templates`, `traces`.

In an installed package they are in `artist/_data`, in a checkout in the repository's root.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, e.g. `resource("astra_configs", "fabrics")`."""
    packaged = _PACKAGE / "_data"
    root = packaged if packaged.is_dir() else _PACKAGE.parent
    return root.joinpath(*parts)
