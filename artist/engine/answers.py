"""Checks of a policy's answer, before anything changes.

An invalid decision is an error that names the job and the value. It is never repaired.
`artist.contract.readable_answer` comes first and checks what needs neither jobs nor cluster.
`Holdings.exchange` comes last: it checks that GPUs are free, and moves them.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.kinds import kinds_of
from artist.cluster.placement import Placement
from artist.contract import Decision, Fetch, Hold, Migrate, Preempt, SetBatch, Start, Wait, Wake
from artist.engine.holdings import Holdings
from artist.engine.job_state import JobState
from artist.errors import PolicyError
from artist.units import LAST_TICK, Tick, counted
from artist.workload.goodput import Batch
from artist.workload.job import Job


class CheckedAnswer:
    """The decisions of one answer by kind, filled while they are checked.

    A job that migrates is in `moved` and in `placed`. By handle, `reasons` says why a job is
    preempted or migrated, and `beside` which job's GPUs it will share.
    """

    __slots__ = (
        "batches", "beside", "cancelled", "holds", "moved", "placed", "preempted", "reasons",
        "wait_reasons", "wakes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.preempted: list[JobState] = []
        self.cancelled: set[int] = set()
        self.moved: list[JobState] = []
        self.placed: list[tuple[JobState, Placement]] = []
        self.holds: list[tuple[JobState, Hold]] = []
        self.batches: list[tuple[JobState, Batch]] = []
        self.wakes: list[Tick] = []
        self.wait_reasons: list[tuple[JobState, Wait]] = []
        self.reasons: dict[int, str] = {}
        self.beside: dict[int, JobState] = {}


def checked(
    decisions: Sequence[Decision], holdings: Holdings, now: Tick, jobs_per_gpu: int = 1
) -> CheckedAnswer:
    """Check everything about decisions except whether their GPUs are free.

    Up to `jobs_per_gpu` jobs may share a GPU.

    Raises:
        PolicyError: naming the job and the value that is wrong.
    """
    answer = CheckedAnswer()
    decided: set[int] = set()
    holds: list[Hold] = []
    batches: list[SetBatch] = []
    waits: list[Wait] = []
    beside: list[tuple[JobState, int]] = []
    for decision in decisions:
        match decision:
            case Start(handle, placement):
                state = holdings.waiting_job(handle)
                _check_placement(state.job, placement, holdings)
                answer.placed.append((state, placement))
                if decision.beside is not None:
                    beside.append((state, decision.beside))
            case Preempt(handle, reason, for_good):
                answer.preempted.append(holdings.running_job(handle))
                answer.reasons[handle] = reason
                if for_good:
                    answer.cancelled.add(handle)
            case Migrate(handle, placement, reason):
                state = holdings.running_job(handle)
                _check_placement(state.job, placement, holdings)
                answer.placed.append((state, placement))
                answer.moved.append(state)
                if decision.beside is not None:
                    beside.append((state, decision.beside))
                answer.reasons[handle] = reason
            case Wake(at):
                if at <= now:
                    raise PolicyError(f"wake-up at tick {at} is not after now ({now})")
                if at > LAST_TICK:
                    raise PolicyError(f"wake-up at tick {at}: the clock ends at {LAST_TICK}")
                answer.wakes.append(at)
                continue
            case Hold():
                holds.append(decision)
                continue
            case SetBatch():
                batches.append(decision)
                continue
            case Wait():
                waits.append(decision)
                continue
            case Fetch(handle):
                raise PolicyError(
                    f"tables of {holdings.name(handle)} are fetched, but this run copies none; "
                    "check view.data.copied"
                )
        if handle in decided:
            raise PolicyError(f"{holdings.name(handle)} appears in two decisions")
        decided.add(handle)
    if beside:
        _check_beside(beside, answer, holdings, jobs_per_gpu)
    if holds:
        _check_holds(holds, answer, holdings, now)
    if batches:
        _check_batches(batches, answer, holdings)
    if waits:
        _check_waits(waits, answer, holdings, now)
    return answer


def _check_placement(job: Job, placement: Placement, holdings: Holdings) -> None:
    """Check that the job may have this many GPUs, and that none of them is on notice."""
    gpus = placement.gpus
    if not job.gpus_min <= gpus <= job.gpus_max:
        least, most = job.gpus_min, job.gpus_max
        needs = f"{least}" if least == most else f"{least} to {most}"
        raise PolicyError(
            f"job {job.id!r} placed on {counted(gpus, 'GPU')}, but it runs on {needs}"
        )
    if holdings.on_notice:
        for leaf in placement.leaves:
            if leaf in holdings.on_notice:
                raise PolicyError(
                    f"job {job.id!r} placed on {holdings.tree.levels[0].name} {leaf}, which leaves "
                    f"service at tick {holdings.on_notice[leaf]}; check view.on_notice"
                )


def _check_beside(
    beside: Sequence[tuple[JobState, int]],
    answer: CheckedAnswer,
    holdings: Holdings,
    jobs_per_gpu: int,
) -> None:
    """Check jobs that are placed beside another job, their host.

    Each must get exactly the GPUs of its host. The host must keep its GPUs, or be placed earlier in
    the answer. At most `jobs_per_gpu` jobs may share a GPU.
    """
    placed = {state.handle: (at, state) for at, (state, _) in enumerate(answer.placed)}
    leaving = {state.handle for state in (*answer.preempted, *answer.moved)}
    # For each job that this answer places beside another: the first job on those GPUs, as (whether
    # this answer places that job, its handle).
    first: dict[int, tuple[bool, int]] = {}
    # How many jobs share those GPUs.
    joined: dict[tuple[bool, int], int] = {}
    for state, handle in beside:
        at, _ = placed[state.handle]
        before, host = placed.get(handle) or (-1, holdings.running_job(handle))
        name, other = f"job {state.job.id!r}", f"job {host.job.id!r}"
        if before >= at or (before < 0 and handle in leaving):
            raise PolicyError(f"{name} beside {other}, which has no GPUs by then; place it before")
        gpus = host.placement if before < 0 else answer.placed[before][1]
        if answer.placed[at][1] != gpus:
            raise PolicyError(
                f"{name} beside {other} on {answer.placed[at][1]}, but that one has {gpus}"
            )
        hosts = holdings.free.hosts
        if hosts is not None and (lacks := hosts.shortage(gpus, state.job)) is not None:
            raise PolicyError(f"{name} beside {other}, whose GPUs have {lacks} that it needs there")
        there = (handle, *host.beside) if before < 0 else ()
        together = first.get(handle, (True, handle)) if before >= 0 else (False, min(there))
        first[state.handle] = together
        joined.setdefault(together, sum(x not in leaving for x in there) if there else 1)
        joined[together] += 1
        jobs = joined[together]
        if jobs > jobs_per_gpu:
            raise PolicyError(
                f"{name} beside {other} makes {jobs} jobs on a GPU, and the policy lets "
                f"{jobs_per_gpu} share one (jobs_per_gpu)"
            )
        answer.beside[state.handle] = host


def _check_holds(
    holds: Sequence[Hold], answer: CheckedAnswer, holdings: Holdings, now: Tick
) -> None:
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
        if hold.until <= now:
            raise PolicyError(f"job {state.job.id!r} held until {hold.until}, not after {now}")
        answer.holds.append((state, hold))


def _check_batches(batches: Sequence[SetBatch], answer: CheckedAnswer, holdings: Holdings) -> None:
    """Check that each job runs once the other decisions are applied, and can take its batch."""
    placed = {state.handle: (state, placement) for state, placement in answer.placed}
    preempted = {state.handle for state in answer.preempted}
    seen: set[int] = set()
    for decision in batches:
        name = holdings.name(decision.handle)
        if decision.handle in seen:
            raise PolicyError(f"{name} is given two batches")
        seen.add(decision.handle)
        if decision.handle in preempted:
            raise PolicyError(f"{name} is preempted and given a batch")
        if decision.handle in placed:
            state, placement = placed[decision.handle]
        else:
            state = holdings.running_job(decision.handle)
            assert state.placement is not None  # it runs
            placement = state.placement
        goodput = state.job.goodput
        if goodput is None:
            raise PolicyError(f"{name} has no goodput parameters, so its batch cannot change")
        if goodput.kinds:
            goodput = goodput.on(kinds_of(holdings.tree, placement))
        if wrong := goodput.flaw(placement.gpus, decision.batch):
            raise PolicyError(f"{name} is given {wrong}")
        answer.batches.append((state, decision.batch))


def _check_waits(
    waits: Sequence[Wait], answer: CheckedAnswer, holdings: Holdings, now: Tick
) -> None:
    """Check that each job waits once the other decisions are applied."""
    placed = {state.handle for state, _ in answer.placed}
    preempted = {x.handle: x for x in answer.preempted if x.handle not in answer.cancelled}
    for wait in waits:
        state = preempted.get(wait.handle) or holdings.waiting_job(wait.handle)
        if wait.handle in placed:
            raise PolicyError(f"{holdings.name(wait.handle)} starts and is told to wait")
        if wait.until is not None and wait.until <= now:
            raise PolicyError(
                f"job {state.job.id!r} waits until {wait.until}, which is not after now ({now})"
            )
        answer.wait_reasons.append((state, wait))
