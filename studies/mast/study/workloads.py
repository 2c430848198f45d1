"""The regime: uneven regions, and workloads with the paper's published quantiles.

| what | here | source |
|---|---|---|
| GPUs of a workload | 8 to 128, P50 16, P90 64, P99 128 | section 5.1 |
| duration | lognormal, median 20 min, sigma 2.3, at most 8 h | section 5.1; the fit is ours |
| priorities, `paper` | 3, 20, 16, 54, .2, .5, .02 and 6 % | section 4.2 |
| priorities, `urgent` | 10, 35, 20, 25, 0, 0, 0 and 10 % | ours: what loads high priorities |
| regions | 5 to 1 clusters of 256 GPUs; 8 to 1 of 128 | uneven as in Fig. 2; sizes are ours |
| tenants | 10, of equal quotas | ours |

A run is twelve hours of Poisson arrivals. The first four fill the regions and do not count.
"""

from __future__ import annotations

import numpy as np

from artist.cluster.tree import ClusterTree, nested
from artist.rng import stream
from artist.workload.job import Job
from artist.workload.tenants import Tenant

HOUR_S = 3600.0
WARM_H, COUNTED_H = 4, 8
LEVELS = ("machine", "rack", "cluster", "region", "network")
REGIONS = {256: (5, 4, 3, 2, 1), 128: (8, 6, 4, 2, 1)}
"""GPUs of a cluster -> clusters of each region."""
RACK = (8,) * 4

TENANTS = 10
SIZES = (8, 16, 32, 64, 128)
SHARES = (0.30, 0.35, 0.20, 0.12, 0.03)
PRIORITIES = (1, 2, 3, 4, 5, 6, 7, None)
PAPER, URGENT = "paper", "urgent"
MIXES = {
    PAPER: (0.03, 0.20, 0.16, 0.5428, 0.002, 0.005, 0.0002, 0.06),
    URGENT: (0.10, 0.35, 0.20, 0.25, 0.0, 0.0, 0.0, 0.10),
}
MEDIAN_S, SIGMA, LONGEST_S = 1200.0, 2.3, 8 * HOUR_S
SHORTEST_S = 60.0


def tree(cluster_gpus: int) -> ClusterTree:
    """The regions."""
    cluster = (RACK,) * (cluster_gpus // sum(RACK))
    return nested(LEVELS, [[cluster] * count for count in REGIONS[cluster_gpus]])


def gpus_of(cluster_gpus: int) -> int:
    """GPUs of all regions."""
    return cluster_gpus * sum(REGIONS[cluster_gpus])


def tenants(share: float, gpus: int) -> dict[str, Tenant]:
    """Tenants whose quotas are together `share` times the GPUs."""
    return {f"team-{x}": Tenant(quota=int(share * gpus / TENANTS)) for x in range(TENANTS)}


def jobs(mix: str, load: float, seed: int, all_gpus: int) -> list[Job]:
    """Workloads that want `load` times the GPUs, on average over seeds."""
    rng = stream(seed, f"study.mast.{mix}.{load}")
    hours = WARM_H + COUNTED_H
    count = int(rng.poisson(load * all_gpus * hours * HOUR_S / _mean_gpu_s()))
    arrivals = np.sort(rng.random(count)) * hours * HOUR_S
    gpus = rng.choice(SIZES, count, p=SHARES)
    run_s = _run_s(rng.standard_normal(count))
    priority = rng.choice(len(PRIORITIES), count, p=np.array(MIXES[mix]) / sum(MIXES[mix]))
    tenant = rng.integers(0, TENANTS, count)
    return [
        Job(
            id=f"workload-{x}",
            arrival_s=float(arrivals[x]),
            gpus=int(gpus[x]),
            model="unknown",
            iterations=max(1, round(float(run_s[x]) / 10)),
            compute_s=10.0,
            tenant=f"team-{tenant[x]}",
            priority=PRIORITIES[int(priority[x])],
        )
        for x in range(count)
    ]


def _run_s(normal: np.ndarray) -> np.ndarray:
    return np.clip(MEDIAN_S * np.exp(SIGMA * normal), SHORTEST_S, LONGEST_S)


def _mean_gpu_s() -> float:
    """GPU-seconds of a workload, mean; sizes and durations are independent."""
    mean_gpus = float(np.dot(SIZES, SHARES))
    grid = stream(0, "study.mast.mean").standard_normal(200_000)
    return mean_gpus * float(_run_s(grid).mean())
