"""Paths of the files that ship with artist: `astra_configs`, `templates`, `traces`.

In an installed package they are in `artist/_data`, in a checkout in the repository's root.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.reading import is_file

_PACKAGE = Path(__file__).parents[1]


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, e.g. `resource("astra_configs", "fabrics")`."""
    packaged = _PACKAGE / "_data"
    root = packaged if packaged.is_dir() else _PACKAGE.parent
    return root.joinpath(*parts)


def document_names(folder: str, kind: str = ".yaml") -> list[str]:
    """Names of the documents in `./astra_configs/FOLDER` and in the shipped folder."""
    return sorted({path.stem for place in _places(folder) for path in place.glob(f"*{kind}")})


def document_path(folder: str, name: str, kind: str = ".yaml") -> Path | None:
    """The file of a document that a user names, by its path or by its name; None if unknown.

    A name is looked up in `./astra_configs/FOLDER`, then in the shipped folder.
    """
    if name.endswith((kind, ".yml")) or "/" in name:
        return Path(name)
    candidates = (place / f"{name}{kind}" for place in _places(folder))
    return next((path for path in candidates if is_file(path)), None)


def _places(folder: str) -> tuple[Path, Path]:
    return Path("astra_configs", folder), resource("astra_configs", folder)
