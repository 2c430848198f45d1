"""What a model gains from more GPUs: by the latency model, and by goodput parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from artist.workload.goodput import Goodput, best


class Useful(NamedTuple):
    """A step with the batch of the largest goodput (`artist.workload.goodput`)."""

    batch: int
    """In all, samples."""
    step_s: float
    samples_per_s: float
    efficiency: float
    """Progress per sample over that of the submitted batch."""
    goodput_per_s: float
    """Samples per second that are worth one of the submitted batch."""


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One iteration on some GPUs; their batch grows with them."""

    gpus: int
    placement: str
    compute_s: float
    comm_s: float
    """Exposed communication."""
    useful: Useful | None

    @property
    def iteration_s(self) -> float:
        """Compute time and exposed communication."""
        return self.compute_s + self.comm_s

    @property
    def speedup(self) -> float:
        """Samples per second over those of one GPU that does not communicate."""
        return self.gpus * self.compute_s / self.iteration_s


def useful(goodput: Goodput, gpus: int, progress: float, *, one_machine: bool) -> Useful | None:
    """The best step on so many GPUs once a share `progress` of the iterations is done.

    None if the largest batch feeds fewer GPUs.
    """
    if gpus > goodput.gpus_max:
        return None
    parts = 1_000_000
    noise, _ = goodput.noise_at(round(progress * parts), parts)
    per_s, batch = best(goodput, gpus, noise, one_machine=one_machine)
    if not per_s:
        return None
    total, step_s = batch.total(gpus), goodput.step_s(gpus, batch, one_machine=one_machine)
    return Useful(total, step_s, total / step_s, goodput.efficiency(total, noise), per_s)
