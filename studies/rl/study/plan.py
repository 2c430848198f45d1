"""Which runs: clusters, loads, policies and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from artist.config import Scenario
from artist.io.safe_yaml import parse_yaml

TRAINING = Path(__file__).resolve().parent.parent / "training" / "machines.yaml"

MACHINES = (4, 16)
"""Training had 4."""
LOADS = ("0.7", "0.8", "0.9")
BATCH = "batch"
GPUS = 8
JOBS = {4: 128, 16: 256}
"""A queue needs time to build up."""
BATCH_JOBS = {4: 64, 16: 128}

FIRST_SEED = 2000
"""Of the judgement. Trainings draw their episodes from seeds 0 and 1, the choice from 5000 on."""
SEEDS = 20

BASELINE = "srsf-threshold"
WAITING = "srsf, one machine or wait"
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo-backfill": ("fifo-backfill", {}),
    "las": ("las", {}),
    "srsf": ("srsf", {}),
    BASELINE: ("srsf-threshold", {}),
    WAITING: ("srsf", {"placement": "consolidate-or-wait"}),
    "rl-base": ("rl-base", {}),
    "rl-hybrid": ("rl-hybrid", {}),
    "lookahead(srsf)": ("lookahead(srsf)", {}),
}
"""By its name on the page: the policy and its options."""

SMALL_ONLY = ("fifo-backfill", "las")
"""These run on 4 machines only. LAS moves many jobs: under contention a run may take a minute."""
SEARCHES = ("lookahead(srsf)",)
SEARCHED = ((4, "0.8"), (4, "0.9"))
"""Where searches run. A trial costs as much as its cluster has jobs."""


class Planned(NamedTuple):
    """One run."""

    machines: int
    load: str
    policy: str
    seed: int

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Its place in the plan, as text."""
        return str(self.machines), self.load, self.policy, str(self.seed)

    def scenario(self) -> Scenario:
        """The cluster of the training, with more machines and other jobs."""
        settings = parse_yaml(TRAINING.read_text(encoding="utf-8"), str(TRAINING))[1]
        policy, options = POLICIES[self.policy]
        batch = self.load == BATCH
        jobs = (BATCH_JOBS if batch else JOBS)[self.machines]
        settings |= {
            "machines_per_rack": self.machines,
            "trace": f"synth:{jobs}:{self.machines * GPUS}:{'0.9' if batch else self.load}",
            "arrivals": "batch" if batch else "trace",
            "policy": policy,
            "policy_options": options,
            "seed": self.seed,
        }
        return Scenario.model_validate(settings)


def cells() -> Iterator[tuple[int, str]]:
    """Machines and load of each cell."""
    for machines in MACHINES:
        for load in (*LOADS, BATCH):
            yield machines, load


def policies(machines: int, load: str) -> list[str]:
    """Who runs in a cell."""
    return [
        name
        for name in POLICIES
        if (machines == MACHINES[0] or name not in SMALL_ONLY)
        and ((machines, load) in SEARCHED or name not in SEARCHES)
    ]


def planned() -> list[Planned]:
    """All runs."""
    return [
        Planned(machines, load, policy, seed)
        for machines, load in cells()
        for policy in policies(machines, load)
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)
    ]
