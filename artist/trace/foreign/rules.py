"""The choices that reading a foreign trace leaves to its user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Fractional(StrEnum):
    """What becomes of jobs that ask for a part of a GPU, which artist cannot hand out."""

    ERROR = "error"
    ROUND_UP = "round-up"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Rules:
    """How to fill in what a format does not tell.

    `model` is `uniform`, `mix`, `keep` or a model of the catalogue (see `fill`);
    None means `uniform` for foreign formats, `keep` for artist's own. `job_table`
    is PAI's second file.
    """

    seed: int = 0
    model: str | None = None
    fractional: Fractional = Fractional.ERROR
    job_table: Path | None = None
