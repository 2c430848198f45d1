"""Calibrated workloads: how much faster or slower than the catalogue's a model computes.

A calibration is a YAML file with one row per model; where it comes from is part of it.
Source: Dally, section IV-C2.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from artist.documents import Document, load_yaml
from artist.errors import UnknownNameError
from artist.resources import resource
from artist.workload.layers import Layer, Phase, Workload

Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ModelCalibration(Document):
    """How one model's layer table is scaled before it is simulated."""

    compute_scale: Scale = Field(description="factor on every compute time")


class Calibration(Document):
    """A named set of scales with its provenance."""

    name: str
    source: str = Field(description="what was measured, where and when")
    models: dict[str, ModelCalibration]

    def apply(self, workload: Workload) -> Workload:
        """The workload with this calibration's scale; unchanged for models it does not hold."""
        row = self.models.get(workload.name)
        if row is None:
            return workload
        return replace(
            workload,
            layers=tuple(_scaled(layer, row.compute_scale) for layer in workload.layers),
        )


def load_calibration(name: str) -> Calibration | None:
    """A calibration by name (`./astra_configs/calibrations` first, then shipped) or file.

    Raises:
        ConfigError: unknown name or bad file.
    """
    if name == "none":
        return None
    if name.endswith((".yaml", ".yml")) or "/" in name:
        return load_yaml(Path(name), Calibration)
    folders = (Path("astra_configs", "calibrations"), resource("astra_configs", "calibrations"))
    for folder in folders:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return load_yaml(path, Calibration)
    known = {path.stem for folder in folders for path in folder.glob("*.yaml")} | {"none"}
    raise UnknownNameError("calibration", name, known, "known: " + ", ".join(sorted(known)))


def _scaled(layer: Layer, scale: float) -> Layer:
    def phase(old: Phase) -> Phase:
        return replace(old, compute_us=old.compute_us * scale)

    return replace(
        layer,
        forward=phase(layer.forward),
        input_grad=phase(layer.input_grad),
        weight_grad=phase(layer.weight_grad),
    )
