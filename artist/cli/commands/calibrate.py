"""`artist calibrate`: fits models or a level of a fabric to measurements.

The fits are in `artist/calibrate`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from artist.cli.commands.calibrate_steps import Backend, Overwrite, goodput, machine
from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.calibrate.fit_models import FittedModel
    from artist.calibrate.measurements import MeasurementSet

DEFAULT_FABRIC = "dally2025"

CONTRADICTED = 0.15
"""A fit that misses a measured share by more is reported (docs/calibration.md, section 4)."""

FAR = 10.0
"""A compute scale above this or below its inverse is reported, even for Dally's Table I, where it
is known (docs/calibration.md)."""


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
    help="Fit models or a fabric to measurements. Without a command, fits models: artist "
    "calibrate --model resnet50 (options: artist calibrate models --help).",
)

Fabric = Annotated[str, typer.Option(metavar="NAME|FILE", help="Fabric to simulate on.")]
System = Annotated[
    list[str] | None,
    typer.Option("--system", metavar="K=V", help="ASTRA-sim setting, e.g. collectives=bucketed."),
]
Name = Annotated[str | None, typer.Option(help="Name of the calibration to write.")]


@app.command()
def models(
    model: Annotated[
        str | None, typer.Option(help="Model to fit; see: artist list models.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Fit every measured model.")] = False,
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
    model: Annotated[str | None, typer.Option(help="The profiled model, to fit it.")] = None,
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
    # Without a base, one level of the fabric of this name gets new numbers.
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


app.command()(machine)
app.command()(goodput)


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
            f"note: compute times are scaled more than {FAR:g}-fold ({scales}): that is "
            "not a faster GPU, but stands for everything that prevents overlap; "
            "artist calibrate machine takes measured compute times as they are"
        )
    note(f"wrote {target}; use it with --calibration {name}")


def _default_name(measurements: MeasurementSet, names: list[str]) -> str:
    """The default name of a calibration."""
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
    """Print the fit. `kind` heads the column of target values: `measured` or `paper`."""
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
    """Which rows test the fit: those that were not used for it."""
    if "predicted" in roles:
        return "Predicted rows test the fit."
    return "No row tests this fit: all were fitted."
