"""A script that stands in for the command `docker`, and an image that it has."""

from __future__ import annotations

import sys
from pathlib import Path

from artist.astra.programs.images import ImageEntry

ENTRY = ImageEntry(
    image="some/astra:1",
    command=("/bin/astra",),
    obtain="docker pull some/astra:1",
    source="test",
)
IMAGE_ID = "sha256:" + "ab" * 32


def fake_docker(folder: Path, body: str) -> str:
    """An executable Python script; its `arguments` are those of the command."""
    path = folder / "docker"
    path.write_text(f"#!{sys.executable}\nimport sys\narguments = sys.argv[1:]\n{body}\n")
    path.chmod(0o755)
    return str(path)
