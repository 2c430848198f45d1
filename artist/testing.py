"""Contract checks for policies, public so that anybody's policy can take them.

    from artist.testing import check_policy
    check_policy(lambda: MyPolicy(MyPolicy.Options()))

A policy that asks for random numbers gets them here too: `draws=Draws()` (`artist.rng`).

A policy that passes is lawful, deterministic and picklable. It does not change the view, brings
every finite trace to its end, does not read names, decides lawfully when speeds change at every
event, and decides by the lengths of jobs only if it says `knows_run_times = True`.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest

from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree, nested
from artist.contract import (
    NO_SHARED_LINKS,
    BasePolicy,
    ClusterView,
    Decision,
    JobView,
    LinkPattern,
    Moves,
    Policy,
    Rate,
    SharedLinks,
    Slowdowns,
    Uplink,
    UpPhase,
    Wait,
)
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import PolicyError
from artist.network.rates.interference import TIME_SLICING, interfered
from artist.policies.lease_and_tables import check_jobs_per_gpu, check_lease, tables_of
from artist.policies.table import POLICIES
from artist.rng import stream
from artist.units import Tick, seconds, ticks
from artist.workload.goodput import Batch
from artist.workload.job import Job
from artist.workload.models import model_names

# More questions per job than any sane policy needs: a bound on livelock.
QUESTIONS_PER_JOB = 20_000

# Often enough to fall into holds and leases, which last hours; seldom enough to stay quick.
RESTLESS_S = 1800.0

CLAUSES = 7
"""What `check_policy` checks: the six clauses of each situation, and `check_run_times`."""

_LEVELS = ("machine", "rack", "network")

_SHORT = (3000, 6000)
"""Iterations of 1 s of the first jobs: others can start when they finish."""

_LENGTHS = [2**17, 2**18, 2**19, 2**20, 2**21, 2**22]
"""Those of the long jobs; in the other trace their order is the opposite."""

_NOTHING_KNOWN_S = 100_000.0
"""No long job finishes before it, and several leases end."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A cluster and a trace to try a policy on."""

    name: str
    tree: ClusterTree
    jobs: tuple[Job, ...]


class LevelRates:
    """A rate function without a network: each level outside the machine adds `slowdown`.

    With `restless`, every running job gets another speed at every event. Every third job also asks
    to be asked again after `RESTLESS_S`, which is an event of its own. Then jobs also meet on the
    uplinks of machines and racks, and what they would lose there changes at every event.
    """

    def __init__(self, tree: ClusterTree, *, slowdown: float = 0.5, restless: bool = False) -> None:
        self._tree = tree
        self._slowdown = slowdown
        self._restless = restless
        self._asked = 0
        self._placed: dict[int, Placement] = {}

    @property
    def links(self) -> SharedLinks:
        """Itself when restless."""
        return self if self._restless else NO_SHARED_LINKS

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """How many jobs cross an uplink."""
        crossed = [uplink for x in self._after(moves).values() for uplink in self._uplinks(x)]
        return {uplink: float(crossed.count(uplink)) for uplink in crossed}

    phases_count = True

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """Up for a fifth to three fifths of an iteration, on every uplink that it crosses."""
        alone_s = self.alone(job, placement).iteration_s
        up = UpPhase((1 + job.gpus % 3) / 5 * alone_s, 10.0, 10.0)
        return LinkPattern(alone_s, dict.fromkeys(sorted(self._uplinks(placement)), up))

    def capacity(self, uplink: Uplink) -> float:
        """Less than two jobs want."""
        return 15.0

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """Something for each job that meets another one, never the same for long."""
        here = self._uplinks(placement)
        beside = [x for x, where in self._after(moves).items() if here & self._uplinks(where)]
        losses = {x: (1 + (self._asked * 5 + x * 3) % 4) / 8 for x in beside}
        return Slowdowns(max(losses.values(), default=0.0), losses)

    def _after(self, moves: Moves) -> dict[int, Placement]:
        placed = {x: where for x, where in self._placed.items() if x not in moves}
        return placed | {x: move[1] for x, move in moves.items() if move is not None}

    def _uplinks(self, placement: Placement) -> set[Uplink]:
        """Of all units that the placement has something in and something outside of."""
        levels = range(tier(self._tree, placement))
        return {
            (level, self._tree.ancestor(0, leaf, level))
            for level in levels
            for leaf in placement.leaves
        }

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs, or of all when restless."""
        self._asked += 1
        self._placed = {x.handle: x.placement for x in running.values() if x.placement is not None}
        jobs = running.values() if self._restless else changed
        return {view.handle: self._rate(view, now) for view in jobs if view.placement is not None}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """Compute time, longer by the level that the placement spans."""
        alone_s = job.compute_s * (1 + self._slowdown * tier(self._tree, placement))
        return Rate(alone_s, placement.gpus / job.gpus, "testing", alone_s)

    def _rate(self, view: JobView, now: Tick) -> Rate:
        assert view.placement is not None  # running jobs have GPUs
        rate = self.alone(view.job, view.placement)
        if not self._restless:
            return rate
        stretch = 1 + (self._asked * 7 + view.handle * 3) % 5 / 4
        until = None if view.handle % 3 else now + ticks(RESTLESS_S)
        return rate._replace(iteration_s=rate.iteration_s * stretch, until=until)


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


def check_policy(make: Callable[[], Policy], *, seed: int = 0) -> None:
    """Try a policy on everything that its contract says.

    `make` builds a fresh policy at each call.

    Raises:
        PolicyError: naming the situation and the clause that is broken.
    """
    for situation in situations(seed):
        rows = _clause(situation, "lawful", partial(_run_with_tables, situation, make()))
        _same(situation, "deterministic", rows, _run(situation, make()))
        _same(situation, "insensitive to names", rows, _run(_renamed(situation), make()))
        watched = partial(_run, situation, _Watched(make()))
        seen = _clause(situation, "leaving the view alone", watched)
        _same(situation, "right about leases that no job contests", rows, seen)
        _same(situation, "picklable and copyable", rows, _run_copied(situation, make()))
        _check_at_changing_speeds(situation, make)
    check_run_times(make)


def check_run_times(make: Callable[[], Policy]) -> None:
    """Refuse a policy that decides by the lengths of jobs and does not say that it knows them.

    Raises:
        PolicyError: says when it first does.
    """
    policy = make()
    if _says_that_it_knows(policy):
        return
    seen = decides_by_run_times(make)
    if seen is not None:
        raise PolicyError(
            "not ignorant of run times: it decides otherwise at "
            f"{seconds(seen):g} s where jobs have other iterations, though none has finished; rank "
            "by what a scheduler sees (service, waits, GPUs), or say knows_run_times = True in "
            f"class {type(policy).__name__}"
        )


def decides_by_run_times(make: Callable[[], Policy]) -> Tick | None:
    """When a policy first decides otherwise on traces that differ only in what nobody can know.

    Two traces have the same short jobs, and long ones that differ only in their iterations; all
    are rigid, then all are elastic. Until a long job finishes, no scheduler sees a difference.
    None: nor does this policy.
    """
    for elastic in (False, True):
        rising, falling = (
            _ignorant(make(), counts, elastic=elastic) for counts in (_LENGTHS, _LENGTHS[::-1])
        )
        for one, other in zip_longest(rising, falling):
            if one != other:
                return min(noted[0] for noted in (one, other) if noted is not None)
    return None


def _ignorant(
    policy: Policy, counts: Sequence[int], *, elastic: bool
) -> list[tuple[Tick, Sequence[Decision]]]:
    """What a policy decides before a long job finishes; the words of `Wait` are left out."""
    tree = _tree([[4, 4]])
    jobs = [
        Job(
            id=f"job-{index}",
            arrival_s=300.0 * index,
            gpus=gpus,
            gpus_min=1 if elastic else gpus,
            model="resnet50",
            iterations=iterations,
            compute_s=1.0,
        )
        for index, (gpus, iterations) in enumerate(
            zip((4, 4, 2, 8, 2, 4, 2, 4), (*_SHORT, *counts), strict=True)
        )
    ]
    simulator = Simulator(
        tree,
        jobs,
        LevelRates(tree),
        lease=policy.lease,
        jobs_per_gpu=getattr(policy, "jobs_per_gpu", 1),
    )
    decided: list[tuple[Tick, Sequence[Decision]]] = []
    while (view := simulator.next_question(policy)) is not None:
        if view.now >= ticks(_NOTHING_KNOWN_S):
            break
        answer = list(policy.decide(view))
        simulator.answer(answer)
        told: list[Decision] = [one for one in answer if not isinstance(one, Wait)]
        if told:
            decided.append((view.now, told))
    return decided


def _says_that_it_knows(policy: object) -> bool:
    """Whether its class says so, or the table of a class of artist, or the policy inside it."""
    kind = type(policy)
    target = f"{kind.__module__}:{kind.__qualname__}"
    of_table = any(row.knows_run_times and row.target == target for row in POLICIES)
    stated = getattr(policy, "knows_run_times", False) is True
    host = getattr(policy, "host", None)
    return stated or of_table or (host is not None and _says_that_it_knows(host))


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


def _renamed(situation: Situation) -> Situation:
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
