"""How homes are chosen. A file of its own, so that `artist --help` loads no tables' columns."""

from __future__ import annotations

from enum import StrEnum


class Solver(StrEnum):
    """How homes are chosen."""

    CLIMB = "climb"
    HIGHS = "highs"
