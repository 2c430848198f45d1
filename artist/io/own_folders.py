"""What a command writes into a folder, so that it replaces only folders of its own.

A folder may be replaced only if the command wrote everything in it. A file with a common name, such
as `manifest.json`, proves nothing: a browser extension has one too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, TypeAlias

Mark: TypeAlias = Callable[[Path], bool]


class OwnFolder(NamedTuple):
    """The names that a command writes, and the file that identifies its folders."""

    what: str
    """What messages call it, such as `run directory`."""
    files: re.Pattern[str]
    """The full names of its files."""
    mark: str
    is_mark: Mark
    """Whether the file `mark`, which may be missing, was written by this command."""
    folders: Mapping[str, re.Pattern[str]] = {}
    """The folders inside, and the names of the files in them."""

    def foreign(self, folder: Path) -> Path | None:
        """The first path in a folder that the command did not write; None if it wrote all.

        Links are always foreign: they lead elsewhere.
        """
        for path in sorted(folder.iterdir()):
            if path.is_symlink():
                return path
            inside = self.folders.get(path.name)
            if path.is_dir() and inside is not None:
                for one in sorted(path.iterdir()):
                    if not _is_named(one, inside):
                        return one
            elif not _is_named(path, self.files):
                return path
        mark = folder / self.mark
        return None if self.is_mark(mark) else mark


def _is_named(path: Path, names: re.Pattern[str]) -> bool:
    plain = path.is_file() and not path.is_symlink()
    return plain and names.fullmatch(path.name) is not None


def json_with(*keys: str) -> Mark:
    """A mark that is a JSON object with at least these keys."""

    def is_mark(path: Path) -> bool:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return False
        return isinstance(content, dict) and content.keys() >= {*keys}

    return is_mark
