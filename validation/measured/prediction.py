"""Predicts step times: the compute time of one GPU, and ASTRA-sim's exposed communication.

    predicted = compute + exposed communication of the model on the placement and fabric

The layers of the catalogue's model are scaled to the measured compute time. Three numbers of a
kind of machine are fitted on its `resnet50` rows and serve its other tasks (`fit`): factors on
the bandwidth inside and outside its machines, and the share that a pair of machines reaches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from artist.cluster.fabric import Fabric, with_system
from artist.cluster.placement_shape import parse_signature
from artist.estimates.calibration import ModelCalibration
from artist.estimates.latency_service import LatencyService, single_gpu_ns
from artist.run import open_backend
from artist.workload.layers import Workload
from artist.workload.models import workload
from validation.measured.steps import Step

FITTED_TASK = "resnet50"

FINEST = 0.01
"""The last step of the search changes a number by this share; steps are noisier by far."""

PENALTY = 1e-3
"""Cost of doubling a number, in mean |log error|: what the steps do not tell keeps its source."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What is fitted for a kind of machine."""

    inside: float = 1.0
    """Factor on the bandwidth of the levels up to the machine."""
    outside: float = 1.0
    """Factor on the bandwidth of the levels beyond it."""
    pair: float = 1.0
    """Factor on the share of that bandwidth that two machines reach among themselves."""

    def on(self, fabric: Fabric) -> Fabric:
        """The fabric with these numbers."""
        machine = fabric.level_names.index("machine")
        levels = []
        for index, level in enumerate(fabric.levels):
            factor = self.inside if index <= machine else self.outside
            pair = level.pair_share * (self.pair if index > machine else 1.0)
            bandwidth = level.bandwidth_gib_per_s * factor
            changes = {"bandwidth_gib_per_s": bandwidth, "pair_share": min(pair, 1.0)}
            levels.append(level.model_copy(update=changes))
        return fabric.model_copy(update={"levels": tuple(levels)})


def as_measured(fabric: Fabric) -> Fabric:
    """The fabric as the framework of the measured steps uses it, where the file leaves that open.

    DistributedDataParallel sends buckets, and NCCL makes one ring through all GPUs of a job.
    """
    sent = {"rings": "one", "collectives": "bucketed"}
    missing = {key: sent[key] for key in sent if key not in fabric.system.model_fields_set}
    return with_system(fabric, missing)


def predict(steps: Iterable[Step], fabric: Fabric) -> list[float | None]:
    """Seconds per step; None where the catalogue lacks the task or the file its compute time."""
    wanted = list(steps)
    workloads = {
        f"{step.model}:{step.compute_s!r}": step for step in wanted if step.model is not None
    }

    def workload_of(key: str) -> Workload:
        step = workloads[key]
        assert step.model is not None
        assert step.compute_s is not None
        return _scaled(step.model, step.compute_s)

    service = LatencyService(fabric, open_backend("analytical"), workload_of)

    def one(step: Step) -> float | None:
        if step.model is None or step.compute_s is None:
            return None
        shape = parse_signature(step.placement, fabric.level_names, fabric.gpus_per_socket)
        estimate = service.estimate(f"{step.model}:{step.compute_s!r}", shape)
        return step.compute_s * (1.0 + estimate.comm_ratio)

    return [one(step) for step in wanted]


def fit(steps: Iterable[Step], fabric: Fabric) -> Numbers:
    """The three numbers that fit the steps of `resnet50` on several GPUs best.

    The least mean |log(predicted / measured)|, found by a search along each number with ever
    smaller steps. Other tasks do not count. Without steps to fit, the fabric stays as it is.
    """
    fitted = [
        step
        for step in steps
        if step.task == FITTED_TASK and step.gpus > 1 and step.compute_s is not None
    ]
    if not fitted:
        return Numbers()

    @cache
    def loss(numbers: Numbers) -> float:
        error = mean_log_error(fitted, predict(fitted, numbers.on(fabric)))
        doublings = sum(abs(math.log2(x)) for x in (numbers.inside, numbers.outside, numbers.pair))
        return error + PENALTY * doublings

    best = min((Numbers(outside=2.0**power) for power in range(-12, 5)), key=loss)
    step = 2.0
    while step > 1 + FINEST:
        moved = min([best, *_neighbours(best, step)], key=loss)
        best, step = (moved, step) if moved != best else (best, step**0.5)
    return best


def mean_log_error(steps: Sequence[Step], predicted_s: Sequence[float | None]) -> float:
    """Mean |log(predicted / measured)| of the rows that have a prediction."""
    errors = [
        abs(math.log(value / step.step_s))
        for step, value in zip(steps, predicted_s, strict=True)
        if value is not None
    ]
    return sum(errors) / len(errors)


def _neighbours(numbers: Numbers, step: float) -> Iterable[Numbers]:
    """Each number a step larger and smaller. No pair of machines is faster than more of them."""
    for factor in (step, 1 / step):
        yield replace(numbers, inside=numbers.inside * factor)
        yield replace(numbers, outside=numbers.outside * factor)
        if numbers.pair * factor <= 1:
            yield replace(numbers, pair=numbers.pair * factor)


@cache
def _scaled(model: str, compute_s: float) -> Workload:
    """The model's iteration with this compute time on one GPU."""
    plain = workload(model)
    scale = compute_s * 1e9 / single_gpu_ns(plain)
    return ModelCalibration(compute_scale=scale).apply(plain)
