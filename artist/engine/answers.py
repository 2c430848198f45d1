"""A policy's answer, checked before anything changes.

An unlawful decision is an error that says which job and value, never repaired. The
GPUs of one answer change hands together, releases before claims, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import Decision, Migrate, Preempt, Start, Wake
from artist.engine.job_state import JobState
from artist.errors import PolicyError
from artist.units import Tick
from artist.workload.job import Job


@dataclass(frozen=True, slots=True)
class Answer:
    """The lawful decisions of one answer. A job that migrates is in `moved` and in `placed`."""

    preempted: list[JobState] = field(default_factory=list)
    moved: list[JobState] = field(default_factory=list)
    placed: list[tuple[JobState, Placement]] = field(default_factory=list)
    wakes: list[Tick] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs that a decision may be about."""

    all: Sequence[Job]
    waiting: Mapping[int, JobState]
    running: Mapping[int, JobState]

    def that_waits(self, order: int) -> JobState:
        """A waiting job.

        Raises:
            PolicyError: it does not wait.
        """
        return self._among(self.waiting, order, "waiting")

    def that_runs(self, order: int) -> JobState:
        """A running job.

        Raises:
            PolicyError: it does not run.
        """
        return self._among(self.running, order, "running")

    def name(self, order: int) -> str:
        """How a message calls a job, which may not exist."""
        known = order in range(len(self.all))
        return f"job {self.all[order].id!r}" if known else f"unknown job {order!r}"

    def _among(self, jobs: Mapping[int, JobState], order: int, what: str) -> JobState:
        state = jobs.get(order)
        if state is None:
            raise PolicyError(f"{self.name(order)} is not {what}")
        return state


def checked(decisions: Sequence[Decision], jobs: Jobs, now: Tick) -> Answer:
    """Decisions that are lawful but for what GPUs are free.

    Raises:
        PolicyError: naming the job and the value that is wrong.
    """
    answer = Answer()
    decided: set[int] = set()
    for decision in decisions:
        if isinstance(decision, Wake):
            if decision.at <= now:
                raise PolicyError(f"wake-up at tick {decision.at} is not after now ({now})")
            answer.wakes.append(decision.at)
            continue
        if not isinstance(decision, (Start, Preempt, Migrate)):
            raise PolicyError(f"{decision!r} is not a decision")
        if decision.job in decided:
            raise PolicyError(f"{jobs.name(decision.job)} is decided upon twice")
        decided.add(decision.job)
        if isinstance(decision, Start):
            state = jobs.that_waits(decision.job)
            answer.placed.append((state, _lawful(state.job, decision.placement)))
        elif isinstance(decision, Migrate):
            state = jobs.that_runs(decision.job)
            answer.placed.append((state, _lawful(state.job, decision.placement)))
            answer.moved.append(state)
        else:
            answer.preempted.append(jobs.that_runs(decision.job))
    return answer


def _lawful(job: Job, placement: Placement) -> Placement:
    leaves, counts = placement.leaves, placement.counts
    if {type(number) for number in (*leaves, *counts)} != {int}:
        raise PolicyError(f"job {job.id!r}: {placement} holds other numbers than Python's integers")
    if len(leaves) != len(counts) or (len(leaves) > 1 and list(leaves) != sorted(set(leaves))):
        raise PolicyError(f"job {job.id!r}: {placement} lists leaves twice or out of order")
    gpus = placement.gpus
    if not job.gpus_min <= gpus <= job.gpus_max:
        raise PolicyError(
            f"job {job.id!r} placed on {gpus} GPUs, but it runs on {job.gpus_min} to {job.gpus_max}"
        )
    return placement


def exchange(free: FreeGpus, answer: Answer) -> None:
    """Release what the answer takes from jobs, then claim what it gives to jobs.

    Raises:
        PolicyError: GPUs are not free; no GPU has changed hands.
    """
    released = [state.placement for state in (*answer.preempted, *answer.moved) if state.placement]
    for placement in released:
        free.release(placement)
    for index, (state, placement) in enumerate(answer.placed):
        try:
            free.claim(placement)
        except PolicyError as cause:
            for _, claimed in answer.placed[:index]:
                free.release(claimed)
            for held in released:
                free.claim(held)
            raise PolicyError(f"job {state.job.id!r}: {cause}") from None
