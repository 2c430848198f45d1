"""A policy's answer: checked before anything changes, then its GPUs change hands together.

An unlawful decision is an error that names the job and the value. It is never repaired.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.cluster.placement_flaw import flaw
from artist.contract import MOST_WORDS, Decision, Hold, Migrate, Preempt, Start, Turn, Wait, Wake
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.errors import PolicyError, shortened
from artist.units import LAST_TICK, Tick
from artist.workload.job import Job

# A tuple: `isinstance` looks through a union much more slowly.
_OF_A_JOB = (Start, Migrate, Preempt, Hold, Wait)


@dataclass(frozen=True, slots=True)
class Answer:
    """The decisions of one answer by kind, filled while they are checked.

    A job that migrates is in `moved` and in `placed`.
    """

    preempted: list[JobState] = field(default_factory=list)
    moved: list[JobState] = field(default_factory=list)
    placed: list[tuple[JobState, Placement]] = field(default_factory=list)
    holds: list[tuple[JobState, Hold]] = field(default_factory=list)
    wakes: list[Tick] = field(default_factory=list)
    told: list[tuple[JobState, str]] = field(default_factory=list)
    reasons: dict[int, str] = field(default_factory=dict)
    """By handle: why a job is preempted or migrated, where the policy says so."""


def checked(decisions: Sequence[Decision], holdings: Holdings, now: Tick) -> Answer:
    """Check everything about decisions except whether their GPUs are free.

    Raises:
        PolicyError: naming the job and the value that is wrong.
    """
    answer = Answer()
    decided: set[int] = set()
    holds: list[Hold] = []
    told: list[Wait] = []
    for decision in _each(decisions):
        if isinstance(decision, _OF_A_JOB) and type(decision.handle) is not int:
            # 0.0 and False equal 0 and would pass for that job.
            raise PolicyError(f"{shortened(decision)} names no job, expected a handle")
        match decision:
            case Wake(at):
                if type(at) is not int or at <= now:
                    raise PolicyError(f"wake-up at tick {at} is not after now ({now})")
                if at > LAST_TICK:
                    raise PolicyError(f"wake-up at tick {at}: the clock ends at {LAST_TICK}")
                answer.wakes.append(at)
                continue
            case Hold():
                holds.append(decision)
                continue
            case Wait():
                told.append(decision)
                continue
            case Start(handle, placement):
                state = holdings.waiting_job(handle)
                answer.placed.append((state, _lawful(state.job, placement, holdings)))
            case Migrate(handle, placement, reason):
                state = holdings.running_job(handle)
                answer.placed.append((state, _lawful(state.job, placement, holdings)))
                answer.moved.append(state)
                answer.reasons[handle] = reason
            case Preempt(handle, reason):
                answer.preempted.append(holdings.running_job(handle))
                answer.reasons[handle] = reason
            case _:
                raise PolicyError(f"{decision!r} is not a decision")
        if handle in decided:
            raise PolicyError(f"{holdings.name(handle)} is decided upon twice")
        decided.add(handle)
    if holds:
        _check_holds(holds, answer, holdings, now)
    if told:
        _check_told(told, answer, holdings)
    return answer


def _each(decisions: Any) -> Iterator[object]:
    """The decisions of an answer, which a policy may give as something else than a list."""
    try:
        return iter(decisions)
    except TypeError:
        raise PolicyError(f"{shortened(decisions)} is no list of decisions") from None


def _check_holds(holds: Sequence[Hold], answer: Answer, holdings: Holdings, now: Tick) -> None:
    """Check that each held job runs once the other decisions are applied."""
    placed = {state.handle: state for state, _ in answer.placed}
    preempted = {state.handle for state in answer.preempted}
    seen: set[int] = set()
    for hold in holds:
        if hold.handle in seen:
            raise PolicyError(f"{holdings.name(hold.handle)} is held twice")
        seen.add(hold.handle)
        state = placed.get(hold.handle) or holdings.running_job(hold.handle)
        if hold.handle in preempted:
            raise PolicyError(f"{holdings.name(hold.handle)} is preempted and held")
        if type(hold.until) is not int or hold.until <= now:
            raise PolicyError(f"job {state.job.id!r} held until {hold.until}, not after {now}")
        if hold.turn is not None and not _lawful_turn(hold.turn):
            raise PolicyError(
                f"job {state.job.id!r} held for {shortened(hold.turn)}, expected whole ticks, a "
                "period above 0 and a slack from 0"
            )
        answer.holds.append((state, hold))


def _lawful_turn(turn: object) -> bool:
    if not isinstance(turn, Turn):
        return False
    slack = 0 if turn.slack is None else turn.slack
    whole = all(type(x) is int for x in (turn.group, turn.start, turn.period, slack))
    return whole and turn.period > 0 and slack >= 0


def _check_told(told: Sequence[Wait], answer: Answer, holdings: Holdings) -> None:
    """Check that each job waits once the other decisions are applied, and what is told of it."""
    placed = {state.handle for state, _ in answer.placed}
    preempted = {state.handle: state for state in answer.preempted}
    for wait in told:
        state = preempted.get(wait.handle) or holdings.waiting_job(wait.handle)
        if wait.handle in placed:
            raise PolicyError(f"{holdings.name(wait.handle)} starts and is told to wait")
        if type(wait.reason) is not str or not 0 < len(wait.reason) <= MOST_WORDS:
            raise PolicyError(
                f"{holdings.name(wait.handle)} waits because of {shortened(wait.reason)}, expected "
                f"1 to {MOST_WORDS} characters"
            )
        answer.told.append((state, wait.reason))


def _lawful(job: Job, placement: Placement, holdings: Holdings) -> Placement:
    if wrong := flaw(placement):
        raise PolicyError(f"job {job.id!r}: {placement} {wrong}")
    gpus = placement.gpus
    if not job.gpus_min <= gpus <= job.gpus_max:
        raise PolicyError(
            f"job {job.id!r} placed on {gpus} GPUs, but it runs on {job.gpus_min} to {job.gpus_max}"
        )
    if holdings.on_notice:
        for leaf in placement.leaves:
            if leaf in holdings.on_notice:
                raise PolicyError(
                    f"job {job.id!r} placed on {holdings.tree.levels[0].name} {leaf}, which leaves "
                    f"service at tick {holdings.on_notice[leaf]}; look at view.on_notice"
                )
    return placement


def exchange(free: FreeGpus, answer: Answer) -> None:
    """Release the GPUs that the answer takes from jobs, then claim those that it gives to jobs.

    Raises:
        PolicyError: a GPU to be claimed is not free; no GPU has changed hands then.
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
