"""`artist render`: writes the files that ASTRA-sim gets for one iteration on one placement."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.cli import options
from artist.cli import query_options as query
from artist.cli.interruption import raise_if_lost
from artist.cli.output import note
from artist.default_fabric import MEASURED_FABRIC
from artist.errors import DivisionError

if TYPE_CHECKING:
    from artist.estimates.query_from_text import LabelledQuery


def render(
    out: Annotated[Path, typer.Option(help="Folder to write.")],
    model: query.Model = None,
    workload: query.WorkloadFile = None,
    placement: query.Placement = None,
    fabric: query.FabricName = MEASURED_FABRIC,
    calibration: query.CalibrationName = "none",
    topology: query.Topologies = None,
    npus: query.Npus = None,
    bandwidth: query.Bandwidths = None,
    latency_: query.Latencies = None,
    sets: query.FabricSets = None,
    system: query.Systems = None,
    gpus_per_machine: options.GpusPerMachine = None,
    dialect: Annotated[str, typer.Option(help="astra2 or astra1.")] = "astra2",
    overwrite: options.Overwrite = False,
) -> None:
    """Write ASTRA-sim's input files; for a model in groups, one folder per collective."""
    from artist.astra.files.rendered_folder import foreign
    from artist.cli import questions
    from artist.io.partials import remove_leftovers
    from artist.io.writing import check_folder, whole_folder

    remove_leftovers(out)
    check_folder(out, "folder of rendered files", foreign, overwrite=overwrite)

    columns = {"topology": topology, "npus": npus, "bandwidth": bandwidth, "latency": latency_}
    on_fabric, _ = questions.fabric_of(fabric, sets, placed=placement is not None)
    models = questions.models_of(workload, on_fabric, calibration)
    question = questions.query_of(
        model, workload, placement, on_fabric, columns, system or [], models, gpus_per_machine
    )
    with whole_folder(out, overwrite=overwrite) as scratch:
        written = _render_all(question.asked, scratch, dialect)
        raise_if_lost()
    for folder in written:
        note(f"wrote {out / folder}")


def _render_all(asked: Sequence[LabelledQuery], scratch: Path, dialect: str) -> list[str]:
    """Render all queries. Return the folders that got files, relative to the scratch folder.

    Raises:
        DivisionError: ASTRA-sim can be asked none of them.
    """
    from artist.astra.files.render import render
    from artist.astra.files.rendered_folder import render_collectives
    from artist.estimates.divided.layer_wise import composed

    written: list[str] = []
    refused = 0
    for labelled in asked:
        # An uneven shape becomes several regular ones, each in its own folder.
        folder = labelled.signature.replace("/", "_") if len(asked) > 1 else ""
        try:
            if composed(labelled.query):
                render_collectives(labelled.query, scratch / folder, dialect)
            else:
                render(labelled.query, scratch / folder, dialect)
            written.append(folder)
        except DivisionError as cause:  # nothing was written
            refused += 1
            if refused == len(asked):
                raise
            note(f"{labelled.signature}: not asked ({cause})")
    return written
