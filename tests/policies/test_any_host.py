"""Do wrappers keep their promises around any policy, nested too?

Small random traces with priorities, tenants, restart costs and failures, under every wrapper around
every host. A run must end. No job may get GPUs and lose them again within an instant, none may
wait that the policy would start if it were asked again, and no later class may keep GPUs from an
earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from failures.made import exponential, units
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import cluster, job

from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Policy, Start, WrapperPolicy
from artist.engine.rows import LEASE_ENDED, MIGRATED, PREEMPTED, Rows
from artist.engine.simulator import Simulator
from artist.engine.what_if import copied
from artist.failures.failures_of_run import FailuresOfRun
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import Tick, ticks
from artist.workload.job import Job
from artist.workload.tenants import Tenant

PACKING = ["fifo-backfill", "sjf", "srsf", "srtf", "las"]
"""Hosts that start a job whenever enough GPUs are free, also behind others that wait."""
ELASTIC = ["equal-share", "max-throughput", "pollux", "sia"]
"""Hosts that choose how many GPUs a job gets, in rounds."""
HOSTS = ["fifo", *PACKING, "dally", "tiresias", "gandiva", "themis", *ELASTIC]
WRAPPERS = ["quota", "lookahead", "cassini", "random-placement"]
TENANTS = {"ads": Tenant(quota=2), "web": Tenant(quota=3)}
PASS: Tick = ticks(QueueOptions().pass_s)

# After an answer that preempts jobs, the policy is asked in the next nanosecond, and once more to
# give others what is left.
INSTANT: Tick = 5
MOST_QUESTIONS = 3000

TREES = st.sampled_from([cluster([4]), cluster([2, 2]), cluster([2, 2], [4]), cluster([1, 3], [2])])


@st.composite
def names(draw: st.DrawFn, hosts: Sequence[str] = HOSTS) -> str:
    """A host in one or two wrappers."""
    name = draw(st.sampled_from(hosts))
    for wrapper in draw(st.lists(st.sampled_from(WRAPPERS), min_size=1, max_size=2, unique=True)):
        name = f"{wrapper}({name})"
    return name


@st.composite
def traces(draw: st.DrawFn, tree: ClusterTree) -> list[Job]:
    """Two to seven jobs, in order of arrival, some of them elastic."""
    arrivals = draw(st.lists(st.sampled_from([0, 1, 7, 30, 60, 200]), min_size=2, max_size=7))
    sizes = [draw(st.integers(1, tree.gpus)) for _ in arrivals]
    return [
        job(
            str(index),
            gpus,
            draw(st.integers(1, 400)),
            gpus_min=draw(st.sampled_from([gpus, 1])),
            gpus_max=draw(st.sampled_from([gpus, tree.gpus])),
            arrival_s=float(arrival_s),
            restart_s=draw(st.sampled_from([0.0, 30.0, 250.0])),
            tenant=draw(st.sampled_from(["ads", "web", None])),
            priority=draw(st.sampled_from([1, 3, 4, None])),
        )
        for index, (arrival_s, gpus) in enumerate(zip(sorted(arrivals), sizes, strict=True))
    ]


class Witness:
    """Looks at a run after every answer, and at the state that an instant ends with."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.questions = 0
        self.forgotten: list[tuple[Tick, int]] = []
        """Jobs that the policy would have started if it had been asked again."""
        self.wronged: list[tuple[Tick, int]] = []
        """Jobs within quota that waited for what later classes held, for longer than a pass."""
        self.miscounted: set[int] = set()
        """Running jobs that a quota counts with other numbers of GPUs than they have."""
        self._would_start: list[int] = []
        self._waits_since: dict[int, Tick] = {}
        self._last: Tick = 0

    def __call__(self, running: Simulator) -> None:
        """Look at the state after an answer."""
        self.questions += 1
        assert self.questions < MOST_QUESTIONS, "the run does not end"
        if running.now > self._last + INSTANT:
            self.forgotten += [(self._last, x) for x in self._would_start]
        self._last = running.now
        self._would_start = list(would_start(running, self.policy))
        view, found = running.view(), set()
        for quota in quotas(self.policy):
            found |= set(inverted(view, quota))
            self.miscounted |= set(miscounted(view, quota))
        since = {x: self._waits_since.get(x, view.now) for x in found}
        self._waits_since = since
        self.wronged += [(t, x) for x, t in since.items() if view.now > t + PASS + INSTANT]


def would_start(running: Simulator, policy: Policy) -> Iterator[int]:
    """The jobs that a copy of the policy starts when it gets the same question again."""
    trial, asked = copied(running, policy)
    trial._asking = True
    yield from (x.handle for x in asked.decide(trial.view()) if isinstance(x, Start))


def quotas(policy: Policy) -> Iterator[QuotaWrapper]:
    """The quotas in a policy."""
    while isinstance(policy, WrapperPolicy):
        if isinstance(policy, QuotaWrapper):
            yield policy
        policy = policy.host


def inverted(view: ClusterView, quota: QuotaWrapper) -> Iterator[int]:
    """Waiting jobs within quota to which free GPUs and those of later classes would suffice."""
    ledger = quota._ledger
    for handle in view.waiting:
        mine = ledger.waiting.get(handle)
        if mine is not None and mine.within:
            later = [
                x.gpus
                for x in view.running.values()
                if view.frees(x) and ledger.running[x.handle].rank > mine.rank
            ]
            if later and mine.gpus <= view.free.total + sum(later):
                yield handle


def miscounted(view: ClusterView, quota: QuotaWrapper) -> Iterator[int]:
    """Running jobs of which a quota counts more or fewer GPUs than they have."""
    held = quota._ledger.running
    yield from (x for x, state in view.running.items() if held[x].gpus != state.gpus)


def run(
    name: str, tree: ClusterTree, jobs: list[Job], *, quotas: bool, model: Any = None
) -> tuple[Rows, Witness]:
    """A checked run with a witness, under failures if a model of them is given."""
    policy = open_policy(name, {}, FIRST_DRAWS, TENANTS if quotas else {})
    events = None
    if model is not None:
        failures = FailuresOfRun(units(tree, model), None)
        policy, events = failures.respecting_notices(policy), failures.events(0)
    engine = Simulator(tree, jobs, LevelRates(tree), lease=policy.lease, events=events, check=True)
    witness = Witness(policy)
    return engine.run(policy, witness), witness


def bounces(rows: Rows) -> list[tuple[Tick, int]]:
    """Jobs that lost GPUs in the instant in which they got them."""
    since: dict[int, Tick] = {}
    found = []
    for row in sorted(rows.placements, key=lambda x: (x.handle, x.start, x.end)):
        start = since.setdefault(row.handle, row.start)
        if row.reason in (PREEMPTED, LEASE_ENDED, MIGRATED) and row.end - start <= INSTANT:
            found.append((row.start, row.handle))
        if row.reason not in ("re-rated", "held"):
            del since[row.handle]
    return found


MODEL = {
    "machine": exponential(2000.0, 60.0),
    "maintenance": [{"kind": "machine", "unit": 0, "at_s": 100.0, "duration_s": 50.0,
                     "notice_s": 60.0}],
}  # fmt: skip


def check(data: st.DataObject, hosts: Sequence[str]) -> None:
    """One run."""
    tree = data.draw(TREES)
    jobs = data.draw(traces(tree))
    name = data.draw(names(hosts))
    model = data.draw(st.sampled_from([None, None, MODEL]))
    rows, witness = run(name, tree, jobs, quotas=data.draw(st.booleans()), model=model)
    assert len(rows.jobs) == len(jobs)
    assert not bounces(rows)
    if model is None and "lookahead" not in name:  # these may turn a decision down
        assert not witness.miscounted
    if any(f"({host})" in name for host in PACKING) and "lookahead" not in name:
        assert not witness.forgotten  # a search may decide to let a job wait
        assert not witness.wronged


QUICK = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@QUICK
@given(st.data())
def test_any_policy_may_be_wrapped(data: st.DataObject) -> None:
    check(data, HOSTS)


@pytest.mark.slow
@settings(QUICK, max_examples=1500)
@given(st.data())
def test_any_policy_may_be_wrapped_in_many_runs(data: st.DataObject) -> None:
    check(data, HOSTS)
