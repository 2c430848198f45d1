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
WorkloadFile = Annotated[
    Path | None, typer.Option(help="ASTRA-sim text workload, instead of a model.")
]
ChakraFolder = Annotated[
    Path | None,
    typer.Option(
        "--chakra", metavar="DIR", help="Folder of Chakra traces instead, one NAME.GPU.et per GPU."
    ),
]
Placement = Annotated[
    str | None,
    typer.Option(help="GPU counts; '+' separates sockets, ',' machines, '/' racks: 8,8/2."),
]
Placements = Annotated[
    list[str] | None,
    typer.Option(
        help="GPU counts; '+' separates sockets, ',' machines, '/' racks: 8,8/2. Several "
        "with --sweep."
    ),
]
FabricName = Annotated[str, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")]
CalibrationName = Annotated[
    str, typer.Option(metavar="auto|none|NAME|FILE", help="auto: the same as in artist sim.")
]
Topologies = Annotated[
    str | None,
    typer.Option("--topology", help="Topology per dimension, innermost first: Ring,Switch."),
]
Npus = Annotated[str | None, typer.Option(help="NPUs per dimension: 4,2.")]
Bandwidths = Annotated[
    str | None, typer.Option("--bandwidth", help="Bandwidth per dimension, GiB/s: 450,50.")
]
Latencies = Annotated[
    str | None, typer.Option("--latency", help="Latency per dimension, ns per hop: 0,500.")
]
FabricSets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="fabric.LEVEL.KEY, e.g. bandwidth=100Gbit/s."),
]
Systems = Annotated[
    list[str] | None,
    typer.Option("--system", metavar="K=V", help="System setting; same as --set system.K=V."),
]
