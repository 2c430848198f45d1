"""`artist measure`: a training step and all-reduces on the machine at hand."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_facts, print_json


class Device(StrEnum):
    """Where to compute."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


def measure(
    model: Annotated[str, typer.Option(help="A model, e.g. resnet50@batch=16.")],
    out: Annotated[Path, typer.Option(help="Folder for measured.csv, layers.csv, all_reduce.log.")],
    processes: Annotated[
        int | None, typer.Option(min=1, help="Default: one per GPU, two on a CPU.")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.AUTO,
    steps: Annotated[int, typer.Option(min=1, help="Steps to take the median of.")] = 20,
    largest: Annotated[
        int, typer.Option("--largest-mib", min=1, help="Largest all-reduce, MiB.")
    ] = 64,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Measure a model's step and the all-reduces of this machine (extra `torch`)."""
    from artist.measure.output_files import write_measured
    from artist.measure.processes import measure as run
    from artist.measure.processes import plan

    chosen = plan(
        model,
        out,
        processes=processes,
        device=device.value,
        steps=steps,
        largest_bytes=largest * 2**20,
    )
    found = run(chosen)
    if found is None:
        return
    paths = write_measured(chosen, found)
    facts = {
        "model": chosen.model,
        "hardware": f"{len(found.hosts)} x {found.hardware}",
        "backend": chosen.backend,
        "compute_ms": found.step.compute_ms,
        "exposed_comm_ms": found.step.exposed_comm_ms,
        "comm_percent": 100 * found.step.exposed_comm_ms / found.step.compute_ms,
        "layers": len(found.step.layers),
    }
    if format_ is Format.JSON:
        print_json(facts)
    else:
        print_facts(f"one step of {chosen.model}", facts)
    note("wrote " + ", ".join(map(str, paths)))
