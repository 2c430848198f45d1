"""What users choose: rules that complete a trace, and the kind of a generated one.

This module is small, because the command line imports it to offer these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Fractional(StrEnum):
    """What to do with jobs that ask for parts of GPUs. Only a share of one GPU can stay a share;
    parts of several are rounded up then."""

    ERROR = "error"
    SHARE = "share"
    ROUND_UP = "round-up"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Rules:
    """How to fill in what a format lacks.

    `model` is `uniform`, `mix`, `keep` or a model of the catalogue (`foreign/fill.py` explains
    them). None means `uniform` for foreign formats and `keep` for artist's own. `seed` is the seed
    of all random draws. `job_table` is the second file of a PAI trace. `models` names the model
    that a name in the file stands for; of these names, the file must have those `required`.
    `keep_names` and `time_zone` are for logs of Slurm (`foreign/sacct.py`).
    """

    seed: int = 0
    model: str | None = None
    fractional: Fractional = Fractional.ERROR
    job_table: Path | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    keep_names: bool = False
    time_zone: str | None = None


class Shape(StrEnum):
    """Whose jobs are drawn: `generate.py`, `cassini.py`, `llm.py` or `mast.py` in `synthetic`."""

    SENSETIME = "sensetime"
    CASSINI = "cassini"
    MAST = "mast-synth"
    WAREHOUSE = "warehouse"
    LLM = "llm"


class ArrivalKind(StrEnum):
    """How jobs arrive: at random, in two sets, or all together."""

    POISSON = "poisson"
    DYNAMIC = "dynamic"
    SNAPSHOT = "snapshot"
