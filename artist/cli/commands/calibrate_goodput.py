"""`artist calibrate goodput`: fit a model's goodput parameters to measured steps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_json, print_table
from artist.errors import ConfigError


def goodput(
    model: Annotated[str, typer.Option(help="Task in the file to fit.")],
    steps: Annotated[Path, typer.Option(help="Measured steps, CSV.")],
    batch: Annotated[int, typer.Option(help="Total batch as jobs are submitted, samples.")],
    batch_max: Annotated[int, typer.Option(help="Largest total batch, samples.")],
    noise: Annotated[
        str, typer.Option(help="Gradient noise scale, samples: 200, or 0=200,0.3=1000.")
    ],
    out: Annotated[Path, typer.Option(help="Goodput file to write, YAML.")],
    hardware: Annotated[
        str | None, typer.Option(help="Hardware in the file (default: each is a kind of GPUs).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit a model's goodput parameters to measured steps, for elastic jobs."""
    from artist.calibrate.fit_goodput import fit_goodput, goodput_table, noise_scale, step_times
    from artist.calibrate.measured_steps import read_steps, steps_of
    from artist.calibrate.output_files import write_document
    from artist.io.optional_libraries import check_extra
    from artist.io.writing import check_new_file

    check_extra("calibrate goodput", "scipy", extra="exact")
    check_new_file(out, "--out", overwrite=overwrite)
    limits = {"batch": batch, "batch_max": batch_max, "noise": noise_scale(noise)}
    read = read_steps(steps)
    of_kind = read if hardware is None else steps_of(read, hardware, str(steps))
    mine = [step for step in of_kind if step.task == model]
    if not mine:
        known = ", ".join(dict.fromkeys(step.task for step in of_kind))
        raise ConfigError(f"--model {model!r}: {steps} has no steps of it; choose one of {known}")
    fits = {
        kind: fit_goodput(step_times([step for step in mine if step.hardware == kind]))
        for kind in dict.fromkeys(step.hardware for step in mine)
    }
    table = goodput_table(model, mine, fits, limits, f"fitted to steps of {model} in {steps.name}")
    write_document(table, out, "Written by `artist calibrate goodput`.")
    if format_ is Format.JSON:
        facts = {
            kind: {**fit.parameters._asdict(), "error": fit.error, "untold": fit.untold}
            for kind, fit in fits.items()
        }
        print_json({"model": model, "fits": facts})
    else:
        names = [*next(iter(fits.values())).parameters._fields]
        print_table(
            f"goodput parameters of {model}",
            ("hardware", *names, "error, %"),
            [
                (kind, *(f"{value:.4g}" for value in fit.parameters), f"{100 * fit.error:.1f}")
                for kind, fit in fits.items()
            ],
        )
    for kind, fit in fits.items():
        if fit.untold:
            note(f"note: steps on {kind} do not tell {', '.join(fit.untold)}; {out} has a guess")
    note(f"wrote {out}; use it with --set goodput={out}")
