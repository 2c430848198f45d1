"""Calibrations: factors that fit the layer tables of models to measurements.

A calibration is a YAML file with one row per model, written by `artist calibrate`. The file also
says what was measured, on which hardware and by whom. Source: Dally, section IV-C2.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from artist.io.documents import Document, load_yaml
from artist.io.fields import NonNegative, Positive
from artist.io.shipped import document_names, document_path
from artist.registry import UnknownNameError
from artist.workload.layers import Layer, Phase, Workload


class FitPoint(Document):
    """One measurement that a model was fitted to, beside the simulation of the same placement."""

    placement: str
    measured_percent: NonNegative = Field(description="exposed communication / compute, measured")
    simulated_percent: NonNegative = Field(description="the same, simulated with these scales")
    error: NonNegative = Field(description="|simulated / measured - 1|")
    quantisation: NonNegative = Field(
        description="|simulated / exact - 1|: effect of whole microseconds of compute time"
    )


class ModelCalibration(Document):
    """How one model's layer table is scaled before it is simulated."""

    compute_scale: Positive = Field(description="factor on every compute time")
    comm_scale: Positive = Field(default=1.0, description="factor on every collective's bytes")
    fit: tuple[FitPoint, ...] = ()

    def apply(self, workload: Workload) -> Workload:
        """The workload with this row's scales."""
        return replace(
            workload,
            layers=tuple(
                _scaled(layer, self.compute_scale, self.comm_scale) for layer in workload.layers
            ),
        )


class Calibration(Document):
    """A named set of scales, and where they come from."""

    name: str
    source: str = Field(description="what was measured, and where it was published")
    hardware: str = Field(default="", description="the machine that was measured")
    who: str = Field(default="", description="who measured")
    when: str = Field(default="", description="date of the measurement")
    fabric: str = Field(default="", description="the fabric that it was fitted on")
    backend: str = Field(default="", description="the source of the simulated shares")
    artist_version: str = Field(default="", description="version that made the fit")
    inputs: dict[str, str] = Field(default_factory=dict, description="SHA-256 of each input")
    models: dict[str, ModelCalibration]

    def apply(self, workload: Workload) -> Workload:
        """The workload with this calibration's scales; unchanged if the model has no row.

        The row of `resnet50` also serves `resnet50@batch=64`, unless that has a row of its own.
        """
        row = self.models.get(workload.name) or self.models.get(workload.name.partition("@")[0])
        return row.apply(workload) if row else workload


def calibration_names() -> list[str]:
    """Names of the calibrations in `./astra_configs/calibrations` and of the shipped ones."""
    return document_names("calibrations")


def load_calibration(name: str) -> Calibration | None:
    """A calibration by its file or by its name (`document_path`); None for the name `none`.

    Raises:
        ConfigError: the name is unknown, or the file is bad.
    """
    if name == "none":
        return None
    path = document_path("calibrations", name)
    if path is None:
        known = [*calibration_names(), "none"]
        raise UnknownNameError("calibration", name, known, "known: " + ", ".join(known))
    return load_yaml(path, Calibration)


def _scaled(layer: Layer, compute_scale: float, comm_scale: float) -> Layer:
    def phase(old: Phase) -> Phase:
        # A collective keeps at least one byte: with none it would vanish from the iteration.
        size = round(old.comm_bytes * comm_scale)
        return replace(
            old,
            compute_us=old.compute_us * compute_scale,
            comm_bytes=max(size, min(old.comm_bytes, 1)),
        )

    return replace(
        layer,
        forward=phase(layer.forward),
        input_grad=phase(layer.input_grad),
        weight_grad=phase(layer.weight_grad),
    )
