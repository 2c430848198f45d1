"""Options that several commands share, and the scenario that they describe.

The options of `artist latency` and `artist render` are in `query_options.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.output import Format
from artist.cli.trace_options import given_of

if TYPE_CHECKING:
    from artist.config import Scenario

FormatOption = Annotated[Format, typer.Option("--format", help="Of stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress, no hints.")]
NoHints = Annotated[bool, typer.Option("--quiet", help="No hints.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what --out wrote before.")]
OverwriteFiles = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")]

# A scenario. Parameters of these types are named as settings of `Scenario`.
ScenarioFile = Annotated[
    Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file.")
]
Racks = Annotated[int | None, typer.Option(help="Racks of the cluster (default 16).")]
MachinesPerRack = Annotated[int | None, typer.Option(help="Default 8.")]
GpusPerMachine = Annotated[int | None, typer.Option(help="Default 8.")]
ClusterName = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Instead of sizes; see: artist list clusters."),
]
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
    str | None,
    typer.Option(metavar="auto|none|NAME|FILE", help="Calibrated models (default: the fabric's)."),
]
Contention = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="See: artist list contention (default none)."),
]
FailuresName = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE|none", help="See: artist list failures (default none)."),
]
DataName = Annotated[
    str | None,
    typer.Option("--data", metavar="FILE", help="The tables that jobs read, and their regions."),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything drawn (default 0).")]
Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="policy.KEY, system.KEY, fabric.LEVEL.KEY, contention.KEY, checkpoint.KEY, data.KEY "
        "or a setting.",
    ),
]


def scenario_of(parameters: Mapping[str, Any]) -> Scenario:
    """The scenario that the parameters of a command describe.

    `parameters` are all of the command's, by name (`typer.Context.params`). `scenario` is the file
    and `sets` are the assignments of `--set`. A parameter that is named as a setting of `Scenario`
    (`racks`, `trace`, ...) is that setting. Other parameters are ignored.

    Raises:
        ConfigError: unreadable file, unknown key or bad value.
    """
    from artist.config import Scenario, load_scenario

    flags = {name: value for name, value in parameters.items() if name in Scenario.model_fields}
    flags |= dict.fromkeys(("columns", "units", "models", "model_rule")) | given_of(parameters)
    return load_scenario(parameters["scenario"], flags, parameters["sets"] or [])


def share_of(name: str, text: str) -> float:
    """The share that an option gives: `2%` or `0.02`.

    Raises:
        ConfigError: not a number.
    """
    from artist.errors import ConfigError, shortened

    percent = text.strip().endswith("%")
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        raise ConfigError(f"{name} {shortened(text)}: expected a share, such as 2%") from None
    return value / 100 if percent else value
