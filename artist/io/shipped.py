"""Where the files that ship with artist lie: in the wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def resource(*parts: str) -> Path:
    """Path of a shipped file or folder, e.g. `resource("astra_configs", "fabrics")`."""
    packaged = _PACKAGE / "_data"
    root = packaged if packaged.is_dir() else _PACKAGE.parent
    return root.joinpath(*parts)
