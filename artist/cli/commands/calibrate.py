"""`artist calibrate`: fits models or a level of a fabric to measurements.

The fits are in `artist/calibrate`.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from artist.cli.commands.calibrate_goodput import goodput
from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.errors import ConfigError, TraceError
from artist.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from artist.calibrate.fit_models import FittedModel
    from artist.calibrate.measured_steps import PlacedStep
    from artist.calibrate.measurements import MeasurementSet
    from artist.calibrate.step_prediction import PredictedStep

DEFAULT_FABRIC = "dally2025"

CONTRADICTED = 0.15
"""A fit that misses a measured share by more is reported (docs/calibration.md, section 4)."""

FAR = 10.0
"""A compute scale farther from 1, either way, is reported. Those of Dally's Table I are known to
be (docs/calibration.md)."""


class ModelsByDefault(TyperGroup):
    """`artist calibrate --model resnet50` means `artist calibrate models --model resnet50`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options of the group; without the name of a command, it is `models`."""
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["models", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="calibrate",
    cls=ModelsByDefault,
    help="Fit models or a fabric to measurements. Without a command: models, as in artist "
    "calibrate --model resnet50 (artist calibrate models --help has the options).",
)

Fabric = Annotated[str, typer.Option(metavar="NAME|FILE", help="Fabric to simulate on.")]
System = Annotated[
    list[str] | None,
    typer.Option("--system", metavar="K=V", help="ASTRA-sim setting: collectives=bucketed."),
]
Backend = Annotated[str, typer.Option(help="See: artist list backends.")]
Name = Annotated[str | None, typer.Option(help="Name of the calibration to write.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace a calibration, fabric or plot of this name.")
]


@app.command()
def models(
    model: Annotated[
        str | None, typer.Option(help="One (several: --all); see: artist list models.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every model that was measured.")] = False,
    measured: Annotated[
        Path | None,
        typer.Option(help="Measured shares or compute times, CSV (default: Dally's Table I)."),
    ] = None,
    fabric: Fabric = DEFAULT_FABRIC,
    system: System = None,
    backend: Backend = "analytical",
    name: Name = None,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit models to measured communication shares, or to compute times on one GPU."""
    from artist.calibrate.measurements import default_measurements, read_measurements

    if (model is None) == (not all_):
        raise ConfigError("give either --model NAME or --all")
    measurements = default_measurements() if measured is None else read_measurements(measured)
    names = measurements.models() if model is None else [model]
    _fit_models(
        measurements, names, fabric, backend, name, format_, system=system, overwrite=overwrite
    )


@app.command()
def profile(
    trace: Annotated[Path, typer.Argument(metavar="TRACE", help="A trace of torch.profiler.")],
    model: Annotated[str | None, typer.Option(help="The model that was profiled: fit it.")] = None,
    placement: Annotated[str | None, typer.Option(help="GPUs of its run: 8 or 4,4.")] = None,
    fabric: Fabric = DEFAULT_FABRIC,
    system: System = None,
    backend: Backend = "analytical",
    name: Name = None,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Show where the time of profiled steps goes; with --model, fit the model to it."""
    from artist.calibrate.kineto import read_kineto
    from artist.calibrate.measurements import from_trace

    if (model is None) != (placement is None):
        raise ConfigError("--model and --placement belong together; give both, or neither")
    steps = read_kineto(trace)
    if model is not None and placement is not None:
        measurements = from_trace(trace, steps.digest, model, placement, steps.share)
        _fit_models(
            measurements,
            [model],
            fabric,
            backend,
            name,
            format_,
            system=system,
            overwrite=overwrite,
        )
        return
    facts = {**asdict(steps), "comm_percent": 100 * steps.share}
    if format_ is Format.JSON:
        print_json(facts)
        return
    layers = facts.pop("layers")
    print_facts(f"{trace.name}, medians of {steps.steps} steps", facts)
    if layers:
        print_table("compute by layer", list(layers[0]), [list(x.values()) for x in layers])


@app.command()
def fabric(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Fabric to write.")],
    nccl_tests: Annotated[Path, typer.Option("--nccl-tests", help="A log of nccl-tests.")],
    level: Annotated[str, typer.Option(help="The level that the log measured.")],
    base: Annotated[
        str | None, typer.Option(help="Fabric to take the other levels from (default: NAME).")
    ] = None,
    operation: Annotated[
        str | None,
        typer.Option(help="Operation of the log, if it does not name it: all_reduce, alltoall ..."),
    ] = None,
    backend: Backend = "analytical",
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw the fit (PNG, SVG or PDF).")
    ] = None,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit one level of a fabric to a log of nccl-tests."""
    from artist.calibrate.fit_fabric import calibrate_fabric
    from artist.calibrate.nccl_log import read_log
    from artist.calibrate.output_files import document_file, write_document
    from artist.cluster.fabric import fabric_names, load_fabric
    from artist.io.figures import check_figure
    from artist.run import open_backend

    if base is None and name not in fabric_names():
        raise ConfigError(
            f"fabric {name!r} is new: say with --base which one to take its other levels from "
            f"({', '.join(fabric_names())})"
        )
    # Without a base, the fabric of this name gets new numbers for one of its levels.
    target = document_file("fabrics", name, overwrite=overwrite or base is None)
    if plot is not None:
        check_figure(plot, overwrite=overwrite)
    log = read_log(nccl_tests, operation)
    fit = calibrate_fabric(log, name, load_fabric(base or name), level, open_backend(backend))
    if plot is not None:
        from artist.report.command_plots import plot_fabric

        plot_fabric(fit, plot)
    header = (
        f"Level {level} was fitted by `artist calibrate` to {nccl_tests.name}; the rest is "
        f"{base or name}."
    )
    write_document(fit.fabric, target, header)
    print_facts(f"level {level} of fabric {name}", fit.facts, format_)
    if fit.level.smallest_error > 0.01:
        note(
            f"note: small messages take {100 * fit.level.smallest_error:.0f} % longer than in the "
            "log, because of the levels inside: calibrate those first, innermost to outermost"
        )
    note(f"wrote {target}; use it with --fabric {name}")


@app.command()
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
        bool, typer.Option("--misfit", help="Write a fit that misses its steps, too.")
    ] = False,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit a kind of machine's bandwidths and hidden share to measured steps.

    A fit that misses steps by more than published ones (P90 26 %) is refused with exit code 3. The
    calibration of the same name gives models the compute times of their steps on one GPU.
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
    mine = [step for step in of_kind if step.task == model]
    if not mine:
        known = ", ".join(dict.fromkeys(step.task for step in of_kind))
        raise ConfigError(f"--model {model!r}: {steps} has no steps of it; choose one of {known}")
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
    # Of the two, the fabric names the calibration: it is written last.
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
    if fit.untold:
        names = ", ".join(sorted(fit.untold))
        note(f"note: the steps do not tell {names}; {name} keeps what {base} has")
    for doubt in doubtful_steps(mine):
        note(f"note: {steps}:{doubt}")
    note(f"wrote {target} and {scales_target}; use both with --fabric {name}")


app.command()(goodput)


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


def _fit_models(
    measurements: MeasurementSet,
    names: list[str],
    fabric: str,
    backend: str,
    name: str | None,
    format_: Format,
    *,
    system: list[str] | None,
    overwrite: bool,
) -> None:
    """Fit the models, write and print the calibration, and warn of what looks suspicious."""
    from artist.calibrate import fit_models
    from artist.calibrate.output_files import document_file, write_document
    from artist.cluster.fabric import with_system
    from artist.estimates.query_from_text import parse_system
    from artist.run import open_backend

    name = name or _default_name(measurements, names)
    target = document_file("calibrations", name, overwrite=overwrite)
    on_fabric = fit_models.fabric_for(measurements, fabric)
    on_fabric = with_system(on_fabric, parse_system(system or []))
    by_backend = open_backend(backend)
    fitted = [fit_models.calibrate(one, measurements, on_fabric, by_backend) for one in names]
    document = fit_models.calibration_of(name, fitted, measurements, on_fabric, by_backend)
    write_document(document, target, "Written by `artist calibrate`; shares are percentages.")
    if format_ is Format.JSON:
        print_json({"models": [_as_json(name, one) for one in fitted]})
    else:
        _print(name, fitted, measurements.kind)
    for sentence in fit_models.warnings(measurements, fitted):
        note(f"note: {sentence}")
    missed = [one.model for one in fitted if one.error > CONTRADICTED]
    if missed:
        note(
            f"note: no compute scale and constant come within {100 * CONTRADICTED:.0f} % of the "
            f"measured shares of {', '.join(missed)}; check these measurements and the fabric"
        )
    from artist.calibrate.measurements import DEFAULT

    far = [
        one for one in fitted if one.levels and not 1 / FAR <= one.calibration.compute_scale <= FAR
    ]
    if far and measurements.name != DEFAULT:
        scales = ", ".join(f"{one.model} x {one.calibration.compute_scale:.3g}" for one in far)
        note(
            f"note: compute times are scaled more than {FAR:g}-fold ({scales}): that is no faster "
            "GPU, but stands for all that keeps communication from overlapping; artist calibrate "
            "machine takes measured compute times as they are"
        )
    note(f"wrote {target}; use it with --calibration {name}")


def _default_name(measurements: MeasurementSet, names: list[str]) -> str:
    """The name of a calibration for which the user gave none."""
    from artist.workload.models import canonical

    if names == measurements.models():
        return measurements.name
    return f"{canonical(names[0])}-{measurements.name}"


def _as_json(name: str, fitted: FittedModel) -> dict[str, Any]:
    """A fitted model as JSON shows it."""
    return {
        "model": fitted.model,
        "error": fitted.error,
        "calibration": name,
        "quantisation": fitted.quantisation,
        "compute_scale": fitted.calibration.compute_scale,
        "comm_scale": fitted.calibration.comm_scale,
        "constant_share": fitted.calibration.constant_share,
        "levels": [asdict(level) for level in fitted.levels],
    }


def _print(name: str, fitted: list[FittedModel], kind: str) -> None:
    """Print the fit. `kind` heads the column of what was fitted to: `measured` or `paper`."""
    scales = [
        (
            one.model,
            f"{one.calibration.compute_scale:.6g}",
            f"{one.calibration.comm_scale:.6g}",
            f"{100 * one.calibration.constant_share:.6g}",
            f"{100 * one.error:.3f}" if one.levels else "",
        )
        for one in fitted
    ]
    columns = "model", "compute times x", "bytes x", "constant, % of compute"
    print_table(f"calibration {name}", (*columns, "largest error of the fit, %"), scales)
    shares = [
        (
            one.model,
            level.placement,
            level.role,
            f"{level.measured_percent:g}",
            f"{level.uncalibrated_percent:.4g}",
            f"{level.simulated_percent:.4g}",
            "" if level.deviation is None else f"{100 * level.deviation:+.1f}",
            level.note,
        )
        for one in fitted
        for level in one.levels
    ]
    if not shares:
        print_text("The factors give the models their compute times; communication is simulated.")
        return
    simulated = "without the calibration", "with it", "with it off by, %"
    print_table(
        "exposed communication, % of compute",
        ("model", "placement", "role", kind, *simulated, "known causes"),
        shares,
    )
    print_text(
        "The factors multiply the model's compute times and bytes; the constant is added to what "
        f"ASTRA-sim answers. {_what_tests(level.role for one in fitted for level in one.levels)}"
    )


def _what_tests(roles: Iterable[str]) -> str:
    """Which rows are a test of the fit: those that it did not read."""
    if "predicted" in roles:
        return "Predicted rows test the fit."
    return "No row tests this fit: all were fitted."
