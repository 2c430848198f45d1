"""Which runs there are. A run is a place in this plan: nothing else decides its result."""

from __future__ import annotations

from typing import NamedTuple

from studies.mast.study.workloads import PAPER, URGENT

REPLICATES = 20
CELLS = (1, 3, 5, 6, 9)
MAST, FEDERATION = 6, 5


class Regime(NamedTuple):
    """GPUs of a cluster, priorities, load, and the sum of quotas over the GPUs."""

    cluster_gpus: int
    mix: str
    load: float
    quotas: float

    @property
    def name(self) -> str:
        """The heading of its tables."""
        return f"{self.mix}, load {self.load:g}, clusters of {self.cluster_gpus}"


REGIMES = (
    Regime(256, URGENT, 1.5, 1.5),
    Regime(128, URGENT, 1.5, 1.5),
    Regime(128, URGENT, 1.3, 1.5),
    Regime(128, PAPER, 1.3, 1.5),
)


class Planned(NamedTuple):
    """A run."""

    regime: Regime
    cell: int
    seed: int

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name the run."""
        return (*map(str, self.regime), str(self.cell), str(self.seed))


def planned() -> list[Planned]:
    """All runs, replicate by replicate."""
    return [
        Planned(regime, cell, seed)
        for seed in range(REPLICATES)
        for regime in REGIMES
        for cell in CELLS
    ]
