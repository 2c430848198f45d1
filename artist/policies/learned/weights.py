"""Weights of a network in a file: an `.npz` of plain arrays and a manifest. Nothing is executed.

The manifest (JSON, in the array `manifest`) says what the network sees and may do, how it was
trained, and the digest of the arrays. So a file is self-contained, and a changed or truncated file
is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError

from artist.errors import ConfigError, shortened
from artist.io.array_files import read_arrays, write_arrays
from artist.io.digests import sha256
from artist.io.documents import Document, explain
from artist.policies.learned.network import Array, NetworkName
from artist.policies.learned.task_options import TaskOptions

FORMAT: Literal[1] = 1
"""Version of the format. Any other version is refused."""

_MANIFEST = "manifest"


class Manifest(Document):
    """What a file of weights is, and how it was made."""

    format: Literal[1] = FORMAT
    task: TaskOptions
    network: NetworkName = Field(description="`mlp` or `shared` (network.py)")
    reward: str = Field(description="the reward of the training")
    algorithm: str
    scenario: dict[str, Any] = Field(description="what it was trained on")
    steps: int = Field(ge=0)
    seed: int = Field(ge=0)
    settings: dict[str, Any] = Field(description="hyperparameters of the algorithm")
    versions: dict[str, str] = Field(description="of artist and the libraries of the training")
    shapes: dict[str, tuple[int, ...]] = Field(description="of the arrays, by name")
    digest: str = Field(description="of the arrays")


def digest_of(arrays: Mapping[str, Array]) -> str:
    """The digest of names, shapes and numbers, whatever the order of arrays and the packing."""
    parts = []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f4")
        parts.append(f"{name} {array.shape}\n".encode() + array.tobytes())
    return sha256(b"".join(parts))


def write_weights(path: Path, arrays: Mapping[str, Array], manifest: Manifest) -> None:
    """Write a file, whole or not at all; the same arrays and manifest give the same bytes.

    Raises:
        ConfigError: the file cannot be written.
    """
    text = np.array(manifest.model_dump_json(indent=1))
    write_arrays(path, {_MANIFEST: text, **dict(sorted(arrays.items()))})


def read_weights(path: Path) -> tuple[dict[str, Array], Manifest]:
    """The arrays of a file, and its manifest.

    Raises:
        TraceError: the file cannot be read.
        ConfigError: it is not a file of weights, is truncated or was changed.
    """
    arrays = read_arrays(path, "give policy.npz of `artist train`, and copy it whole")
    where = f"weights {path}"
    manifest = _manifest(where, arrays.pop(_MANIFEST, None))
    _check(where, arrays, manifest)
    return arrays, manifest


def _manifest(where: str, text: Any) -> Manifest:
    """The manifest in an array of a file.

    Raises:
        ConfigError: there is none, it is broken, or its format is another one.
    """
    if text is None or text.shape != () or text.dtype.kind != "U":
        raise ConfigError(f"{where}: has no manifest; give policy.npz of `artist train`")
    try:
        data = json.loads(str(text))
    except ValueError as cause:
        raise ConfigError(f"{where}: its manifest is not JSON; train again") from cause
    version = data.get("format") if isinstance(data, dict) else None
    if version != FORMAT:
        raise ConfigError(
            f"{where}: its format is {shortened(version)}, expected {FORMAT}; use the artist "
            "that wrote it, or train again"
        )
    try:
        return Manifest.model_validate(data)
    except ValidationError as cause:
        raise ConfigError(f"{where}: manifest: {explain(cause, Manifest)}") from cause


def _check(where: str, arrays: Mapping[str, Array], manifest: Manifest) -> None:
    """Compare the arrays with what the manifest says of them."""
    shapes = {name: array.shape for name, array in arrays.items()}
    if shapes != manifest.shapes or any(array.dtype != np.float32 for array in arrays.values()):
        raise ConfigError(
            f"{where}: the arrays differ from those that the manifest lists; copy the file again, "
            "or train again"
        )
    if digest_of(arrays) != manifest.digest:
        raise ConfigError(
            f"{where}: the numbers have changed since they were written; copy the file again, or "
            "train again"
        )
    if not all(np.isfinite(array).all() for array in arrays.values()):
        raise ConfigError(f"{where}: some numbers are not finite; train again with another seed")
