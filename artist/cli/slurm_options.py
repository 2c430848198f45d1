"""The options of the commands that read what Slurm recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SlurmFolder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="Output of Slurm's commands; see docs/how-to/slurm.md."),
]
KeepNames = Annotated[
    bool,
    typer.Option("--keep-names", help="Keep user names instead of replacing them by pseudonyms."),
]
Phases = Annotated[
    int,
    typer.Option(
        min=1, max=100, help="Number of runs, each with different phases of Slurm's cycles."
    ),
]
