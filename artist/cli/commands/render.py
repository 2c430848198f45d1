"""`artist render`: writes the files that ASTRA-sim gets for one iteration on one placement."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artist.cli import query_options as query
from artist.cli.output import note


def render(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: query.Model = None,
    workload: query.WorkloadFile = None,
    placement: query.Placement = None,
    fabric: query.FabricName = "dally2025",
    calibration: query.CalibrationName = "none",
    topology: query.Topologies = None,
    npus: query.Npus = None,
    bandwidth: query.Bandwidths = None,
    latency_: query.Latencies = None,
    system: query.Systems = None,
    dialect: Annotated[str, typer.Option(help="astra2 or astra1.")] = "astra2",
) -> None:
    """Write the files that ASTRA-sim gets. A divided model gets one folder per collective."""
    from artist.astra.files.render import render
    from artist.astra.files.render_collectives import render_collectives
    from artist.errors import DivisionError
    from artist.estimates.layer_wise import composed

    columns = {"topology": topology, "npus": npus, "bandwidth": bandwidth, "latency": latency_}
    models = query.models_of(workload, placement, fabric, calibration)
    question = query.query_of(model, workload, placement, fabric, columns, system or [], models)
    asked = question.asked
    refused: list[DivisionError] = []
    for labelled in asked:
        # An uneven shape is asked as two regular ones, each in a folder of its own.
        folder = out / labelled.signature.replace("/", "_") if len(asked) > 1 else out
        try:
            if composed(labelled.query):
                render_collectives(labelled.query, folder, dialect)
            else:
                render(labelled.query, folder, dialect)
            note(f"wrote {folder}")
        except DivisionError as cause:  # nothing was written
            refused.append(cause)
            if len(refused) == len(asked):
                raise
            note(f"{labelled.signature}: not asked ({cause})")
