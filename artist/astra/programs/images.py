"""The list of container images with ASTRA-sim: the program, dialect and limits of each.

It is read from `astra_configs/images.yaml`, or from a file of the same form.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import Field, field_validator

from artist.astra.files.dialects import DIALECTS
from artist.io.documents import Document, load_yaml
from artist.io.shipped import resource
from artist.registry import UnknownNameError

DEFAULT_IMAGE = "official"


class ImageEntry(Document):
    """One image.

    The image needs a POSIX `sh`, which runs the queries (`artist.astra.programs.container`).
    """

    image: str = Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._/:@-]*$")
    """The image for `docker run`: a name with its tag, or an id."""
    command: tuple[str, ...] = Field(min_length=1)
    """The program's absolute path in the image, then its leading arguments.

    A query that takes too long is ended by killing this one process. A wrapper script
    therefore has to `exec` the program.
    """
    dialect: str = "astra2"
    digest: str | None = None
    """`sha256:...`: the image's id, or the digest by which it was pulled; checked if given."""
    obtain: str = Field(min_length=1)
    """The command that gets the image."""
    source: str = Field(min_length=1)
    is_artist: bool = False
    """Whether the program is artist's own model, which is not evidence about ASTRA-sim."""
    memory: str = Field(default="4g", pattern=r"^[1-9][0-9]*[kmg]$")
    """Memory limit of the container."""
    pids_limit: int = Field(default=256, ge=16)

    @field_validator("command")
    @classmethod
    def _absolute(cls, command: tuple[str, ...]) -> tuple[str, ...]:
        if not command[0].startswith("/"):
            raise ValueError("the program's path in the image must be absolute")
        return command

    @field_validator("dialect")
    @classmethod
    def _known(cls, dialect: str) -> str:
        if dialect not in DIALECTS:
            raise ValueError(f"unknown dialect, expected {' or '.join(DIALECTS)}")
        return dialect

    @field_validator("digest")
    @classmethod
    def _digest(cls, digest: str | None) -> str | None:
        if digest is not None and not re.fullmatch(r"sha256:[0-9a-f]{12,64}", digest):
            raise ValueError("expected sha256: and 12 to 64 hexadecimal digits")
        return digest


OWN_MODEL = "artist's own model, not ASTRA-sim"
"""In words, what an image of artist itself contains."""


class ImageList(Document):
    """The file's content."""

    images: dict[str, ImageEntry] = Field(min_length=1)


def load_images(path: Path | None = None) -> dict[str, ImageEntry]:
    """All images of a file; by default of `./astra_configs/images.yaml`, else the shipped one.

    Raises:
        ConfigError: unreadable or not valid; the message holds file and line.
    """
    own = Path("astra_configs", "images.yaml")
    shipped = resource("astra_configs", "images.yaml")
    return load_yaml(path or (own if own.is_file() else shipped), ImageList).images


def load_image(name: str = DEFAULT_IMAGE, path: Path | None = None) -> ImageEntry:
    """One image by name.

    Raises:
        ConfigError: no such image, or the file is not valid.
    """
    images = load_images(path)
    if name not in images:
        where = path or "astra_configs/images.yaml"
        raise UnknownNameError("image", name, images, f"known: {', '.join(images)}; from {where}")
    return images[name]
