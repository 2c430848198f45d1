"""Writing what a calibration found, whole or not at all, where artist looks first."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from artist.errors import ConfigError
from artist.io.documents import Document

USER_FOLDER = Path("astra_configs")


def write_document(document: Document, kind: str, name: str, header: str) -> Path:
    """Write `./astra_configs/KIND/NAME.yaml`; an earlier file of that name is replaced.

    Raises:
        ConfigError: not a file name, or the folder cannot be written.
    """
    if not name or name != Path(name).name or name.startswith("."):
        raise ConfigError(f"name {name!r}: give a plain file name without folders")
    path = USER_FOLDER / kind / f"{name}.yaml"
    body = yaml.safe_dump(_plain(document), sort_keys=False, allow_unicode=True, width=100)
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    write_text(path, comment + body)
    return path


def write_text(path: Path, text: str) -> None:
    """Write under a temporary name, then rename.

    Raises:
        ConfigError: the folder cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(scratch).chmod(0o644)
            Path(scratch).replace(path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as cause:
        raise ConfigError(f"{path}: cannot be written ({cause.strerror or cause})") from cause


def _plain(document: Document) -> dict[str, Any]:
    return document.model_dump(mode="json", exclude_none=True)
