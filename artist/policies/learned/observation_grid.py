"""Observation `grid`: jobs on GPU slots, and the shapes that candidates could take.

A matrix of machines x (2 x GPUs of the largest machine), as in figure 2 of Ryu and Eo. Left half:
row n has a number for every GPU slot of machine n, the profile of the job on it. Right half: slot
(i, j) has the profile that a candidate would have on 2^i machines with j + 1 GPUs of each.

The profile of a job is (1 + s) / 2, where s is the share of exposed communication in its iteration
on these GPUs without other jobs. 0 is an empty slot, -1 a slot that the machine lacks. The paper
leaves the profile open. Its code numbers models and demands, which means nothing for models that
training did not see.

A job takes the first empty slots of a machine and keeps them while it runs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.contract import JobView
from artist.policies.learned.place_task import placement_on
from artist.policies.learned.task import AgentTask
from artist.policies.learned.task_options import TaskOptions
from artist.workload.job import Job

Slots = tuple[list[int], list[int]]
"""Rows and columns."""


class Grid:
    """The observation, in an array that every update overwrites."""

    def __init__(self, options: TaskOptions, tree: ClusterTree) -> None:
        self._tree = tree
        gpus = np.array(tree.levels[tree.machine].gpus)
        machines, largest = len(gpus), int(gpus.max())
        self.values: npt.NDArray[np.float32] = np.zeros((machines, 2 * largest), dtype=np.float32)
        self._largest = largest
        self._left[np.arange(largest) >= gpus[:, None]] = -1.0
        # The slots of running jobs, with the placement that was drawn.
        self._drawn: dict[int, tuple[Placement, Slots]] = {}
        self._empty = FreeGpus(tree)
        self._profiles: dict[tuple[str, int, int], float] = {}

    @property
    def _left(self) -> npt.NDArray[np.float32]:
        return self.values[:, : self._largest]

    @property
    def _right(self) -> npt.NDArray[np.float32]:
        return self.values[:, self._largest :]

    def update(self, task: AgentTask) -> npt.NDArray[np.float32]:
        """Observe; the array is valid until the next call."""
        self._draw_running(task)
        self._right[:] = 0.0
        for _, job in reversed(task.candidates):  # the first candidate is on top
            self._draw_candidate(task, job)
        return self.values

    def _draw_running(self, task: AgentTask) -> None:
        placed = task.outcome().placed
        for handle in [*self._drawn]:
            if handle not in placed or placed[handle][1] != self._drawn[handle][0]:
                self._left[self._drawn.pop(handle)[1]] = 0.0
        for handle, (job, placement) in placed.items():
            if handle not in self._drawn:
                self._drawn[handle] = (placement, self._fill(task, job, placement))

    def _fill(self, task: AgentTask, job: Job, placement: Placement) -> Slots:
        """Draw a running job and return the slots that it takes."""
        rows: list[int] = []
        columns: list[int] = []
        for machine, count in machine_counts(self._tree, placement).items():
            rows += [machine] * count
            columns += np.flatnonzero(self._left[machine] == 0.0)[:count].tolist()
        self._left[rows, columns] = _profile(task, job, placement)
        return rows, columns

    def _draw_candidate(self, task: AgentTask, view: JobView) -> None:
        """Draw the profile that a candidate would have on 1, 2, 4 ... machines."""
        machines, largest = self._right.shape
        gpus, length, row = view.job.gpus, 1, 0
        while length <= min(gpus, machines):
            each = -(-gpus // length)
            if each <= largest and (length > 1 or task.options.one_machine):
                key = (view.job.model, gpus, length)
                if key not in self._profiles:
                    placement = self._on_empty(length, gpus)
                    if placement is None:
                        break
                    self._profiles[key] = _profile(task, view.job, placement)
                self._right[row, each - 1] = self._profiles[key]
            length, row = 2 * length, row + 1

    def _on_empty(self, length: int, gpus: int) -> Placement | None:
        """The job on the first machines of the empty cluster; None if they are too small."""
        sizes = self._tree.levels[self._tree.machine].gpus
        machines = tuple(range(length))
        if min(sizes[machine] for machine in machines) * length < gpus:
            return None
        return placement_on(self._empty, machines, gpus)


def _profile(task: AgentTask, job: Job, placement: Placement) -> float:
    rate = task.view.alone(job, placement)
    return 1.0 - 0.5 * job.compute_s / rate.iteration_s
