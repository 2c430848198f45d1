"""Communication of steps that are longer or shorter than their model's: setting `communication`.

    proportional   iteration = compute_s x (1 + comm ratio of the model)   (Dally, section IV-C)
    absolute       iteration = compute_s x (1 + comm ratio of a model that computes compute_s)

They differ where `compute_s` is not the model's own compute time. `proportional` takes such a job
for a smaller or larger model, whose communication is shorter or longer by the same factor.
`absolute` takes it for the same model on other GPUs or with another batch. The job then sends the
bytes of the model, and hides as much of them as `compute_s` allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from artist.estimates.latency_service import alone_step_s
from artist.workload.job import Job
from artist.workload.layers import Workload


@dataclass(frozen=True, slots=True)
class ModelSteps:
    """The compute times of models in a run whose jobs send the bytes of their models."""

    workload_of: Callable[[str], Workload]
    calibrated: Callable[[str], bool]
    """Whether a calibration scales a model."""
    _known_s: dict[str, float] = field(default_factory=dict)

    def ratio(self, job: Job) -> float:
        """The `compute_s` of a job over the compute time of its model.

        The ratio is 1 for a model that a calibration scales, since its comm ratio was fitted, and
        for a model that computes nothing.
        """
        if self.calibrated(job.model):
            return 1.0
        known_s = self._known_s.get(job.model)
        if known_s is None:
            known_s = alone_step_s(self.workload_of(job.model))
            self._known_s[job.model] = known_s
        # Rounded: backends are asked about each ratio, and traces hold many compute times.
        return float(f"{job.compute_s / known_s:.4g}") if known_s else 1.0
