"""`artist measure`: measures a training step and all-reduces on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import FormatOption, OverwriteFiles
from artist.cli.output import Format, note, print_facts


class Device(StrEnum):
    """Value of `--device`: where to compute."""

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
    overwrite: OverwriteFiles = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Measure a model's step and the all-reduces of this machine (extra `torch`)."""
    from artist.measure.output_files import check_out, write_measured
    from artist.measure.processes import measure as run
    from artist.measure.processes import plan

    check_out(out, overwrite=overwrite)
    chosen = plan(
        model,
        out,
        processes=processes,
        device=device.value,
        steps=steps,
        largest_bytes=largest * 2**20,
    )
    measured = run(chosen)
    if measured is None:  # of several processes, only the first one has a result
        return
    paths = write_measured(chosen, measured)
    facts = {
        "model": chosen.model,
        "hardware": f"{len(measured.hosts)} x {measured.hardware}",
        "backend": chosen.backend,
        "compute_ms": measured.step.compute_ms,
        "exposed_comm_ms": measured.step.exposed_comm_ms,
        "comm_percent": 100 * measured.step.exposed_comm_ms / measured.step.compute_ms,
        "layers": len(measured.step.layers),
    }
    print_facts(f"one step of {chosen.model}", facts, format_)
    note("wrote " + ", ".join(map(str, paths)))
