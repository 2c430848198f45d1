"""Times Slurm: a week of 100,000 jobs with backfill, fair share and two partitions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from bench_mast import ComputeOnly

from artist.cluster.tree import ClusterTree, nested
from artist.engine.simulator import Simulator
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.policy import Slurm
from artist.rng import Draws, stream
from artist.slurm.facts import Account, Partition, SlurmFacts
from artist.workload.job import Job

JOBS = 100_000
WEEK_S = 7 * 86_400.0
MACHINES, RACKS, GPUS = 16, 16, 8
ACCOUNTS, USERS = 10, 20
LOAD = 0.9

SETTINGS = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightFairShare": "10000",
    "PriorityWeightJobSize": "1000",
    "PriorityWeightPartition": "1000",
    "SchedulerParameters": "bf_window=10080,bf_resolution=300",
}
"""The rest as slurm.conf(5) has it: backfill tests 500 jobs every 30 s."""


def world() -> ClusterTree:
    """2,048 GPUs: 256 machines of eight, in racks of sixteen."""
    return nested(("machine", "rack", "network"), [[GPUS] * MACHINES] * RACKS)


def facts() -> SlurmFacts:
    """Two partitions of all machines, ten accounts of twenty users each."""
    return SlurmFacts(
        partitions=(
            Partition(name="batch", nodes="ALL", default=True, max_time_s=4 * 86_400.0),
            Partition(name="short", nodes="ALL", max_time_s=3600.0, priority_job_factor=10),
        ),
        accounts=tuple(
            Account(
                name=f"team{account}",
                shares=account + 1,
                users={f"u{account}.{user}": 1 for user in range(USERS)},
            )
            for account in range(ACCOUNTS)
        ),
        settings=SETTINGS,
    )


def jobs_of_a_week(count: int, seed: int, load: float) -> list[Job]:
    """Jobs of one GPU to 16 machines that arrive over a week and want `load` times the GPUs.

    Their limits are the next of those that people choose above 1.2 to 4 times the run time.
    """
    rng = stream(seed, "bench.slurm")
    sizes = (1, 2, 4, 8, 16, 32, 64, 128)
    gpus = rng.choice(sizes, count, p=(0.55, 0.12, 0.12, 0.13, 0.04, 0.02, 0.015, 0.005))
    run_s = np.clip(1200 * np.exp(1.6 * rng.standard_normal(count)), 10, 3 * 86_400)
    run_s *= load * MACHINES * RACKS * GPUS * WEEK_S / float(gpus @ run_s)
    run_s = np.clip(run_s, 10, 3 * 86_400).round()
    chosen_s = np.array((600, 1800, 3600, 4 * 3600, 12 * 3600, 86_400, 2 * 86_400, 4 * 86_400))
    want_s = run_s * rng.uniform(1.2, 4, count)
    limit_s = chosen_s[np.minimum(np.searchsorted(chosen_s, want_s), len(chosen_s) - 1)]
    arrival_s = np.sort(rng.random(count) * WEEK_S).round(3)
    account = rng.integers(ACCOUNTS, size=count)
    user = (USERS * rng.random(count) ** 2).astype(int)
    return [
        Job(
            id=str(x),
            arrival_s=float(arrival_s[x]),
            gpus=int(gpus[x]),
            model="unknown",
            iterations=int(run_s[x]),
            compute_s=1.0,
            tenant=f"team{account[x]}",
            user=f"u{account[x]}.{user[x]}",
            hints={
                "hint_time_limit_s": int(limit_s[x]),
                "hint_nodes": -(-int(gpus[x]) // GPUS),
                "hint_partition": "short" if limit_s[x] <= 3600 else "batch",
            },
        )
        for x in range(count)
    ]


def bench_week(measure: Callable[..., None]) -> None:
    """The simulation loop over a week: 100,000 jobs on 2,048 GPUs, load 0.9."""
    tree, jobs = world(), jobs_of_a_week(JOBS, 1, LOAD)

    def week() -> None:
        policy = Slurm(SlurmOptions(facts=facts()), Draws(0))
        Simulator(tree, jobs, ComputeOnly()).run(policy)

    measure(week, rounds=1, items=JOBS)
