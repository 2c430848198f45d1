"""Observation `graph`: jobs and the links that they cross, as a graph of any size.

Nodes are, in this order: the candidates (node k is candidate k), the cluster, the running jobs, and
the uplinks that one of these jobs crosses or would cross. An edge joins a job and an uplink. Its
number is the share of the job's GPUs on the inner side; jobs that would share a link are two edges
apart. A node has a flag for its kind and then the numbers of that kind:

| kind | numbers |
| --- | --- |
| candidate, cluster | those of observation `sensitivity` |
| running job | `OF_A_RUNNING_JOB` |
| uplink | `OF_AN_UPLINK` |

Lengths differ from one observation to the next, so `artist train` cannot use it. It is for training
loops of your own, with networks that pass messages along edges.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.cluster.placement import Placement, tier, unit_counts
from artist.cluster.tree import ClusterTree
from artist.contract import NO_SHARED_LINKS, JobView, Uplink
from artist.policies.learned.observation_sensitivity import (
    OF_A_CANDIDATE,
    OF_THE_CLUSTER,
    YEAR,
    Sensitivity,
    loss,
)
from artist.policies.learned.task import AgentTask, RoundOutcome
from artist.policies.learned.task_options import TaskOptions

KINDS = ("candidate", "cluster", "running job", "uplink")
OF_A_RUNNING_JOB = ("GPUs / GPUs of the cluster", "ideal time left, log", "communication", "loss")
OF_AN_UPLINK = ("level / levels", "busy", "free GPUs inside / GPUs inside")
WIDTH = len(KINDS) + len(OF_A_CANDIDATE)
"""How many numbers a node has; those that its kind does not use are 0."""


class GraphValues(NamedTuple):
    """One observation: nodes x `WIDTH`, edges x 1, and edges x 2 (the job's node, the uplink's)."""

    nodes: npt.NDArray[np.float32]
    edges: npt.NDArray[np.float32]
    edge_links: npt.NDArray[np.int32]


class Graph:
    """The observation. Its arrays are new each time, since their lengths differ."""

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        self._tree = tree
        self._sensitivity = Sensitivity(options, tree)
        self.values: npt.NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        """Empty: a graph has no fixed length, so no network of `artist train` fits it."""

    def update(self, task: AgentTask) -> GraphValues:
        """Observe."""
        nodes: list[tuple[float, ...]] = []
        crossings: list[tuple[int, Uplink, float]] = []
        self._sensitivity.update(task)
        of_candidates, of_cluster = self._sensitivity.parts
        for index, (_, job) in enumerate(task.candidates):
            nodes.append(_node(0, of_candidates[index].tolist()))
            placement = task.contest.would_get(job)
            if placement is not None:
                crossings += self._crossed(index, placement)
        nodes.append(_node(1, of_cluster.tolist()))
        outcome = task.outcome()
        for handle, (_, placement) in outcome.placed.items():
            crossings += self._crossed(len(nodes), placement)
            job = task.view.running.get(handle) or task.view.waiting[handle]
            nodes.append(_node(2, self._of_running(task, job)))
        return self._joined(task, outcome, nodes, crossings)

    def _joined(
        self,
        task: AgentTask,
        outcome: RoundOutcome,
        nodes: list[tuple[float, ...]],
        crossings: list[tuple[int, Uplink, float]],
    ) -> GraphValues:
        """The graph of these nodes, with the uplinks that they cross and the edges to them."""
        numbers: dict[Uplink, int] = {}
        for _, uplink, _ in crossings:
            numbers.setdefault(uplink, len(nodes) + len(numbers))
        busy = outcome.sharing.busy() if task.view.links is not NO_SHARED_LINKS else {}
        for level, unit in numbers:
            inside = self._tree.levels[level].gpus[unit]
            free = outcome.free.of(level, unit) / inside
            wanted = busy.get((level, unit), 0.0)
            nodes.append(_node(3, [level / self._tree.root, loss(wanted), free]))
        links = [(job, numbers[uplink]) for job, uplink, _ in crossings]
        return GraphValues(
            np.array(nodes, dtype=np.float32),
            np.array([share for _, _, share in crossings], dtype=np.float32).reshape(-1, 1),
            np.array(links, dtype=np.int32).reshape(-1, 2),
        )

    def _crossed(self, node: int, placement: Placement) -> list[tuple[int, Uplink, float]]:
        """The uplinks that a placement crosses: those of all its units below its tier."""
        tree, gpus = self._tree, placement.gpus
        crossed: list[tuple[int, Uplink, float]] = []
        for level in range(tree.machine, tier(tree, placement)):
            inside = unit_counts(tree, placement, level)
            crossed += [(node, (level, unit), count / gpus) for unit, count in inside.items()]
        return crossed

    def _of_running(self, task: AgentTask, view: JobView) -> list[float]:
        """`OF_A_RUNNING_JOB` of a job."""
        job, rate = view.job, view.rate
        left_s = (job.iterations - view.iterations_done(task.view.now)) * job.compute_s
        # A job that was picked in this round has no rate yet.
        alone_s = rate.alone_iteration_s if rate else job.compute_s
        more = rate.iteration_s / alone_s - 1.0 if rate else 0.0
        left = min(1.0, math.log1p(left_s) / YEAR)
        return [job.gpus / self._tree.gpus, left, 1.0 - job.compute_s / alone_s, loss(more)]


def _node(kind: int, numbers: list[float]) -> tuple[float, ...]:
    flags = [0.0] * len(KINDS)
    flags[kind] = 1.0
    return (*flags, *numbers, *[0.0] * (len(OF_A_CANDIDATE) - len(numbers)))


assert len(OF_THE_CLUSTER) <= len(OF_A_CANDIDATE)  # a node has room for either
