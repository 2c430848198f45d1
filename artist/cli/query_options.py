"""The options of `artist latency` and `artist render`, and what they ask."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.estimates.calibration import CalibratedModels
    from artist.estimates.query_from_text import Question

Model = Annotated[str | None, typer.Option(help="See: artist list models.")]
WorkloadFile = Annotated[Path | None, typer.Option(help="An ASTRA-sim text workload instead.")]
Placement = Annotated[
    str | None, typer.Option(help="GPUs, '+' socket, ',' machine, '/' rack: 4+4,8/2.")
]
FabricName = Annotated[str, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")]
CalibrationName = Annotated[
    str, typer.Option(metavar="auto|none|NAME|FILE", help="auto asks as artist sim does.")
]
Topologies = Annotated[str | None, typer.Option("--topology", help="Ring,Switch: inner first.")]
Npus = Annotated[str | None, typer.Option(help="NPUs per dimension: 4,2.")]
Bandwidths = Annotated[str | None, typer.Option("--bandwidth", help="GiB/s: 450,50.")]
Latencies = Annotated[str | None, typer.Option("--latency", help="ns per hop: 0,500.")]
Systems = Annotated[
    list[str] | None,
    typer.Option("--system", metavar="K=V", help="System setting (--set system.K=V)."),
]


def models_of(
    workload: Path | None, placement: str | None, fabric: str, calibration: str
) -> CalibratedModels:
    """The models as `--calibration` has them; `auto` is the calibration of a placement's fabric.

    Raises:
        ConfigError: unknown name, bad file, or a calibration for a workload from a file.
    """
    from artist.cluster.fabric import load_fabric
    from artist.estimates.calibration import (
        AUTO,
        NONE,
        CalibratedModels,
        choose_calibration,
        load_calibration,
    )

    if workload is not None and calibration not in (AUTO, NONE):
        raise ConfigError(
            f"--calibration {calibration}: scales models of the catalogue, but --workload FILE has "
            "its own compute times; give --model"
        )
    if workload is not None or (placement is None and calibration == AUTO):
        return CalibratedModels(None)
    if placement is None:
        return CalibratedModels(load_calibration(calibration))
    return CalibratedModels(choose_calibration(calibration, load_fabric(fabric)))


def query_of(
    model: str | None,
    workload: Path | None,
    placement: str | None,
    fabric: str,
    columns: dict[str, Any],
    system: list[str],
    models: CalibratedModels,
) -> Question:
    """What the options ask: a workload on a placement or on dimensions.

    `columns` are the options of bare dimensions: `topology`, `npus`, `bandwidth`, `latency`.
    `models` are those of `models_of`.

    Raises:
        ConfigError: options that exclude each other, or a bad value.
    """
    from artist.cluster.fabric import load_fabric
    from artist.estimates.query_from_text import on_dimensions, on_placement, parse_system
    from artist.workload.astra_text import read_text

    if (model is None) == (workload is None):
        raise ConfigError("give either --model NAME or --workload FILE")
    if (placement is None) == all(value is None for value in columns.values()):
        raise ConfigError(
            "give either --placement, e.g. 4+4,8/2, or --topology, --npus, --bandwidth, --latency"
        )
    chosen = read_text(workload) if workload is not None else models.workload(model or "")
    changes = parse_system(system)
    if placement is not None:
        return on_placement(chosen, placement, load_fabric(fabric), changes)
    return on_dimensions(chosen, columns, changes)
