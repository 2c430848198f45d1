"""`artist calibrate`: fits models or a fabric's level to measurements.

The fits are in `artist/calibrate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.options import FormatOption
from artist.cli.output import Format, note, print_facts, print_json, print_table
from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.calibrate.fit_models import FittedModel
    from artist.calibrate.measurements import MeasurementSet
    from artist.cluster.fabric import Fabric

DEFAULT_FABRIC = "dally2025"

CONTRADICTED = 0.15
"""A fit that misses a measured share by more says so (docs/calibration.md, section 4)."""

Figure = Annotated[Path | None, typer.Option("--plot", help="Draw the fit (PNG, SVG or PDF).")]


def calibrate(
    model: Annotated[str | None, typer.Option(help="See: artist list models.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every model that was measured.")] = False,
    measured: Annotated[
        Path | None, typer.Option(help="Measured shares, CSV (default: Dally's Table I).")
    ] = None,
    nccl_tests: Annotated[
        Path | None, typer.Option("--nccl-tests", help="A log of nccl-tests: fit a fabric level.")
    ] = None,
    level: Annotated[str | None, typer.Option(help="The level that the log measured.")] = None,
    fabric: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="Fabric to simulate on, or to write.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="Fabric to take the other levels from (--nccl-tests).")
    ] = None,
    operation: Annotated[
        str | None,
        typer.Option(help="Operation of the log, if it does not tell: all_reduce, alltoall ..."),
    ] = None,
    backend: Annotated[str, typer.Option(help="See: artist list backends.")] = "analytical",
    kineto: Annotated[
        Path | None, typer.Option(help="A trace of torch.profiler, measured on --placement.")
    ] = None,
    placement: Annotated[
        str | None, typer.Option(help="GPUs of the --kineto run: 8 or 4,4.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the calibration to write.")] = None,
    plot: Figure = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace a calibration, fabric or plot of this name."),
    ] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fit models to measured communication shares, or a fabric's level to a log."""
    if nccl_tests is not None:
        _refuse_given({"--model": model, "--all": all_, "--measured": measured, "--kineto": kineto})
        if fabric is None or level is None:
            raise ConfigError("--nccl-tests needs --fabric NAME (to write) and --level LEVEL")
        target = _fabric_file(fabric, base, overwrite=overwrite)
        if plot is not None:
            from artist.io.figures import check_figure

            check_figure(plot, overwrite=overwrite)
        _calibrate_fabric(
            nccl_tests, operation, fabric, base, level, backend, plot, format_, target
        )
        return
    _refuse_given({"--level": level, "--base": base, "--operation": operation, "--plot": plot})
    if kineto is not None and model is None:
        _refuse_given({"--all": all_, "--measured": measured, "--placement": placement})
        _print_breakdown(kineto, format_)
        return
    from artist.calibrate.output_files import document_file

    measurements = _measurements(model, all_, measured, kineto, placement)
    names = measurements.models() if model is None else [model]
    if name is None:
        name = _name_of(measurements, names)
    target = document_file("calibrations", name, overwrite=overwrite)
    _calibrate_models(measurements, names, fabric or DEFAULT_FABRIC, backend, name, format_, target)


def _name_of(measurements: MeasurementSet, names: list[str]) -> str:
    """The name of a calibration that the user did not name."""
    from artist.workload.models import canonical

    if names == measurements.models():
        return measurements.name
    return f"{canonical(names[0])}-{measurements.name}"


def _fabric_file(name: str, base: str | None, *, overwrite: bool) -> Path:
    """The file to write. Without a base it is the fabric's own, which gets one level anew."""
    from artist.calibrate.output_files import document_file
    from artist.cluster.fabric import fabric_names

    if base is None and name not in fabric_names():
        raise ConfigError(
            f"fabric {name!r} is new: say with --base which one to take its other levels from "
            f"({', '.join(fabric_names())})"
        )
    return document_file("fabrics", name, overwrite=overwrite or base is None)


def _refuse_given(options: dict[str, Any]) -> None:
    """Refuse options that do not go with the others, if the user gave one."""
    given = [option for option, value in options.items() if value not in (None, False)]
    if given:
        raise ConfigError(
            f"{given[0]} does not go with the other options: calibrate either models (--model, "
            "--all, --measured, --kineto) or a fabric (--nccl-tests, --level, --base)"
        )


def _measurements(
    model: str | None,
    all_: bool,
    measured: Path | None,
    kineto: Path | None,
    placement: str | None,
) -> MeasurementSet:
    from artist.calibrate.kineto import read_kineto
    from artist.calibrate.measurements import default_measurements, from_trace, read_measurements

    if (model is None) == (not all_):
        raise ConfigError("give either --model NAME or --all")
    if (kineto is None) != (placement is None) or (kineto and measured):
        raise ConfigError("--kineto TRACE goes with --model and --placement, not with --measured")
    if kineto is not None and model is not None and placement is not None:
        steps = read_kineto(kineto)
        return from_trace(kineto, steps.digest, model, placement, steps.share)
    return read_measurements(measured) if measured is not None else default_measurements()


def _print_breakdown(trace: Path, format_: Format) -> None:
    """Print the compute and communication times of a profiler's trace; nothing is fitted."""
    from dataclasses import asdict

    from artist.calibrate.kineto import read_kineto

    steps = read_kineto(trace)
    facts = {**asdict(steps), "comm_percent": 100 * steps.share}
    if format_ is Format.JSON:
        print_json(facts)
        return
    layers = facts.pop("layers")
    print_facts(f"{trace.name}, medians of {steps.steps} steps", facts)
    if layers:
        print_table("compute by layer", list(layers[0]), [list(x.values()) for x in layers])


def _calibrate_models(
    measurements: MeasurementSet,
    names: list[str],
    fabric: str,
    backend: str,
    name: str,
    format_: Format,
    target: Path,
) -> None:
    from artist.calibrate.doubts import doubts
    from artist.calibrate.fit_models import calibrate as calibrate_model
    from artist.calibrate.fit_models import calibration_of
    from artist.calibrate.output_files import write_document
    from artist.cluster.fabric import load_fabric
    from artist.run import open_backend

    on_fabric = load_fabric(fabric)
    _check_sockets(measurements, on_fabric)
    by_backend = open_backend(backend)
    fitted = [calibrate_model(model, measurements, on_fabric, by_backend) for model in names]
    document = calibration_of(name, fitted, measurements, on_fabric, by_backend)
    write_document(document, target, "Written by `artist calibrate`; shares are percentages.")
    if format_ is Format.JSON:
        print_json(_as_json(name, fitted))
    else:
        _print(name, fitted, measurements.kind)
    for sentence in doubts(measurements, fitted):
        note(f"note: {sentence}")
    missed = [one.model for one in fitted if one.error > CONTRADICTED]
    if missed:
        note(
            f"note: no compute scale and constant come within {100 * CONTRADICTED:.0f} % of the "
            f"measured shares of {', '.join(missed)}; check these measurements and the fabric"
        )
    note(f"wrote {target}; use it with --calibration {name}")


def _check_sockets(measurements: MeasurementSet, fabric: Fabric) -> None:
    """Refuse Table I, which the user did not name, on a fabric without its placements."""
    from artist.calibrate.measurements import DEFAULT
    from artist.cluster.fabric import fabric_names, load_fabric

    if measurements.name != DEFAULT or fabric.gpus_per_socket is not None:
        return
    fit = [name for name in fabric_names() if load_fabric(name).gpus_per_socket is not None]
    raise ConfigError(
        f"fabric {fabric.name!r} has no socket level, but placements of the default measurements, "
        "Table I of the Dally paper, have sockets (4+4); give your own measurements with "
        f"--measured FILE.csv, or a fabric with sockets ({', '.join(fit)})"
    )


def _calibrate_fabric(
    log: Path,
    operation: str | None,
    name: str,
    base: str | None,
    level: str,
    backend: str,
    plot: Path | None,
    format_: Format,
    target: Path,
) -> None:
    from artist.calibrate.fit_fabric import calibrate_fabric
    from artist.calibrate.nccl_log_reader import read_log
    from artist.calibrate.output_files import write_document
    from artist.cluster.fabric import load_fabric
    from artist.run import open_backend

    fit = calibrate_fabric(
        read_log(log, operation), name, load_fabric(base or name), level, open_backend(backend)
    )
    if plot is not None:
        from artist.calibrate.plots import plot_fabric

        plot_fabric(fit, plot)
    header = (
        f"Level {level} was fitted by `artist calibrate` to {log.name}; the rest is {base or name}."
    )
    write_document(fit.fabric, target, header)
    print_facts(f"level {level} of fabric {name}", fit.facts, format_)
    if fit.level.smallest_error > 0.01:
        note(
            f"note: small messages take {100 * fit.level.smallest_error:.0f} % longer than in the "
            "log, because of the levels inside: calibrate those first, innermost to outermost"
        )
    note(f"wrote {target}; use it with --fabric {name}")


def _as_json(name: str, fitted: list[FittedModel]) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "models": [
            {
                "model": one.model,
                "error": one.error,
                "calibration": name,
                "quantisation": one.quantisation,
                "compute_scale": one.calibration.compute_scale,
                "comm_scale": one.calibration.comm_scale,
                "constant_share": one.calibration.constant_share,
                "levels": [asdict(level) for level in one.levels],
            }
            for one in fitted
        ],
    }


def _print(name: str, fitted: list[FittedModel], kind: str) -> None:
    """Print the fit. `kind` heads the column of what was fitted to: `measured` or `paper`."""
    theirs = "the paper's" if kind == "paper" else "the measured"
    print_table(
        f"calibration {name}",
        (
            "model",
            "compute scale",
            "comm scale",
            "constant %",
            "error %",
            "whole microseconds %",
        ),
        [
            (
                one.model,
                f"{one.calibration.compute_scale:.6g}",
                f"{one.calibration.comm_scale:.6g}",
                f"{100 * one.calibration.constant_share:.6g}",
                f"{100 * one.error:.3f}",
                f"{100 * one.quantisation:.3f}",
            )
            for one in fitted
        ],
    )
    print_table(
        f"communication, % of compute (and % above {theirs}): before, and after the fit",
        (
            "model",
            "placement",
            "role",
            kind,
            "not calibrated",
            "one level fitted",
            "as written",
            "known causes",
        ),
        [
            (
                one.model,
                level.placement,
                level.role,
                f"{level.measured_percent:g}",
                _cell(level.uncalibrated_percent, level.uncalibrated_deviation),
                _cell(level.one_level_percent, level.one_level_deviation),
                _cell(level.simulated_percent, level.deviation),
                level.note,
            )
            for one in fitted
            for level in one.levels
        ],
    )


def _cell(percent: float, deviation: float | None) -> str:
    """A simulated share, and how far it is from the measured one."""
    return f"{percent:.4g}" + ("" if deviation is None else f" ({100 * deviation:+.1f})")
