"""Predicts measured steps: the compute time on one GPU plus ASTRA-sim's exposed communication.

The layers of the catalogue's model are scaled to the measured compute time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from artist.calibrate.measured_steps import PlacedStep
from artist.cluster.fabric import Fabric
from artist.cluster.placement_shape import parse_signature
from artist.estimates.calibration import ModelCalibration
from artist.estimates.latency_service import LatencyService, single_gpu_ns
from artist.estimates.query import LatencyBackend
from artist.workload.layers import Workload
from artist.workload.models import workload


class StepErrors(NamedTuple):
    """Errors of predictions, as shares of the measured step."""

    steps: int
    median: float
    p90: float

    @classmethod
    def of(cls, steps: Sequence[PlacedStep], predicted_s: Sequence[float]) -> StepErrors:
        """The errors of predicted steps, at least one."""
        pairs = zip(steps, predicted_s, strict=True)
        errors = [abs(value / step.step_s - 1) for step, value in pairs]
        return cls(len(errors), float(np.median(errors)), float(np.quantile(errors, 0.9)))


def predict(
    steps: Sequence[PlacedStep], fabric: Fabric, backend: LatencyBackend
) -> list[float | None]:
    """Seconds per step; None if the catalogue lacks the task, or the file its compute time."""
    by_name = {_name(step): step for step in steps if step.is_predictable}
    service = LatencyService(fabric, backend, lambda name: _scaled(by_name[name]))

    def one(step: PlacedStep) -> float | None:
        if step.compute_s is None or not step.is_predictable:
            return None
        shape = parse_signature(step.placement, fabric.level_names, fabric.gpus_per_socket)
        return step.compute_s * (1.0 + service.estimate(_name(step), shape).comm_ratio)

    return [one(step) for step in steps]


class PredictedStep(NamedTuple):
    """A measured step on several GPUs beside its prediction."""

    step: PlacedStep
    predicted_s: float

    @property
    def error(self) -> float:
        """Predicted over measured step, minus 1."""
        return self.predicted_s / self.step.step_s - 1


def predicted_by_task(
    steps: Sequence[PlacedStep], fabric: Fabric, backend: LatencyBackend
) -> dict[str, list[PredictedStep]]:
    """Each task's steps on several GPUs, for tasks that can be predicted."""
    several = [step for step in steps if step.gpus > 1]
    rows: dict[str, list[PredictedStep]] = {}
    for step, predicted_s in zip(several, predict(several, fabric, backend), strict=True):
        if predicted_s is not None:
            rows.setdefault(step.task, []).append(PredictedStep(step, predicted_s))
    return rows


MOST_P90 = 0.26
"""The P90 of the worst group of steps on measured machines, small images on two T4 machines
(docs/fidelity.md). A fit that misses its own steps by more does not describe a machine."""


def misfit(
    steps: Sequence[PredictedStep],
    where: str,
    contradicting: Callable[[PredictedStep], PlacedStep | None],
) -> str:
    """Why a fit to these steps is refused, with the worst step; empty if it is good.

    `contradicting` finds a step that no fit meets together with the worst one.
    """
    errors = StepErrors.of(*zip(*steps, strict=True))
    if errors.p90 <= MOST_P90:
        return ""
    worst = max(steps, key=lambda one: abs(math.log1p(one.error)))
    other, both = contradicting(worst), ""
    if other is not None:
        both = (
            f"no fit meets it and line {other.line} ({other.step_s:.4g} s on {other.placement}) at "
            "once, so one of the two may be wrong; "
        )
    return (
        f"{where}:{worst.step.line}: the step on {worst.step.placement} takes "
        f"{worst.step.step_s:.4g} s and the best fit says {worst.predicted_s:.4g} s; {both}it "
        f"misses its steps by {100 * errors.p90:,.0f} % (P90), those of measured machines by at "
        f"most {100 * MOST_P90:.0f} % (docs/fidelity.md)"
    )


def doubtful_steps(steps: Iterable[PlacedStep]) -> Iterator[str]:
    """Warnings about implausible steps, each beginning with the line number."""
    for step in steps:
        if step.gpus > 1 and step.compute_s is not None and step.step_s < 0.95 * step.compute_s:
            yield (
                f"{step.line}: a step on {step.gpus} GPUs takes {step.step_s:g} s, less than one "
                f"on 1 GPU of the same batch ({step.compute_s:g} s): check it"
            )
        if step.gpus == 1 and step.is_predictable and compute_scale(step) > 100:
            yield (
                f"{step.line}: a step on 1 GPU takes {step.step_s:g} s, {compute_scale(step):,.0f} "
                "times as long as the catalogue says; step_s is in seconds"
            )


def mean_log_error(steps: Sequence[PlacedStep], predicted_s: Sequence[float | None]) -> float:
    """Mean |log(predicted / measured)| of the rows that have a prediction."""
    errors = [
        abs(math.log(value / step.step_s))
        for step, value in zip(steps, predicted_s, strict=True)
        if value is not None
    ]
    return sum(errors) / len(errors)


def compute_scale(step: PlacedStep) -> float:
    """The step's compute time on one GPU over that of the catalogue's model."""
    assert step.model is not None
    assert step.compute_s is not None
    return step.compute_s * 1e9 / single_gpu_ns(workload(step.model))


def _name(step: PlacedStep) -> str:
    return f"{step.model}:{step.compute_s!r}"


@cache
def _scaled(step: PlacedStep) -> Workload:
    """The model's iteration with the step's compute time on one GPU."""
    assert step.model is not None
    return ModelCalibration(compute_scale=compute_scale(step)).apply(workload(step.model))
