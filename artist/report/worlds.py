"""What comparisons in several worlds say: the `decides.json` that `artist compare` writes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from artist.experiments.run_folder import DECIDES
from artist.io.documents import Document, validate
from artist.io.reading import read_json


class InWorld(Document):
    """A difference in one world; None where a value is 0, or an interval has no end."""

    world: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


class Difference(Document):
    """A variant against the baseline in a metric, in all worlds."""

    metric: str
    variant: str
    worlds: tuple[InWorld, ...]


class Decides(Document):
    """A comparison in several worlds."""

    setting: str
    baseline: str
    design: str
    not_tried: tuple[str, ...]
    differences: tuple[Difference, ...]


def read_worlds(folders: Sequence[Path]) -> tuple[Decides, ...]:
    """What the folders' comparisons in several worlds say; nothing of folders without one.

    Raises:
        ConfigError, TraceError: a `decides.json` is damaged.
    """
    files = [folder / DECIDES for folder in folders if (folder / DECIDES).is_file()]
    return tuple(validate(read_json(file), Decides, str(file)) for file in files)
