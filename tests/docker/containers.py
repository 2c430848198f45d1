"""A Docker engine as the tests see it, and the image whose program stands in for ASTRA-sim."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from artist.astra.programs.images import ImageEntry
from artist.astra.programs.leftovers import LABEL

BASE = os.environ.get("ARTIST_DOCKER_BASE", "artist-base:local")
IMAGE = "artist-fake-astra:test"
HERE = Path(__file__).parent


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr}"
    return done.stdout.strip()


def containers() -> list[str]:
    """Names of all containers that artist made."""
    return docker("ps", "-a", "--filter", f"label={LABEL}", "--format", "{{.Names}}").split()


def entry(*mode: str, **changes: object) -> ImageEntry:
    fields: dict[str, object] = {
        "image": IMAGE,
        "command": ("/opt/fake-astra", *mode),
        "obtain": "docker/make-base.sh",
        "source": "test",
    }
    return ImageEntry.model_validate(fields | changes)
