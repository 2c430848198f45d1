"""What policies are tried on: clusters, and traces drawn for them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from artist.cluster.tree import ClusterTree, nested
from artist.rng import stream
from artist.workload.job import Job
from artist.workload.models import model_names

_LEVELS = ("machine", "rack", "network")


@dataclass(frozen=True, slots=True)
class Situation:
    """A cluster and a trace to try a policy on."""

    name: str
    tree: ClusterTree
    jobs: tuple[Job, ...]


def situations(seed: int = 0) -> list[Situation]:
    """The situations that `check_policy` uses: contention, gaps, ties, odd clusters."""
    return [
        Situation("one machine, a batch", _tree([[4]]), _trace(seed, 8, 4, batch=True)),
        Situation("two racks, arrivals", _tree([[4, 4], [4, 4]]), _trace(seed, 24, 16)),
        Situation("two racks, a batch", _tree([[4, 4], [4, 4]]), _trace(seed, 24, 16, batch=True)),
        Situation("uneven machines", _tree([[8, 2, 1], [3]]), _trace(seed, 20, 14)),
        Situation("elastic jobs", _tree([[4, 4]]), _trace(seed, 12, 8, elastic=True)),
        Situation("restarts cost", _tree([[2, 2], [2]]), _trace(seed, 12, 6, restart_s=40.0)),
    ]


def renamed(situation: Situation) -> Situation:
    """Other names, in an order that has nothing to do with the old one."""
    count = len(situation.jobs)
    names = [f"{count - index}-renamed" for index in range(count)]
    jobs = tuple(replace(job, id=name) for job, name in zip(situation.jobs, names, strict=True))
    return replace(situation, jobs=jobs)


def _tree(cluster: list[list[int]]) -> ClusterTree:
    return nested(_LEVELS, cluster)


def _trace(
    seed: int,
    jobs: int,
    gpus: int,
    *,
    batch: bool = False,
    elastic: bool = False,
    restart_s: float = 0.0,
) -> tuple[Job, ...]:
    """Random jobs of a few hours, some of them equal, some arriving together."""
    rng = stream(seed, f"testing.{jobs}.{gpus}.{batch}.{elastic}.{restart_s}")
    models = model_names()
    arrivals = sorted(0.0 if batch else float(rng.integers(0, 20) * 600) for _ in range(jobs))
    jobs_drawn = []
    for index, arrival_s in enumerate(arrivals):
        demand = min(gpus, int(2 ** rng.integers(0, 5)))
        jobs_drawn.append(
            Job(
                id=f"job-{index}",
                arrival_s=arrival_s,
                gpus=demand,
                model=models[int(rng.integers(0, len(models)))],
                iterations=int(rng.integers(1, 400)),
                compute_s=float(rng.choice([1.0, 7.5, 60.0])),
                gpus_min=max(1, demand // 2) if elastic else demand,
                restart_s=restart_s,
            )
        )
    return tuple(jobs_drawn)
