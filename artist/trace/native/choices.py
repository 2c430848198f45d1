"""Choices of users: rules that complete a trace, and kinds of generated traces.

This module is small because the command line imports it to offer these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Fractional(StrEnum):
    """What to do with jobs that ask for parts of GPUs.

    With `share`, a part of one GPU stays a share; parts of several GPUs are rounded up.
    """

    ERROR = "error"
    SHARE = "share"
    ROUND_UP = "round-up"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Rules:
    """How to fill in what a format lacks.

    `model` is `uniform`, `mix`, `keep` or a model of the catalogue (`foreign/fill.py` explains
    them). None means `uniform` for foreign formats and `keep` for artist's own. `seed` is the seed
    of all random draws. `job_table` is the second file of a PAI trace. `models` maps names in the
    file to models of the catalogue; the names in `required` must occur in the file. `keep_names`,
    `time_zone` and `still_running` are for logs of Slurm (`foreign/sacct.py`): with the last, jobs
    that still run end with the log, instead of being left out.
    """

    seed: int = 0
    model: str | None = None
    fractional: Fractional = Fractional.ERROR
    job_table: Path | None = None
    models: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    keep_names: bool = False
    time_zone: str | None = None
    still_running: bool = False


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
