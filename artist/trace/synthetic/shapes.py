"""What a generated trace may look like. Small, because the command line offers these names."""

from __future__ import annotations

from enum import StrEnum


class Shape(StrEnum):
    """Whose jobs are drawn: `generate.py`, `cassini.py` or `mast.py`."""

    SENSETIME = "sensetime"
    CASSINI = "cassini"
    MAST = "mast-synth"
    WAREHOUSE = "warehouse"


class Kind(StrEnum):
    """How jobs arrive: at random, in two sets, or all together."""

    POISSON = "poisson"
    DYNAMIC = "dynamic"
    SNAPSHOT = "snapshot"
