"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ScenarioFile = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file.")
]
Racks = Annotated[int | None, typer.Option(help="Racks of the cluster (default 16).")]
MachinesPerRack = Annotated[int | None, typer.Option(help="Default 8.")]
GpusPerMachine = Annotated[int | None, typer.Option(help="Default 8.")]
TraceName = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="See: artist list traces.")
]
Arrivals = Annotated[str | None, typer.Option(help="trace, batch or poisson:JOBS_PER_HOUR.")]
Jobs = Annotated[int | None, typer.Option(help="Only the first N jobs.")]
FabricName = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")
]
Backend = Annotated[str | None, typer.Option(help="See: artist list backends.")]
CalibrationName = Annotated[
    str | None, typer.Option(metavar="NAME|FILE|none", help="Calibrated compute times.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="policy.KEY, system.KEY or a setting."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything drawn (default 0).")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no hints.")]
