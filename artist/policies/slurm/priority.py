"""Which job comes first: `priority/basic` and `priority/multifactor`.

    priority = sum of weight x factor - nice, at least 1, rounded down

Each factor is from 0 to 1: age, fair share (`fair_share.py`), size, partition, QOS, TRES. A job
gets its priority when it becomes eligible, and a new one at every PriorityCalcPeriod.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from functools import cmp_to_key

from artist.policies.slurm.fair_share import FairShare
from artist.policies.slurm.machines import UNKNOWN_CPUS, Machines, PartitionMachines, bits
from artist.policies.slurm.preemption import Preemption
from artist.policies.slurm.request import Request
from artist.policies.slurm.settings import SlurmSettings
from artist.slurm.facts import SlurmFacts

FACTORS = ("age", "fair_share", "job_size", "partition", "qos", "tres")
_BASIC = 2**32


class Priorities:
    """Priorities of jobs, and the usage that they depend on."""

    def __init__(self, settings: SlurmSettings, machines: Machines, facts: SlurmFacts) -> None:
        self._settings, self._machines = settings, machines
        self.fair_share = FairShare(facts.accounts, settings.half_life_s)
        partitions = machines.partitions.values()
        factors = [x.priority_job_factor for x in facts.partitions]
        self._most_partition = max(factors, default=0) or 1
        self._most_qos = max((x.priority for x in facts.qos), default=0) or 1
        self._cpus = sum(x for x in machines.cpus if x != UNKNOWN_CPUS)
        self._totals = {x.name: _totals(machines, x) for x in partitions}

    @property
    def change(self) -> bool:
        """Whether priorities change while jobs wait."""
        return self._settings.multifactor

    def set(self, request: Request, now_s: int) -> None:
        """Give a job its priority."""
        if not self.change:
            # priority/basic: each job gets one less than the job submitted before it.
            request.priority = _BASIC - request.number[0]
            return
        total = sum(self.factors(request, now_s).values()) - request.nice
        request.priority = int(min(max(1.0, total), 2**32 - 1))

    def factors(self, request: Request, now_s: int) -> dict[str, float]:
        """The weighted factors of a job (`FACTORS`), as sprio shows them."""
        weights, flags = self._settings.weights, self._settings.flags
        age_s = max(0, now_s - request.eligible_s)
        partition: float = request.partition.job_factor
        if not flags & {"NO_NORMAL_ALL", "NO_NORMAL_PART"}:
            partition /= self._most_partition
        qos: float = request.qos.priority if request.qos is not None else 0
        if not flags & {"NO_NORMAL_ALL", "NO_NORMAL_QOS"}:
            qos /= self._most_qos
        age = min(1.0, age_s / self._settings.max_age_s) if self._settings.max_age_s else 1.0
        return {
            "age": weights.age * age,
            "fair_share": weights.fair_share
            * self.fair_share.factors.get(request.association, 0.0),
            "job_size": weights.job_size * self._job_size(request),
            "partition": weights.partition * partition,
            "qos": weights.qos * qos,
            "tres": self._tres(request, weights.tres),
        }

    def billed(self, request: Request) -> float:
        """The TRES that a job is billed for each second."""
        billing, cpus = request.partition.billing, request.nodes * request.cpus
        if not billing:
            return cpus
        job = request.job
        held = {"cpu": cpus, "gres/gpu": job.gpus, "node": request.nodes, "mem": job.memory_mib}
        parts = [weight * held.get(name, 0) for name, weight in billing.items()]
        return max(parts) if "MAX_TRES" in self._settings.flags else sum(parts)

    def _job_size(self, request: Request) -> float:
        """The factor for size: by machines and CPUs, or by machines alone if CPUs are unknown."""
        machines, cpus = len(self._machines.gpus), request.nodes * request.cpus
        if "SMALL_RELATIVE_TO_TIME" in self._settings.flags and self._cpus:
            size = max(request.nodes * self._cpus / machines, cpus)
            size /= max(1, request.limit_s // 60) * self._cpus
        else:
            size = request.nodes / machines
            if self._cpus:
                size = (size + cpus / self._cpus) / 2
        size = 1 - size if self._settings.favor_small else size
        return min(max(0.0, size), 1.0)

    def _tres(self, request: Request, weights: Mapping[str, float]) -> float:
        """The weighted factor for TRES: each is a share of what the partition has."""
        totals = self._totals[request.partition.name]
        held = {
            "cpu": request.nodes * request.cpus,
            "gres/gpu": request.job.gpus,
            "node": request.nodes,
        }
        whole = bool(self._settings.flags & {"NO_NORMAL_ALL", "NO_NORMAL_TRES"})
        return sum(
            weight * held.get(name, 0) / (1 if whole else totals.get(name) or 1)
            for name, weight in weights.items()
        )


class Queue(dict[int, Request]):
    """The waiting jobs by handle, and `ranked` by PriorityTier, priority, and number.

    A job of several partitions is ranked once in each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ranked: list[Request] = []

    def add(self, request: Request) -> None:
        """Add a waiting job that has its priority."""
        self[request.handle] = request
        for one in request.everywhere:
            insort(self.ranked, one, key=_rank)

    def take(self, handle: int) -> Request:
        """Remove a job, which waits no longer."""
        request = self.pop(handle)
        for one in request.everywhere:
            del self.ranked[bisect_left(self.ranked, _rank(one), key=_rank)]
        return request

    def set_priorities(self, priorities: Priorities, now_s: int) -> None:
        """Give all jobs new priorities."""
        for request in self.ranked:
            priorities.set(request, now_s)
        self.ranked.sort(key=_rank)


def _rank(request: Request) -> tuple[int, float, tuple[int, int]]:
    return -request.partition.tier, -request.priority, request.number


def preemptors_first(ranked: list[Request], preemption: Preemption) -> list[Request]:
    """The order in which both schedulers test jobs: a possible preemptor precedes its victims."""
    if not preemption.on:
        return ranked
    place = {id(request): index for index, request in enumerate(ranked)}

    def compare(one: Request, other: Request) -> int:
        if preemption.before(one, other):
            return -1
        if preemption.before(other, one):
            return 1
        return place[id(one)] - place[id(other)]

    return sorted(ranked, key=cmp_to_key(compare))


def _totals(machines: Machines, partition: PartitionMachines) -> dict[str, int]:
    inside = list(bits(partition.machines))
    return {
        "cpu": sum(machines.cpus[x] for x in inside if machines.cpus[x] != UNKNOWN_CPUS),
        "gres/gpu": sum(machines.gpus[x] for x in inside),
        "node": len(inside),
    }
