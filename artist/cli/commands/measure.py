"""`artist measure`: measures training steps and all-reduces on this machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import FormatOption, OverwriteFiles
from artist.cli.output import Format, note, print_facts, print_json, print_table
from artist.errors import ConfigError


class Device(StrEnum):
    """Value of `--device`: where to compute."""

    AUTO = "auto"
    CUDA = "cuda"
    CPU = "cpu"


def measure(
    model: Annotated[str, typer.Option(help="A model, e.g. resnet50@batch=16.")],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    beside: Annotated[
        list[str] | None,
        typer.Option(
            help="A model to share one GPU with; may be given several times. Writes beside.csv."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes (default: one per GPU, two on a CPU)."),
    ] = None,
    device: Annotated[Device, typer.Option(help="Device to measure.")] = Device.AUTO,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Steps to take the median of (default 20).")
    ] = None,
    largest: Annotated[
        int | None,
        typer.Option("--largest-mib", min=1, help="Largest all-reduce, MiB (default 64)."),
    ] = None,
    overwrite: OverwriteFiles = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Measure a model's step and the all-reduces of this machine (needs the extra `torch`)."""
    if beside:
        if (processes, steps, largest) != (None, None, None):
            raise ConfigError(
                "--beside counts steps for a few seconds, one process for each model; leave out "
                "--processes, --steps and --largest-mib"
            )
        _measure_beside([model, *beside], out, device, overwrite=overwrite, format_=format_)
        return
    from artist.measure.output_files import check_out, write_measured
    from artist.measure.processes import measure as run
    from artist.measure.processes import plan

    check_out(out, overwrite=overwrite)
    chosen = plan(
        model,
        out,
        processes=processes,
        device=device.value,
        steps=steps or 20,
        largest_bytes=(largest or 64) * 2**20,
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


def _measure_beside(
    models: list[str], out: Path, device: Device, *, overwrite: bool, format_: Format
) -> None:
    """The first model beside each of the others."""
    from artist.measure.beside import measure_shared
    from artist.measure.output_files import check_out, write_shared
    from artist.measure.processes import chosen_device, hardware, measurable

    check_out(out, overwrite=overwrite)
    chosen, _ = chosen_device(device)
    specs = [measurable(model) for model in models]
    pairs = measure_shared(specs, [(0, other) for other in range(1, len(specs))], chosen)
    rows = [
        row
        for pair in pairs
        for row in zip(
            pair.models,
            reversed(pair.models),
            pair.alone_steps_per_s,
            pair.speeds,
            strict=True,
        )
    ]
    columns = ("model", "beside", "alone_steps_per_s", "speed")
    if format_ is Format.JSON:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(f"models that share one {hardware(chosen)}", columns, rows)
    note(f"wrote {write_shared(out, pairs, hardware(chosen))}")
