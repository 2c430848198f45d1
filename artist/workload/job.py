"""A training job as its user submitted it: what every other room agrees to call a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Not given; `Job.__post_init__` puts the job's own `gpus` in its place.
_AS_GPUS: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """One job of a trace. Readers check it; the engine takes it as lawful.

    All times are seconds. A data-parallel job runs `iterations` synchronous
    steps on `gpus` GPUs; `compute_s` is the compute time of one step, without
    communication. An elastic job may run on any number of GPUs from `gpus_min`
    to `gpus_max`, both `gpus` where not given.
    """

    id: str
    arrival_s: float
    gpus: int
    model: str
    iterations: int
    compute_s: float
    user: str = ""
    gpus_min: int = _AS_GPUS
    gpus_max: int = _AS_GPUS
    # Checkpoint and restore when the job restarts after a preemption or a
    # migration. Dally, section IV-B, calls it negligible, hence 0.
    restart_s: float = 0.0
    # Columns named hint_*, by their full name; only policies read them.
    hints: Mapping[str, object] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.gpus_min is _AS_GPUS:
            object.__setattr__(self, "gpus_min", self.gpus)
        if self.gpus_max is _AS_GPUS:
            object.__setattr__(self, "gpus_max", self.gpus)

    @property
    def ideal_s(self) -> float:
        """Run time without waiting or communication, in seconds."""
        return self.iterations * self.compute_s
