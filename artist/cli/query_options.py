"""The options of `artist latency` and `artist render`; `questions.py` has what they ask."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ContentionModel(StrEnum):
    """Value of `--contention`."""

    MEAN = "mean"
    PHASE = "phase"
    FLUID = "fluid"


class SweepFormat(StrEnum):
    """Value of `--format`; a sweep can also be CSV."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


Model = Annotated[str | None, typer.Option(help="See: artist list models.")]
WorkloadFile = Annotated[Path | None, typer.Option(help="An ASTRA-sim text workload instead.")]
ChakraFolder = Annotated[
    Path | None,
    typer.Option("--chakra", metavar="DIR", help="Chakra traces instead, one NAME.GPU.et per GPU."),
]
Placement = Annotated[
    str | None, typer.Option(help="GPUs, '+' socket, ',' machine, '/' rack: 8,8/2.")
]
Placements = Annotated[
    list[str] | None,
    typer.Option(help="GPUs, '+' socket, ',' machine, '/' rack: 8,8/2. Several with --sweep."),
]
FabricName = Annotated[str, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")]
CalibrationName = Annotated[
    str, typer.Option(metavar="auto|none|NAME|FILE", help="auto asks as artist sim does.")
]
Topologies = Annotated[str | None, typer.Option("--topology", help="Ring,Switch: inner first.")]
Npus = Annotated[str | None, typer.Option(help="NPUs per dimension: 4,2.")]
Bandwidths = Annotated[str | None, typer.Option("--bandwidth", help="GiB/s: 450,50.")]
Latencies = Annotated[str | None, typer.Option("--latency", help="ns per hop: 0,500.")]
FabricSets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="fabric.LEVEL.KEY, e.g. bandwidth=100Gbit/s."),
]
Systems = Annotated[
    list[str] | None,
    typer.Option("--system", metavar="K=V", help="System setting (--set system.K=V)."),
]
