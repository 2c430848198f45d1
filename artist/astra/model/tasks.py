"""What an NPU runs, prepared: the tasks of a graph with their durations and requests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from artist.astra.messages.chunks_and_stages import Request
from artist.astra.model.training_loop import Program
from artist.workload.graph import NodeAction, followers_of

Message = tuple[int, int, int, int]
"""(tag, sender, receiver, bytes) of a send or receive."""


@dataclass(frozen=True, slots=True)
class Task:
    """One node. `duration_ns` is the time of a computation or of the message of a send."""

    kind: NodeAction
    after: tuple[int, ...]
    duration_ns: int = 0
    request: Request | None = None
    message: Message | None = None


@dataclass(frozen=True)
class TaskList:
    """The tasks of an NPU in ascending order; NPUs that do the same share one."""

    tasks: tuple[Task, ...]

    @cached_property
    def followers(self) -> list[list[int]]:
        """For each task, the tasks that wait for it."""
        return followers_of([task.after for task in self.tasks])


def tasks_of(work: Program, passes: int) -> TaskList:
    """The tasks of a text workload: computations in a chain, and the collectives that they free."""
    tasks: list[Task] = []
    computed: tuple[int, ...] = ()
    collected: tuple[int, ...] = ()
    for _ in range(passes):
        requests = iter(work.collectives)
        for compute in work.computes:
            joined = collected if compute.joins else ()
            tasks.append(Task(NodeAction.COMPUTE, computed + joined, compute.duration_ns))
            computed = (len(tasks) - 1,)
            if compute.frees:
                tasks.append(Task(NodeAction.COLLECTIVE, computed, request=next(requests)))
                collected = (len(tasks) - 1,)
        tasks += [Task(NodeAction.COLLECTIVE, (), request=request) for request in requests]
    return TaskList(tuple(tasks))
