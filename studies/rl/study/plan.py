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
    "las-threshold": ("las-threshold", {}),
    "srsf": ("srsf", {}),
    BASELINE: ("srsf-threshold", {}),
    WAITING: ("srsf", {"placement": "consolidate-or-wait"}),
    "rl-base": ("rl-base", {}),
    "rl-hybrid": ("rl-hybrid", {}),
    "lookahead(srsf)": ("lookahead(srsf)", {}),
    "lookahead(srsf-threshold)": ("lookahead(srsf-threshold)", {}),
    f"lookahead({WAITING})": ("lookahead(srsf)", {"host": {"placement": "consolidate-or-wait"}}),
}
"""By its name on the page: the policy and its options."""

BASES = {f"lookahead({base})": base for base in ("srsf", BASELINE, WAITING)}
"""By the name of a search: the policy whose starts it doubts."""

SMALL_ONLY = ("las", "las-threshold")
"""These run on 4 machines only: on 16 a run of LAS takes up to 20 s, since it joins many jobs."""


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
        """What is run."""
        return scenario(self.machines, self.load, *POLICIES[self.policy], self.seed)


def scenario(machines: int, load: str, policy: str, options: dict[str, Any], seed: int) -> Scenario:
    """The cluster of the training, with more machines and other jobs."""
    settings = parse_yaml(TRAINING.read_text(encoding="utf-8"), str(TRAINING))[1]
    batch = load == BATCH
    jobs = (BATCH_JOBS if batch else JOBS)[machines]
    settings |= {
        "machines_per_rack": machines,
        "trace": f"synth:{jobs}:{machines * GPUS}:{'0.9' if batch else load}",
        "arrivals": "batch" if batch else "trace",
        "policy": policy,
        "policy_options": options,
        "seed": seed,
    }
    return Scenario.model_validate(settings)


def cells() -> Iterator[tuple[int, str]]:
    """Machines and load of each cell."""
    for machines in MACHINES:
        for load in (*LOADS, BATCH):
            yield machines, load


def ran(machines: int, load: str, policy: str) -> bool:
    """Whether a policy runs in a cell."""
    return machines == MACHINES[0] or policy not in SMALL_ONLY


def planned() -> list[Planned]:
    """All runs."""
    return [
        Planned(machines, load, policy, seed)
        for machines, load in cells()
        for policy in POLICIES
        if ran(machines, load, policy)
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS)
    ]
