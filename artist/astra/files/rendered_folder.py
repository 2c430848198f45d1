"""Whether a folder holds what `artist render` writes and nothing else.

Only such a folder may be replaced as a whole. One in which a program has left results may not.
"""

from __future__ import annotations

from pathlib import Path

from artist.astra.files.dialects import DIALECTS
from artist.astra.files.render import is_trace
from artist.astra.files.render_collectives import ITERATION

_FILES = {ITERATION, *(name for spoken in DIALECTS.values() for name in spoken.files)}
_EMPTY_FOLDERS = {name for spoken in DIALECTS.values() for name in spoken.folders}


def is_rendered(folder: Path) -> bool:
    """Whether everything in the folder was rendered; False for an empty one."""
    inside = list(folder.iterdir())
    return bool(inside) and all(map(_is_ours, inside))


def _is_ours(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.is_dir():
        return is_rendered(path) or (path.name in _EMPTY_FOLDERS and not any(path.iterdir()))
    return path.is_file() and (path.name in _FILES or is_trace(path.name))
