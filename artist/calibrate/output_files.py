"""Writes calibrations and fabrics to `./astra_configs`, where artist looks first."""

from __future__ import annotations

from pathlib import Path

import yaml

from artist.errors import ConfigError
from artist.io.documents import Document
from artist.io.reading import exists
from artist.io.writing import write_whole

USER_FOLDER = Path("astra_configs")


def document_file(folder: str, name: str, *, overwrite: bool) -> Path:
    """The path `./astra_configs/FOLDER/NAME.yaml`. Call it before the fit, to fail early.

    Raises:
        ConfigError: `name` is not a plain file name, or the file exists and `overwrite` is False.
    """
    if not name or name != Path(name).name or name.startswith("."):
        raise ConfigError(f"name {name!r}: give a plain file name without folders")
    path = USER_FOLDER / folder / f"{name}.yaml"
    if exists(path) and not overwrite:
        raise ConfigError(
            f"{path}: exists already; choose another name, or replace it with --overwrite"
        )
    return path


def write_document(document: Document, path: Path, header: str) -> None:
    """Write a calibration or a fabric as YAML.

    `header` becomes comment lines at the top.

    Raises:
        ConfigError: the file cannot be written.
    """
    data = document.model_dump(mode="json", exclude_none=True)
    body = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    comment = "".join(f"# {line}\n" for line in header.splitlines())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ConfigError(f"{path}: cannot be written ({cause.strerror or cause})") from cause
    write_whole(path, comment + body)
