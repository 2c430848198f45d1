"""Failure models and runs under them that several tests need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import AloneRates, EstimateByLevel, make_policy

from artist.cluster.tree import ClusterTree
from artist.contract import Checkpoint, Policy
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.failures.checkpoints import CheckpointOptions
from artist.failures.failing_units import FailingUnits
from artist.failures.failures_of_run import FailuresOfRun
from artist.failures.model_file import FailureFile, FailureModel
from artist.network.rates.interference import TIME_SLICING, interfered
from artist.units import ticks
from artist.workload.job import Job


def exponential(mtbf_s: float, repair_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """FailuresOfRun of one kind."""
    return {"distribution": "exponential", "mtbf_s": mtbf_s, "repair_s": repair_s, **more}


def units(tree: ClusterTree, model: Mapping[str, Any]) -> FailingUnits:
    """The units of a cluster under a model."""
    return FailingUnits(
        tree, FailureFile(Path("model.yaml"), FailureModel.model_validate(dict(model)))
    )


def run_with_failures(
    tree: ClusterTree,
    jobs: Sequence[Job],
    model: Mapping[str, Any],
    *,
    policy: Policy | None = None,
    interval_s: float | str | None = None,
    cost_s: float = 0.0,
    seed: int = 0,
    check: bool = True,
) -> tuple[Rows, FailuresOfRun]:
    """A run without communication, under fifo unless another policy is given."""
    options = None
    if interval_s is not None:
        options = CheckpointOptions.model_validate({"interval_s": interval_s, "cost_s": cost_s})
    failures = FailuresOfRun(units(tree, model), options)
    policy = policy or make_policy("fifo")
    jobs_per_gpu = getattr(policy, "jobs_per_gpu", 1)
    policy = failures.respecting_notices(policy)
    alone = AloneRates(tree, EstimateByLevel(tree))
    simulator = Simulator(
        tree,
        jobs,
        interfered(failures.rates(alone, alone.now), TIME_SLICING, tree, jobs_per_gpu),
        lease=policy.lease,
        events=failures.events(seed),
        checkpoints=failures.checkpoints,
        jobs_per_gpu=jobs_per_gpu,
        check=check,
    )
    return simulator.run(policy), failures


def every(interval_s: float | None, cost_s: float = 0.0) -> Checkpoint:
    """A checkpoint after this many seconds of work."""
    return Checkpoint(None if interval_s is None else ticks(interval_s), ticks(cost_s))
