"""Calibrations: numbers that fit the layer tables of models to measurements.

A calibration is a YAML file with one row per model, written by `artist calibrate`. The file also
says what was measured, on which hardware and by whom. The method is that of Dally, section IV-C2. A
row scales the layer table before a backend is asked, and may add a constant to the answer:

    comm ratio = constant share + comm ratio of the scaled iteration

The constant stands for exposed time on every placement of more than one GPU, such as work between
two collectives that overlaps with nothing. A single GPU has neither communication nor a constant.
Caches hold the backend's answer, without the constant.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from typing import Literal

from pydantic import Field

from artist.cluster.fabric import Fabric, FabricSystem
from artist.errors import ConfigError
from artist.estimates.query import Estimate, LatencyQuery
from artist.io.documents import Document, NonNegative, Positive, load_yaml
from artist.io.shipped import document_names, document_path
from artist.registry import UnknownNameError
from artist.workload.gpus import ASSUMED_GPU, gpu_of, in_words
from artist.workload.layers import Layer, Phase, Workload
from artist.workload.models import canonical

AUTO = "auto"
"""The setting for the calibration that the fabric names."""

NONE = "none"
"""The setting for no calibration, and its name in results."""

LARGEST_SCALE = 1e18
"""Bound on scales. No fit needs more: a microsecond would exceed the longest simulation."""


class FitPoint(Document):
    """One measurement that a model was fitted to, beside the simulation of the same placement."""

    placement: str
    measured_percent: NonNegative = Field(description="exposed communication / compute, measured")
    simulated_percent: NonNegative = Field(description="the same, simulated with this row")
    error: NonNegative = Field(description="|simulated / measured - 1|")
    quantisation: NonNegative = Field(
        description="|simulated / exact - 1|: effect of whole microseconds of compute time"
    )


class ModelCalibration(Document):
    """How one model's layer table is scaled, and what is added to the answer."""

    compute_scale: Positive = Field(le=LARGEST_SCALE, description="factor on every compute time")
    comm_scale: Positive = Field(
        default=1.0, le=LARGEST_SCALE, description="factor on every collective's bytes"
    )
    constant_share: NonNegative = Field(
        default=0.0,
        le=LARGEST_SCALE,
        description="exposed on every placement of more than one GPU, as a fraction of compute",
    )
    fit: tuple[FitPoint, ...] = ()

    def apply(self, workload: Workload) -> Workload:
        """The workload with this row's scales, also on hidden times and pipeline messages."""
        staged = workload.staged
        if staged is not None:
            staged = replace(
                staged,
                hidden_ns=round(staged.hidden_ns * self.compute_scale),
                border_bytes=round(staged.border_bytes * self.comm_scale),
            )
        return replace(
            workload,
            layers=tuple(
                _scaled(layer, self.compute_scale, self.comm_scale) for layer in workload.layers
            ),
            staged=staged,
            graph=workload.graph and workload.graph.scaled(self.compute_scale),
        )


class Calibration(Document):
    """A named set of fitted numbers, and where they come from."""

    name: str
    source: str = Field(description="what was measured, and where it was published")
    kind: Literal["measured", "paper"] = Field(
        default="measured", description="measured here, or the table of a paper"
    )
    hardware: str = Field(default="", description="the machine that was measured")
    who: str = Field(default="", description="who measured")
    when: str = Field(default="", description="date of the measurement")
    fabric: str = Field(default="", description="the fabric that it was fitted on")
    backend: str = Field(default="", description="the source of the simulated shares")
    asked: dict[str, str | float] = Field(
        default_factory=dict, description="how ASTRA-sim was asked: settings of the fabric's system"
    )
    artist_version: str = Field(default="", description="version that made the fit")
    inputs: dict[str, str] = Field(default_factory=dict, description="SHA-256 of each input")
    models: dict[str, ModelCalibration]

    @property
    def origin_words(self) -> str:
        """The calibration's name and what it was fitted to, for people."""
        return f"{self.name} ({'measured' if self.kind == 'measured' else 'a table of a paper'})"

    def asked_otherwise(self, system: FabricSystem) -> dict[str, tuple[object, object]]:
        """Settings that differ from those of the fit, as setting -> (in the fit, in `system`)."""
        now = {key: getattr(system, key, was) for key, was in self.asked.items()}
        return {key: (was, now[key]) for key, was in self.asked.items() if was != now[key]}

    def row(self, model: str) -> ModelCalibration | None:
        """The row of a model, by its canonical name; None if there is none.

        The row of `resnet50` also serves `resnet50@batch=64`, unless that has a row of its own.
        Rows scale compute times on `ASSUMED_GPU`, so they serve no name with another GPU.
        """
        if model in self.models:
            return self.models[model]
        plain, _, settings = model.partition("@")
        others = [setting for setting in settings.split(",") if setting != f"gpu={ASSUMED_GPU}"]
        if any(setting.startswith("gpu=") for setting in others):
            return None
        return self.models.get(f"{plain}@{','.join(others)}") or self.models.get(plain)

    def apply(self, workload: Workload) -> Workload:
        """The workload with this calibration's scales; unchanged if the model has no row."""
        row = self.row(workload.name)
        return row.apply(workload) if row else workload

    def constant_share(self, model: str) -> float:
        """The constant share of a model, by its canonical name; 0 if the model has no row."""
        row = self.row(model)
        return row.constant_share if row else 0.0

    def lacks(self, models: Iterable[str]) -> tuple[str, ...]:
        """The models (canonical names) without a row, each once, sorted."""
        return tuple(sorted(model for model in set(models) if self.row(model) is None))


@dataclass(frozen=True, slots=True)
class CalibratedEstimate(Estimate):
    """A backend's answer to a scaled query, with the constant share of the model.

    Times and bytes are the backend's. Only `comm_ratio` includes the constant.
    """

    constant_share: float = 0.0

    @property
    def comm_ratio(self) -> float:
        """The constant share plus exposed communication over compute."""
        return self.constant_share + float(Estimate.comm_ratio.__get__(self))


def with_constant_share(estimate: Estimate, share: float) -> Estimate:
    """A backend's answer about more than one GPU, with the constant share of its model."""
    if not share:
        return estimate
    answer = {field.name: getattr(estimate, field.name) for field in fields(Estimate)}
    return CalibratedEstimate(**answer, constant_share=share)


@dataclass(frozen=True, slots=True)
class CalibratedModels:
    """Calibrated models of the catalogue, by any spelling. A class, so that it pickles."""

    calibration: Calibration | None
    gpu: str = ASSUMED_GPU
    """The GPU on which models without a row compute, unless their names say another."""

    @classmethod
    def on(
        cls, fabric: Fabric, calibration: Calibration | None, kinds: Collection[str] = ()
    ) -> CalibratedModels:
        """The models on GPUs of these kinds, or else on the GPUs that the fabric names."""
        named = (fabric.machine.kind,) if fabric.machine and fabric.machine.kind else ()
        return cls(calibration, gpu_of(kinds or named))

    @property
    def name(self) -> str:
        """The name of the calibration, or `none`."""
        return self.calibration.name if self.calibration else NONE

    def workload(self, model: str) -> Workload:
        """The workload of a model's training iteration, with the calibration's scales.

        Raises:
            ConfigError: the model is unknown, or its settings do not go together.
        """
        from artist.workload.models import canonical, workload

        name = canonical(model)
        if self.calibration is None or not self.scales(name):
            return workload(name, self.gpu)
        return self.calibration.apply(workload(name))

    def scales(self, model: str) -> bool:
        """Whether the calibration has a row for a model."""
        return self.calibration is not None and self.calibration.row(canonical(model)) is not None

    def timed_on(self, model: str) -> str:
        """Where a model's compute times come from, for people: a GPU, or a calibration."""
        from artist.workload.models import settings

        if self.scales(model):
            return f"calibrated by {self.name}"
        return f"on {in_words(settings(model).gpu or self.gpu)}"

    def constant_share(self, model: str) -> float:
        """The constant share of a model on more than one GPU; 0 without a calibration."""
        return self.calibration.constant_share(canonical(model)) if self.calibration else 0.0

    def complete(self, model: str, query: LatencyQuery, answer: Estimate) -> Estimate:
        """A backend's answer to a query about a model, with the constant share of the model."""
        several_gpus = bool(query.dimensions)
        return with_constant_share(answer, self.constant_share(model) if several_gpus else 0.0)


def calibration_names() -> list[str]:
    """Names of the calibrations in `./astra_configs/calibrations` and of the shipped ones."""
    return document_names("calibrations")


def choose_calibration(setting: str, fabric: Fabric) -> Calibration | None:
    """The calibration of a setting on a fabric. `auto` is the one that the fabric names, if any.

    Raises:
        ConfigError: the name is unknown, or the file is bad.
    """
    if setting != AUTO:
        return load_calibration(setting)
    if fabric.calibration is None:
        return None
    try:
        return load_calibration(fabric.calibration)
    except UnknownNameError as cause:
        raise ConfigError(
            f"fabric {fabric.name!r} names a calibration that is not there: {cause}; correct the "
            "fabric's line 'calibration', or give --calibration none"
        ) from cause


def fitted_as_asked(fabric: Fabric) -> str | None:
    """The name of the first calibration that was fitted on this fabric with its system settings."""
    for name in calibration_names():
        calibration = load_calibration(name)
        if calibration is None or not calibration.asked or calibration.fabric != fabric.name:
            continue
        if not calibration.asked_otherwise(fabric.system):
            return name
    return None


def load_calibration(name: str) -> Calibration | None:
    """A calibration by its file or by its name (`document_path`); None for the name `none`.

    Raises:
        ConfigError: the name is unknown, or the file is bad.
    """
    if name == NONE:
        return None
    path = document_path("calibrations", name)
    if path is None:
        known = [*calibration_names(), NONE]
        remedy = f"known: {', '.join(known)}, and {AUTO} for the fabric's own"
        raise UnknownNameError("calibration", name, known, remedy)
    return load_yaml(path, Calibration)


def _scaled(layer: Layer, compute_scale: float, comm_scale: float) -> Layer:
    def phase(old: Phase) -> Phase:
        # At least one byte, because a collective of none would vanish from the iteration.
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
