"""Calibrates models: fits scales to measured shares and predicts every measured placement.

`fit_scales.py` does the fitting, `communication_shares.py` the simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from artist import __version__
from artist.calibrate.asked_otherwise import as_asked
from artist.calibrate.communication_shares import Scales, ShareModel
from artist.calibrate.fit_scales import Target, fit
from artist.calibrate.measurements import DEFAULT, Measurement, MeasurementSet
from artist.cluster.fabric import Fabric, fabric_names, load_fabric
from artist.errors import ConfigError
from artist.estimates.calibration import Calibration, ModelCalibration
from artist.estimates.latency_service import single_gpu_ns
from artist.estimates.query import LatencyBackend
from artist.io.digests import sha256
from artist.workload.astra_text import to_text
from artist.workload.layers import Parallelism, Workload
from artist.workload.models import canonical, workload

MISSED = 0.20
"""A comparison that misses the measured share by more than this gets a warning. Our choice."""

SMALLEST_USUAL = 0.001
"""A smaller measured share is probably a fraction written as a percentage. Our choice: the smallest
share in Table I is 1 %."""


@dataclass(frozen=True, slots=True)
class PlacementResult:
    """The measured share of one placement, and the simulated one before and after the fit.

    Percentages are exposed communication over compute. `role` is `fitted` or `predicted`.
    `uncalibrated_percent` is the share of the catalogue's model, and `one_level_percent` that of a
    compute scale fitted to the first measurement alone. A deviation is simulated over measured
    share, minus one; None if the measured share is zero.
    """

    placement: str
    role: str
    measured_percent: float
    uncalibrated_percent: float
    uncalibrated_deviation: float | None
    one_level_percent: float
    one_level_deviation: float | None
    simulated_percent: float
    deviation: float | None
    compute_ms: float
    exposed_ms: float
    note: str


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A calibrated model.

    `error` is the largest relative error over the fitted placements, `quantisation` the largest
    relative change of their shares due to whole microseconds. A model that was measured on one GPU
    has no placements; both are 0.
    """

    model: str
    error: float
    quantisation: float
    calibration: ModelCalibration
    levels: tuple[PlacementResult, ...]


def calibrate(
    model: str, measured: MeasurementSet, fabric: Fabric, backend: LatencyBackend
) -> FittedModel:
    """Fit one model (a spec) and predict every placement it was measured on.

    A model that was measured on one GPU gets that compute time, and no share is fitted.

    Raises:
        ConfigError: the model is unknown, has no measurements, or was measured on a placement that
            the fabric does not have.
        TraceError: no scale gives a measured share.
    """
    name = canonical(model)
    rows = measured.of(name)
    if rows[0].compute_ms is not None:
        return _with_compute_time(name, rows[0].compute_ms)
    shares = {
        row.placement: ShareModel(workload(name), row.placement, fabric, backend) for row in rows
    }
    targets = [
        Target(row.placement, row.share, shares[row.placement]) for row in rows if row.fitted
    ]
    calibration = fit(targets)
    one_level = fit(targets[:1]) if len(targets) > 1 else calibration
    stages = [Scales(1.0), Scales.of(one_level), Scales.of(calibration)]
    return FittedModel(
        model=name,
        error=max(point.error for point in calibration.fit),
        quantisation=max(point.quantisation for point in calibration.fit),
        calibration=calibration,
        levels=tuple(_placement_result(row, shares[row.placement], stages) for row in rows),
    )


def _with_compute_time(model: str, compute_ms: float) -> FittedModel:
    """The model with the compute time of its iteration on one GPU."""
    scale = 1e6 * compute_ms / single_gpu_ns(workload(model))
    return FittedModel(model, 0.0, 0.0, ModelCalibration(compute_scale=scale), ())


def calibration_of(
    name: str,
    fitted: Sequence[FittedModel],
    measured: MeasurementSet,
    fabric: Fabric,
    backend: LatencyBackend,
) -> Calibration:
    """The document to write: all fits, and the measurements and inputs that they come from.

    If all models were measured on one GPU, the fabric played no part and is left out.
    """
    inputs = {"measurements": measured.digest}
    simulated: dict[str, Any] = {}
    if any(one.levels for one in fitted):
        inputs["fabric"] = fabric.digest
        simulated = {"fabric": fabric.name, "backend": backend.source, "asked": as_asked(fabric)}
    for one in fitted:
        inputs[f"workload {one.model}"] = sha256(_text(workload(one.model)))
    return Calibration(
        name=name,
        source=measured.source,
        kind="paper" if measured.kind == "paper" else "measured",
        hardware=measured.hardware,
        who=measured.who,
        when=measured.when,
        **simulated,
        artist_version=__version__,
        inputs=inputs,
        models={one.model: one.calibration for one in fitted},
    )


def fabric_for(measured: MeasurementSet, name: str) -> Fabric:
    """The fabric of this name, if it has the placements of the measurements.

    Raises:
        ConfigError: the measurements are the default ones, Table I, and the fabric has no sockets.
    """
    fabric = load_fabric(name)
    if measured.name != DEFAULT or fabric.gpus_per_socket is not None:
        return fabric
    fit = [one for one in fabric_names() if load_fabric(one).gpus_per_socket is not None]
    raise ConfigError(
        f"fabric {fabric.name!r} has no socket level, but placements of the default measurements, "
        "Table I of the Dally paper, have sockets (4+4); give your own measurements with "
        f"--measured FILE.csv, or a fabric with sockets ({', '.join(fit)})"
    )


def warnings(measurements: MeasurementSet, fitted: Sequence[FittedModel]) -> list[str]:
    """Sentences on what is suspicious about measurements and their fit.

    A missed row with a note is left out: the note explains it.
    """
    models = {one.model.partition("@")[0] for one in fitted}
    sentences = [
        f"{row.model} on {row.placement} communicates {100 * row.share:g} % of its compute "
        "time, below 0.1 %: is comm_percent a percentage (4.5), not a fraction (0.045)?"
        for row in measurements.rows
        if row.model.partition("@")[0] in models and 0 < row.share < SMALLEST_USUAL
    ]
    missed = [
        f"{one.model} on {level.placement} ({100 * level.deviation:+.0f} %)"
        for one in fitted
        for level in one.levels
        if level.role == "predicted" and not level.note
        if level.deviation is not None and abs(level.deviation) > MISSED
    ]
    if missed:
        sentences.append(
            f"rows that were only compared are missed by more than {100 * MISSED:.0f} %: "
            f"{', '.join(missed)}; check the links of the fabric, or fit these rows too"
        )
    return sentences


def _placement_result(
    row: Measurement, shares: ShareModel, stages: Sequence[Scales]
) -> PlacementResult:
    """The result of one row. `stages` are the scales of the catalogue, of the fit to the first
    measurement alone, and of the whole fit.
    """
    uncalibrated, one_level, simulated = (shares.simulated(scales) for scales in stages)
    compute_ms = shares.compute_us(stages[-1]) / 1000

    def deviation(share: float) -> float | None:
        return _plain(share / row.share - 1) if row.share else None

    return PlacementResult(
        placement=row.placement,
        role="fitted" if row.fitted else "predicted",
        measured_percent=_plain(100 * row.share),
        uncalibrated_percent=_plain(100 * uncalibrated),
        uncalibrated_deviation=deviation(uncalibrated),
        one_level_percent=_plain(100 * one_level),
        one_level_deviation=deviation(one_level),
        simulated_percent=_plain(100 * simulated),
        deviation=deviation(simulated),
        compute_ms=_plain(compute_ms),
        exposed_ms=_plain(simulated * compute_ms),
        note=row.note,
    )


def _plain(value: float) -> float:
    return float(f"{value:.6g}")


def _text(workload_: Workload) -> str:
    """Everything that the shares of a workload depend on, as text."""
    # The text format knows data-parallel workloads only; the first line holds the real kind.
    layers = to_text(replace(workload_, parallelism=Parallelism.DATA))
    return f"{workload_.parallelism} {workload_.degrees}\n{layers}"
