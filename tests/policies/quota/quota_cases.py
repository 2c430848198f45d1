"""Random jobs of tenants, and a look at which tenant holds what at every answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from support import cluster

from artist.cluster.tree import ClusterTree
from artist.contract import Policy
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.testing import LevelRates
from artist.workload.job import Job
from artist.workload.tenants import Tenant

TENANTS = {"ads": Tenant(quota=8), "web": Tenant(quota=6, weight=2.0), "lab": Tenant(quota=0)}


def tree() -> ClusterTree:
    """16 GPUs in two racks."""
    return cluster([4, 4], [4, 4])


def jobs(seed: int, count: int = 40, *, priorities: bool = True) -> list[Job]:
    """Jobs of 1 to 8 GPUs, of all tenants and of none."""
    rng = np.random.default_rng(seed)
    names = [*TENANTS, None]
    made = []
    for index, arrival_s in enumerate(np.sort(rng.integers(0, 6000, count)).tolist()):
        priority = int(rng.integers(1, 9))
        made.append(
            Job(
                id=f"job-{index}",
                arrival_s=float(arrival_s),
                gpus=int(2 ** rng.integers(0, 4)),
                model="any",
                iterations=int(rng.integers(1, 1500)),
                compute_s=1.0,
                restart_s=float(rng.integers(0, 2) * 30),
                tenant=names[int(rng.integers(0, len(names)))],
                priority=priority if priorities and priority < 8 else None,
            )
        )
    return made


class Watch:
    """Finds waiting jobs for which a tenant above its quota holds enough GPUs.

    Not at the nanosecond between the loss of GPUs and the next question.
    """

    def __init__(self, tenants: Mapping[str, Tenant]) -> None:
        self.quota = {name: tenant.quota for name, tenant in tenants.items()}
        self.wronged: list[tuple[int, int]] = []
        self._suspects: list[tuple[int, int]] = []
        self.waits = 0

    def __call__(self, running: Simulator) -> None:
        """Look at the cluster after an answer."""
        view = running.view()
        self.wronged += [x for x in self._suspects if view.now > x[0] + 1]
        self._suspects.clear()
        held = Counter[str | None]()
        wanted = Counter[str | None]()
        for job in view.running.values():
            held[job.job.tenant] += job.gpus
        for job in view.waiting.values():
            wanted[job.job.tenant] += job.job.gpus
        excess = {x: max(0, held[x] - self.quota.get(x or "", 0)) for x in held}
        for job in view.waiting.values():
            tenant = job.job.tenant
            if tenant is None or held[tenant] + wanted[tenant] > self.quota[tenant]:
                continue  # not surely within quota
            self.waits += 1
            free = view.free.total
            if free < job.job.gpus <= free + sum(excess.values()):
                self._suspects.append((view.now, job.handle))


def run(policy: Policy, made: list[Job], watch: Callable[[Simulator], None]) -> Rows:
    """Simulate with every invariant checked."""
    simulator = Simulator(tree(), made, LevelRates(tree()), lease=policy.lease, check=True)
    return simulator.run(policy, watch)
