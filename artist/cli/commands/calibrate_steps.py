"""`artist calibrate machine` and `goodput`: fits to measured steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.errors import ConfigError, TraceError
from artist.units import counted

if TYPE_CHECKING:
    from artist.calibrate.measured_steps import PlacedStep
    from artist.calibrate.step_prediction import PredictedStep

Backend = Annotated[str, typer.Option(help="See: artist list backends.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a calibration, fabric or plot of this name.")
]


def machine(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Fabric to write.")],
    steps: Annotated[Path, typer.Option(help="Measured steps, CSV.")],
    model: Annotated[str, typer.Option(help="Task in the file to fit to.")],
    base: Annotated[str, typer.Option(help="Fabric to take the rest from.")],
    hardware: Annotated[
        str | None, typer.Option(help="Hardware in the file to fit to (default: the only one).")
    ] = None,
    backend: Backend = "analytical",
    misfit_: Annotated[
        bool, typer.Option("--misfit", help="Write the fit even if it misses its steps.")
    ] = False,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit a kind of machine's bandwidths and hidden share to measured steps.

    A fit whose errors exceed those of published fits (P90 26 %) is refused with exit code 3. The
    calibration of the same name gives models the compute times measured on one GPU.
    """
    from artist.calibrate.fit_machine import compute_times, contradicting, fit_machine
    from artist.calibrate.measured_steps import read_steps, steps_of
    from artist.calibrate.output_files import document_file, write_document
    from artist.calibrate.step_prediction import (
        StepErrors,
        doubtful_steps,
        misfit,
        predicted_by_task,
    )
    from artist.cluster.fabric import FabricOrigin, load_fabric
    from artist.run import open_backend

    target = document_file("fabrics", name, overwrite=overwrite)
    scales_target = document_file("calibrations", name, overwrite=overwrite)
    of_kind = steps_of(read_steps(steps), hardware, str(steps))
    by_backend, on_fabric = open_backend(backend), load_fabric(base)
    mine = _of_model(model, of_kind, steps)
    fit = fit_machine(mine, on_fabric, by_backend)
    of = f"steps of {model} in {steps.name}"
    fitted = fit.on(on_fabric, f"fitted to {of}")
    predicted = predicted_by_task(of_kind, fitted, by_backend)
    errors = {task: StepErrors.of(*zip(*some, strict=True)) for task, some in predicted.items()}
    ranked = sorted(predicted[model], key=lambda one: -abs(one.error))
    missed = (
        f"median {100 * errors[model].median:.1f} %, at most {100 * abs(ranked[0].error):.1f} %"
    )
    origin = FabricOrigin(
        kind="measured", of=of, error=f"error of {counted(len(ranked), 'step')}: {missed}"
    )
    summary = f"fitted to {of}; the rest is {base}"
    changes = {"name": name, "summary": summary, "origin": origin, "calibration": name}
    fitted = fitted.model_copy(update=changes)
    if format_ is Format.TABLE:
        _print_steps(model, ranked)

    def rival(worst: PredictedStep) -> PlacedStep | None:
        return contradicting(worst, ranked, on_fabric, by_backend)

    if not misfit_ and (reason := misfit(ranked, str(steps), rival)):
        raise TraceError(
            f"{reason}; check the steps and that one kind of machine took them, or write the fit "
            "with --misfit"
        )
    # The fabric is written last, since it names the calibration.
    scales = compute_times(name, of_kind, fitted, f"steps on one GPU in {steps.name}")
    write_document(scales, scales_target, "Written by `artist calibrate machine`.")
    write_document(fitted, target, f"Written by `artist calibrate machine`: {summary}.")
    if format_ is Format.JSON:
        by_task = {task: error._asdict() for task, error in errors.items()}
        by_step = [_step_facts(one) for one in ranked]
        print_json({"fabric": name, **fit.facts, "errors": by_task, "steps": by_step})
    else:
        print_facts(f"fabric {name}", fit.facts)
        print_table(
            "predicted over measured step, by model",
            ("model", "fitted", "steps", "median error %", "P90 %"),
            [
                (task, "yes" if task == model else "no", error.steps,
                 f"{100 * error.median:.1f}", f"{100 * error.p90:.1f}")
                for task, error in errors.items()
            ],
        )  # fmt: skip
    if fit.undetermined:
        names = ", ".join(sorted(fit.undetermined))
        note(f"note: the steps do not determine {names}; {name} keeps what {base} has")
    for doubt in doubtful_steps(mine):
        note(f"note: {steps}:{doubt}")
    note(f"wrote {target} and {scales_target}; use both with --fabric {name}")


MOST_STEPS = 12
"""Steps that a table shows, those that the fit misses most; JSON has all."""


def _print_steps(model: str, ranked: Sequence[PredictedStep]) -> None:
    """Print the fitted steps, those that the fit misses most first."""
    rows = [
        (one.step.placement, one.step.batch, f"{one.step.step_s:.4g}", f"{one.predicted_s:.4g}",
         f"{100 * one.error:+,.1f}")
        for one in ranked[:MOST_STEPS]
    ]  # fmt: skip
    title = f"steps of {model}, the worst first"
    columns = ("placement", "batch per GPU", "measured, s", "predicted, s", "error %")
    print_table(title, columns, rows)
    if len(ranked) > MOST_STEPS:
        print_text(f"The {MOST_STEPS} worst of {len(ranked):,}; --format json has all.")


def _step_facts(one: PredictedStep) -> dict[str, Any]:
    step = one.step
    facts = {"line": step.line, "placement": step.placement, "batch_per_gpu": step.batch}
    return {**facts, "step_s": step.step_s, "predicted_s": one.predicted_s, "error": one.error}


def goodput(
    model: Annotated[str, typer.Option(help="Task in the file to fit.")],
    steps: Annotated[Path, typer.Option(help="Measured steps, CSV.")],
    batch: Annotated[int, typer.Option(help="Total batch that jobs are submitted with, samples.")],
    batch_max: Annotated[int, typer.Option(help="Largest total batch, samples.")],
    noise: Annotated[
        str, typer.Option(help="Gradient noise scale, samples: 200, or 0=200,0.3=1000.")
    ],
    out: Annotated[Path, typer.Option(help="Goodput file to write, YAML.")],
    hardware: Annotated[
        str | None, typer.Option(help="Hardware in the file (default: all, each as a kind of GPU).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit a model's goodput parameters to measured steps, for elastic jobs."""
    from artist.calibrate.fit_goodput import fit_goodput, goodput_table, noise_scale, step_times
    from artist.calibrate.measured_steps import read_steps, steps_of
    from artist.calibrate.output_files import write_document
    from artist.calibrate.step_prediction import MOST_P90
    from artist.io.optional_libraries import check_extra
    from artist.io.writing import check_new_file

    check_extra("calibrate goodput", "scipy", extra="exact")
    check_new_file(out, "--out", overwrite=overwrite)
    limits = {"batch": batch, "batch_max": batch_max, "noise": noise_scale(noise)}
    read = read_steps(steps)
    of_kind = read if hardware is None else steps_of(read, hardware, str(steps))
    mine = _of_model(model, of_kind, steps)
    fits = {
        kind: fit_goodput(step_times([step for step in mine if step.hardware == kind]))
        for kind in dict.fromkeys(step.hardware for step in mine)
    }
    table = goodput_table(model, mine, fits, limits, f"fitted to steps of {model} in {steps.name}")
    write_document(table, out, "Written by `artist calibrate goodput`.")
    if format_ is Format.JSON:
        facts = {
            kind: {**fit.parameters._asdict(), "error": fit.error, "untold": fit.undetermined}
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
        if fit.undetermined:
            undetermined = ", ".join(fit.undetermined)
            note(f"note: steps on {kind} do not determine {undetermined}; {out} has a guess")
        if fit.error > MOST_P90:  # a fit of a machine that misses by more is refused
            note(
                f"note: the fit misses the steps on {kind} by {100 * fit.error:.0f} % (RMS); check "
                "them, and that machines of one kind took them"
            )
    note(f"wrote {out}; use it with --set goodput={out}")


def _of_model(model: str, of_kind: Sequence[PlacedStep], path: Path) -> list[PlacedStep]:
    """The steps of a task."""
    mine = [step for step in of_kind if step.task == model]
    if not mine:
        known = ", ".join(dict.fromkeys(step.task for step in of_kind))
        raise ConfigError(f"--model {model!r}: {path} has no steps of it; choose one of {known}")
    return mine
