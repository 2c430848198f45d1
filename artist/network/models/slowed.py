"""What models of contention answer about a job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Slowed:
    """An iteration of a job among others, and alone on the same links, in seconds."""

    iteration_s: float
    alone_s: float
    corrections_per_min: float = 0.0
    """How often it waits so that it keeps its turn."""

    @property
    def slowdown(self) -> float:
        """Time beside the others over time alone."""
        return self.iteration_s / self.alone_s
