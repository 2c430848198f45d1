"""Calibrating models: from measured shares to a calibration file and a table beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from artist import __version__
from artist.calibrate.fit import Target, fit
from artist.calibrate.measurements import Measurement, MeasurementSet
from artist.calibrate.shares import Scales, ShareModel, digest
from artist.cluster.fabric import Fabric
from artist.estimates.calibration import Calibration, ModelCalibration
from artist.estimates.query import LatencyBackend
from artist.workload.layers import Parallelism, Workload, to_text
from artist.workload.models import canonical, workload


@dataclass(frozen=True, slots=True)
class Level:
    """One measured placement beside the calibrated simulation.

    Percentages are exposed communication over compute; `deviation` is simulated over
    measured, minus one (None where nothing was measured exposed).
    """

    placement: str
    role: str
    measured_percent: float
    simulated_percent: float
    deviation: float | None
    compute_ms: float
    exposed_ms: float
    note: str


@dataclass(frozen=True, slots=True)
class Fitted:
    """A calibrated model. `error` is relative, the worst over the levels fitted to."""

    model: str
    error: float
    quantisation: float
    calibration: ModelCalibration
    levels: tuple[Level, ...]


def calibrate(
    model: str, measured: MeasurementSet, fabric: Fabric, backend: LatencyBackend
) -> Fitted:
    """Fit one model (a spec) and predict every placement it was measured on.

    Raises:
        ConfigError: unknown model, nothing measured for it, or a placement the fabric lacks.
        TraceError: a share that no scale gives.
    """
    name = canonical(model)
    rows = measured.of(name)
    shares = {
        row.placement: ShareModel(workload(name), row.placement, fabric, backend) for row in rows
    }
    targets = [
        Target(row.placement, row.share, shares[row.placement]) for row in rows if row.fitted
    ]
    found = fit(targets)
    scales = Scales(found.compute_scale, found.comm_scale)
    return Fitted(
        model=name,
        error=max(point.error for point in found.fit),
        quantisation=max(point.quantisation for point in found.fit),
        calibration=found,
        levels=tuple(_level(row, shares[row.placement], scales) for row in rows),
    )


def calibration_of(
    name: str,
    fitted: Sequence[Fitted],
    measured: MeasurementSet,
    fabric: Fabric,
    backend: LatencyBackend,
) -> Calibration:
    """What is written: all fits with where they come from."""
    inputs = {"measurements": measured.digest, "fabric": digest(fabric.model_dump_json())}
    for one in fitted:
        inputs[f"workload {one.model}"] = digest(_text(workload(one.model)))
    return Calibration(
        name=name,
        source=measured.source,
        hardware=measured.hardware,
        who=measured.who,
        when=measured.when,
        fabric=fabric.name,
        backend=backend.source,
        artist_version=__version__,
        inputs=inputs,
        models={one.model: one.calibration for one in fitted},
    )


def _level(row: Measurement, shares: ShareModel, scales: Scales) -> Level:
    simulated = shares.simulated(scales)
    compute_ms = shares.compute_us(scales) / 1000
    return Level(
        placement=row.placement,
        role="fitted" if row.fitted else "predicted",
        measured_percent=_plain(100 * row.share),
        simulated_percent=_plain(100 * simulated),
        deviation=_plain(simulated / row.share - 1) if row.share else None,
        compute_ms=_plain(compute_ms),
        exposed_ms=_plain(simulated * compute_ms),
        note=row.note,
    )


def _plain(value: float) -> float:
    return float(f"{value:.6g}")


def _text(found: Workload) -> str:
    """Everything that a workload's shares depend on, as text."""
    layers = to_text(replace(found, parallelism=Parallelism.DATA))
    return f"{found.parallelism} {found.degrees}\n{layers}"
