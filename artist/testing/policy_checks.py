"""The contract checks for policies: valid, deterministic, picklable, blind to names."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from functools import partial

from artist.contract import BasePolicy, ClusterView, Decision, Policy
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import PolicyError
from artist.network.rates.interference import TIME_SLICING, interfered
from artist.policies.lease_and_tables import check_jobs_per_gpu, check_lease, tables_of
from artist.testing.level_rates import LevelRates
from artist.testing.run_time_check import check_run_times
from artist.testing.situation import Situation, renamed, situations

# More questions per job than any sane policy needs: a bound on livelock.
QUESTIONS_PER_JOB = 20_000

CLAUSES = 7
"""What `check_policy` checks: the six clauses of each situation, and `check_run_times`."""


def check_policy(make: Callable[[], Policy], *, seed: int = 0) -> None:
    """Try a policy on everything that its contract says.

    `make` builds a fresh policy at each call.

    Raises:
        PolicyError: naming the situation and the clause that is broken.
    """
    for situation in situations(seed):
        rows = _clause(situation, "valid", partial(_run_with_tables, situation, make()))
        _same(situation, "deterministic", rows, _run(situation, make()))
        _same(situation, "insensitive to names", rows, _run(renamed(situation), make()))
        watched = partial(_run, situation, _Watched(make()))
        seen = _clause(situation, "leaving the view alone", watched)
        _same(situation, "right about leases that no job contests", rows, seen)
        _same(situation, "picklable and copyable", rows, _run_copied(situation, make()))
        _check_at_changing_speeds(situation, make)
    check_run_times(make)


def _check_at_changing_speeds(situation: Situation, make: Callable[[], Policy]) -> None:
    """The same once more while all speeds change at every event, as they do under contention."""

    def restless() -> LevelRates:
        return LevelRates(situation.tree, restless=True)

    clause = "right at changing speeds"
    rows = _clause(situation, clause, partial(_run, situation, make(), restless(), check=True))
    _work_is_conserved(situation, rows)
    asked = _clause(situation, clause, partial(_run, situation, _Watched(make()), restless()))
    _same(situation, "right about leases that no job contests at changing speeds", rows, asked)
    copied = _run_copied(situation, make(), restless())
    _same(situation, "picklable and copyable at changing speeds", rows, copied)


class _Watched(BasePolicy):
    """A policy that is caught when it changes what it is shown; it is asked at all lease ends."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.lease = policy.lease
        self.jobs_per_gpu = getattr(policy, "jobs_per_gpu", 1)

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        before = _fingerprint(view)
        decisions = self._policy.decide(view)
        if _fingerprint(view) != before:
            raise PolicyError("the policy changed the view")
        return decisions


def _fingerprint(view: ClusterView) -> object:
    states = [*view.waiting.values(), *view.running.values()]
    return (
        [tuple(view.free.counts(level).tolist()) for level in range(len(view.cluster.levels))],
        list(view.waiting),
        list(view.running),
        [(s.handle, s.placement, s.entered, s.run_ticks(view.now)) for s in states],
        [len(view.entered), len(view.lease_ended), len(view.finished)],
    )


def _run(
    situation: Situation, policy: Policy, rates: LevelRates | None = None, *, check: bool = False
) -> Rows:
    """A run; `check` the engine's state too, once is enough for runs that must give equal rows."""
    simulator = _simulator(situation, policy, rates, check=check)
    limit = QUESTIONS_PER_JOB * len(situation.jobs)

    def watch(running: Simulator) -> None:
        if running.rows.questions > limit:
            raise PolicyError(f"no end after {limit} questions")

    return simulator.run(policy, watch)


def _run_with_tables(situation: Situation, policy: Policy) -> Rows:
    """What `artist sim` asks of a policy: its lease, its decisions, and its tables at the end."""
    name = type(policy).__name__
    check_lease(policy, name)
    check_jobs_per_gpu(policy, name)
    rows = _run(situation, policy, check=True)
    tables_of(policy, name)
    return rows


def _simulator(
    situation: Situation, policy: Policy, rates: LevelRates | None, *, check: bool = False
) -> Simulator:
    """A run of a situation's jobs under a policy."""
    jobs_per_gpu = getattr(policy, "jobs_per_gpu", 1)
    return Simulator(
        situation.tree,
        situation.jobs,
        interfered(rates or LevelRates(situation.tree), TIME_SLICING, situation.tree, jobs_per_gpu),
        lease=policy.lease,
        jobs_per_gpu=jobs_per_gpu,
        check=check,
    )


def _run_copied(situation: Situation, policy: Policy, rates: LevelRates | None = None) -> Rows:
    """Every few questions policy and simulator are copied, and the copy goes on.

    After 70 it is every few dozens: what a policy remembers grows, and with it the time of a copy.
    Two of three are pickled, which takes a third of the time.
    """
    simulator = _simulator(situation, policy, rates)
    asked = 0
    while simulator.next_question() is not None:
        asked += 1
        turn = asked % 14 if asked <= 70 or asked % 5 == 0 else None
        if turn == 3:
            simulator, policy = copy.deepcopy((simulator, policy))
        elif turn in (6, 13):
            # In memory and our own: nothing is ever unpickled from outside.
            simulator, policy = pickle.loads(pickle.dumps((simulator, policy)))  # noqa: S301
        simulator.answer(policy.decide(simulator.view()))
    return simulator.rows


def _clause(situation: Situation, clause: str, run: Callable[[], Rows]) -> Rows:
    try:
        return run()
    except PolicyError as cause:
        raise PolicyError(f"not {clause} ({situation.name}): {cause}") from cause


def _same(situation: Situation, clause: str, rows: Rows, others: Rows) -> None:
    same = rows.placements == others.placements and rows.timeline == others.timeline
    if not same or len(rows.jobs) != len(situation.jobs):
        raise PolicyError(f"not {clause} ({situation.name}): another run gave other rows")


def _work_is_conserved(situation: Situation, rows: Rows) -> None:
    """Check that every job did its iterations, and no more."""
    if len(rows.jobs) != len(situation.jobs):
        raise PolicyError(f"jobs are left unfinished ({situation.name})")
    done = dict.fromkeys(range(len(situation.jobs)), 0.0)
    for row in rows.placements:
        done[row.handle] += row.iterations * row.placement.gpus / situation.jobs[row.handle].gpus
    for handle, job in enumerate(situation.jobs):
        # The last iteration of an elastic job may be worth more than what was left.
        if not job.iterations - 1e-9 <= done[handle] < job.iterations + job.gpus_max / job.gpus:
            raise PolicyError(
                f"job {handle} did {done[handle]} of {job.iterations} iterations ({situation.name})"
            )
