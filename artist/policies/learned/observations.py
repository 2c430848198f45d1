"""The tables of observations and tasks, and how to open one."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from artist.cluster.tree import ClusterTree
from artist.policies.learned.task import AgentTask
from artist.policies.learned.task_options import TaskOptions
from artist.registry import Entry, Registry


class Observation(Protocol):
    """What an agent sees. It is updated in place."""

    @property
    def values(self) -> npt.NDArray[np.float32]:
        """The array that `update` fills in."""

    def update(self, task: AgentTask) -> Any:
        """Observe a task in a round; the arrays are valid until the next call."""
        ...


OBSERVATIONS = Registry(
    "observation",
    "sensitivity, grid or graph",
    [
        Entry(
            "sensitivity",
            "artist.policies.learned.observation_sensitivity:Sensitivity",
            "what each candidate would lose beside others, and the cluster in a few numbers",
        ),
        Entry(
            "grid",
            "artist.policies.learned.observation_grid:Grid",
            "jobs on GPU slots, and shapes that candidates could take",
            "Ryu and Eo, contention-aware scheduling with reinforcement learning, figure 2",
        ),
        Entry(
            "graph",
            "artist.policies.learned.observation_graph:Graph",
            "jobs and links as a graph of any size, for training loops of your own",
        ),
    ],
)

TASKS = Registry(
    "task",
    "schedule or place",
    [
        Entry(
            "schedule",
            "artist.policies.learned.schedule_task:ScheduleTask",
            "which job next, or none",
        ),
        Entry(
            "place",
            "artist.policies.learned.place_task:PlaceTask",
            "which job on which list of machines, or none",
            "Ryu and Eo, section IV",
        ),
    ],
)


def open_task(options: TaskOptions, tree: ClusterTree) -> AgentTask:
    """The task of the options on a cluster.

    Raises:
        ConfigError: the task has no action for some job of the cluster's size.
    """
    task: AgentTask = TASKS[options.task].load()(options, tree)
    return task


def open_observation(options: TaskOptions, tree: ClusterTree) -> Observation:
    """The observation of the options on a cluster."""
    observation: Observation = OBSERVATIONS[options.observation].load()(options, tree)
    return observation
