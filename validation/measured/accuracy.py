"""How good the predictions are: errors, uneven against even shapes, and the order of placements."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from artist.calibrate.measured_steps import PlacedStep
from artist.calibrate.step_prediction import StepErrors

NEAR = (0.85, 1.15)
"""An uneven shape costs as an even one if the ratio of its steps lies between these."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A row of several GPUs, measured and predicted."""

    step: PlacedStep
    predicted_s: float


@dataclass(frozen=True, slots=True)
class UnevenRatios:
    """Steps of uneven over even shapes with as many machines and GPUs."""

    pairs: int
    measured: float
    """Median ratio."""
    predicted: float
    """Median ratio."""
    near: float
    """Share of the pairs whose predicted ratio lies in `NEAR`."""


@dataclass(frozen=True, slots=True)
class Order:
    """Is the faster of two placements the one that was predicted?"""

    noise: float
    """Two steps that differ by less may be equal: the P90 of the ratio between arrangements of
    as many GPUs on as many machines."""
    pairs: int
    """Pairs of placements that differ by more."""
    tau: float
    """Kendall's tau-a over these pairs; NaN without any."""


def errors(predictions: Sequence[Prediction]) -> StepErrors:
    """The errors of some rows, at least one."""
    return StepErrors.of([x.step for x in predictions], [x.predicted_s for x in predictions])


def measured_again(predictions: Sequence[Prediction]) -> StepErrors | None:
    """The errors if each step were predicted by the others of its placement and batch.

    It holds the noise of both, so a model may do better: it is no floor. None without such steps.
    """
    alike: dict[tuple[object, ...], list[PlacedStep]] = {}
    for one in predictions:
        key = (*_alike(one.step), tuple(sorted(one.step.shares)))
        alike.setdefault(key, []).append(one.step)
    pairs = [
        (step, float(np.median([other.step_s for other in steps if other is not step])))
        for steps in alike.values()
        if len(steps) > 1
        for step in steps
    ]
    return StepErrors.of(*zip(*pairs, strict=True)) if pairs else None


def groups(
    predictions: Sequence[Prediction],
) -> Iterator[tuple[tuple[str, str, int], list[Prediction]]]:
    """Rows by hardware, task and number of machines, in this order."""
    keys = {(one.step.hardware, one.step.task, one.step.machines) for one in predictions}
    for key in sorted(keys):
        yield (
            key,
            [x for x in predictions if (x.step.hardware, x.step.task, x.step.machines) == key],
        )


def uneven_ratios(predictions: Sequence[Prediction]) -> UnevenRatios | None:
    """Uneven over even shapes of one task at one batch; None if there is no such pair."""
    even = {_alike(one.step): one for one in predictions if len(set(one.step.shares)) == 1}
    pairs = [
        (one, even[_alike(one.step)])
        for one in predictions
        if len(set(one.step.shares)) > 1 and _alike(one.step) in even
    ]
    if not pairs:
        return None
    measured = [one.step.step_s / other.step.step_s for one, other in pairs]
    predicted = [one.predicted_s / other.predicted_s for one, other in pairs]
    near = [NEAR[0] <= ratio <= NEAR[1] for ratio in predicted]
    return UnevenRatios(
        len(pairs), float(np.median(measured)), float(np.median(predicted)), float(np.mean(near))
    )


def order(predictions: Sequence[Prediction]) -> Order:
    """Whether placements of one task at one batch come in the right order."""
    noise = _noise(predictions)
    agreeing = pairs = 0
    for one, other in _comparable(predictions):
        measured = math.log(one.step.step_s / other.step.step_s)
        if abs(measured) <= math.log1p(noise):
            continue
        predicted = math.log(one.predicted_s / other.predicted_s)
        pairs += 1
        agreeing += (measured * predicted > 0) - (measured * predicted < 0)
    return Order(noise, pairs, agreeing / pairs if pairs else math.nan)


def _noise(predictions: Sequence[Prediction]) -> float:
    """The P90 of the ratio between steps that differ only in how GPUs lie on the machines."""
    ratios = [
        abs(math.log(one.step.step_s / other.step.step_s))
        for one, other in _comparable(predictions)
        if _alike(one.step) == _alike(other.step)
    ]
    return math.expm1(float(np.quantile(ratios, 0.9))) if ratios else 0.0


def _comparable(predictions: Sequence[Prediction]) -> Iterator[tuple[Prediction, Prediction]]:
    """Pairs of rows of one kind of machine, task and batch."""
    by_work: dict[tuple[str, str, int], list[Prediction]] = {}
    for one in predictions:
        key = (one.step.hardware, one.step.task, one.step.batch)
        by_work.setdefault(key, []).append(one)
    for rows in by_work.values():
        yield from combinations(rows, 2)


def _alike(step: PlacedStep) -> tuple[str, str, int, int, int]:
    return step.hardware, step.task, step.batch, step.machines, step.gpus
