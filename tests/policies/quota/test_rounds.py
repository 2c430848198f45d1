"""Does `quota(HOST)` hold around policies that place all jobs together in rounds?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
from support import S, cluster, finishes, intervals, job, on

from artist.cluster.tree import ClusterTree
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    Migrate,
    Policy,
    Preempt,
    SetBatch,
    Start,
    WrapperPolicy,
)
from artist.contract.gates import without
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.policies.quota.ledger import LAST_CLASS
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import Tick, seconds
from artist.workload.goodput import Batch, Goodput
from artist.workload.job import Job
from artist.workload.tenants import Tenant

HOSTS = ["equal-share", "max-throughput", "optimus", "tiresias-rounds", "pollux", "sia", "gavel"]
NOISY = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.01, 0.5, 0.05, 2.0, ((0.0, 50.0), (0.5, 900.0)))
TREES = [cluster([4]), cluster([2, 2]), cluster([2, 2], [4]), cluster([1, 3], [2])]
MOST_QUESTIONS = 3000


def drawn(rng: Random, tree: ClusterTree) -> list[Job]:
    """Two to seven jobs, some elastic, some with goodput parameters."""
    made = []
    for index, arrival_s in enumerate(
        sorted(rng.choices([0, 1, 7, 60, 61, 500], k=rng.randint(2, 7)))
    ):
        gpus, fields = rng.randint(1, tree.gpus), {}
        if rng.random() < 0.7:
            fields = {"gpus_min": rng.randint(1, gpus), "gpus_max": rng.randint(gpus, tree.gpus)}
            if rng.random() < 0.5:
                fields |= {"goodput": NOISY, "compute_s": NOISY.compute_s(NOISY.submitted(gpus))}
        fields |= {
            "priority": rng.choice([1, 3, 4, None]),
            "tenant": rng.choice(["ads", "web", None]),
        }
        restart_s = rng.choice([0.0, 30.0, 250.0])
        iterations = rng.randint(1, 400)
        made.append(
            job(str(index), gpus, iterations, arrival_s=arrival_s, restart_s=restart_s, **fields)
        )
    return made


def run(policy: str, tree: ClusterTree, made: list[Job], quotas: dict[str, int]) -> Rows:
    tenants = {name: Tenant(quota=gpus) for name, gpus in quotas.items()}
    return ran(open_policy(policy, {}, FIRST_DRAWS, tenants), tree, made)


def ran(policy: Policy, tree: ClusterTree, made: list[Job]) -> Rows:
    questions = 0

    def watch(_: Simulator) -> None:
        nonlocal questions
        questions += 1
        assert questions < MOST_QUESTIONS, "the run does not end"

    engine = Simulator(tree, made, LevelRates(tree), check=True)
    return engine.run(policy, watch)


class Victims(QuotaWrapper):
    """Keeps which jobs lost GPUs to others, and not by their host's choice."""

    def __init__(self, host: Policy, tenants: Mapping[str, Tenant]) -> None:
        super().__init__(QueueOptions(), host, tenants=tenants)
        self.victims: list[tuple[Tick, int]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        answer = super().decide(view)
        self.victims += [
            (view.now, x.handle)
            for x in answer
            if isinstance(x, Preempt) and x.reason.startswith("for a job of class")
        ]
        return answer


def starts_on(host: str, job: Job, gpus: int) -> bool:
    """Whether a host would start a job on at most this many GPUs. Sia's sizes are powers of two."""
    if host in ("gavel", "tiresias-rounds"):
        return job.gpus <= gpus
    return job.gpus_min <= min(gpus, 2 if host == "sia" else gpus)


def wasted(host: str, rows: Rows, victims: Sequence[tuple[Tick, int]], gpus: int) -> list[int]:
    """Jobs that lost their GPUs, and wait beside as many free ones as they would start on."""
    asked = {row.handle: row.job for row in rows.jobs}
    found = []
    for lost_at, handle in victims:
        held = {
            x.handle: x.placement.gpus for x in rows.placements if x.start <= lost_at + 5 < x.end
        }
        if handle not in held and starts_on(host, asked[handle], gpus - sum(held.values())):
            found.append(handle)
    return found


@pytest.mark.parametrize("host", HOSTS)
def test_no_job_loses_gpus_that_stay_free_beside_it(host: str) -> None:
    """It would lose progress, and the GPUs would be idle until the next round."""
    taken = 0
    for seed in range(100, 200):
        rng = Random(seed)
        tree = rng.choice(TREES)
        made = drawn(rng, tree)
        quotas = {"ads": rng.randint(0, tree.gpus), "web": rng.randint(1, tree.gpus)}
        tenants = {name: Tenant(quota=gpus) for name, gpus in quotas.items()}
        policy = Victims(open_policy(host, {}, FIRST_DRAWS, {}), tenants)
        rows = ran(policy, tree, made)
        assert len(rows.jobs) == len(made)
        assert not wasted(host, rows, policy.victims, tree.gpus)
        taken += len(policy.victims)
    assert taken  # otherwise the test could not fail


class NoMoves(WrapperPolicy):
    """Turns all moves down, and looks at what a quota counts where there were none."""

    looks = 0

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        answer = self.host.decide(view)
        moves = [x.handle for x in answer if isinstance(x, Migrate)]
        if not moves:
            self.looks += 1
            counted = self.host._ledger.running  # type: ignore[attr-defined]
            assert all(counted[x].gpus == job.gpus for x, job in view.running.items())
        return without(answer, moves, view, "stay")[0]


def test_a_move_that_is_turned_down_changes_no_charge() -> None:
    fields = {"gpus_min": 1, "gpus_max": 4, "tenant": "ads"}
    made = [job("a", 2, 200, **fields), job("b", 2, 100, **fields)]
    made += [job("late", 4, 10, arrival_s=130.0, tenant="ads")]
    tenants = {"ads": Tenant(quota=4)}
    policy = NoMoves(open_policy("quota(equal-share)", {}, FIRST_DRAWS, tenants))
    rows = ran(policy, cluster([4]), made)
    assert [x.placement.gpus for x in rows.placements] == [2, 2, 4] and policy.looks


def test_a_job_starts_on_quota_that_a_mate_gives_up_with_some_of_its_gpus() -> None:
    made = [
        job(name, 4, 200, tenant="ads", gpus_min=1, priority=2, arrival_s=arrival_s)
        for name, arrival_s in (("a", 0.0), ("b", 30.0), ("c", 70.0))
    ]
    policy = open_policy("quota(equal-share)", {}, FIRST_DRAWS, {"ads": Tenant(quota=4)})
    rows = ran(policy, cluster([4]), made)
    assert [x.start // S for x in rows.jobs] == [0, 60, 120]
    assert {x["class"] for x in policy.tables()["starts_by_class"]} == {2}


def test_an_elastic_job_is_charged_what_its_host_gives_it() -> None:
    """Of a quota of 4, two jobs that may have 4 GPUs each are charged one, and then have 4 each."""
    made = [
        job(name, 4, 100, tenant="ads", gpus_min=1, priority=priority, arrival_s=arrival_s)
        for name, priority, arrival_s in (("a", 2, 0.0), ("b", 2, 0.0), ("c", 3, 30.0))
    ]
    policy = open_policy("quota(equal-share)", {}, FIRST_DRAWS, {"ads": Tenant(quota=4)})
    ran(policy, cluster([12]), made)
    starts = policy.tables()["starts_by_class"]
    assert [(x["job"], x["class"]) for x in starts] == [(0, 2), (1, 2), (2, LAST_CLASS)]


def test_an_elastic_job_is_charged_what_was_submitted_where_its_host_takes_nothing_back() -> None:
    """Themis lets it start on all GPUs, and would leave them to it until its lease ends."""
    made = [
        job("above", 16, 400_000, tenant="ads", gpus_min=1),
        job("within", 8, 100, tenant="web", arrival_s=10.0),
        job("beside", 8, 100, tenant="web", gpus_min=4, arrival_s=10.0),
    ]
    rows = run("quota(themis)", cluster([8, 8]), made, {"ads": 1, "web": 15})
    assert {row.job.id: row.start // S for row in rows.jobs}["within"] == 10


@pytest.mark.parametrize("policy", ["quota(equal-share)", "quota(cassini(pollux))"])
def test_a_job_keeps_its_gpus_until_the_round_that_gives_them_to_another(policy: str) -> None:
    made = [
        job("above", 4, 200, tenant="ads"),
        job("within", 4, 100, arrival_s=7.0, tenant="web"),
    ]
    rows = run(policy, cluster([4]), made, {"ads": 0, "web": 4})
    first = intervals(rows, 0)[0]
    assert first.end == pytest.approx(60 * S, abs=1)
    assert finishes(rows) == pytest.approx({"within": 160.0, "above": 320.0})


@pytest.mark.parametrize("host", HOSTS)
def test_a_quota_that_binds_no_job_changes_nothing(host: str) -> None:
    for seed in range(15):
        rng = Random(seed)
        tree = rng.choice(TREES)
        drew = drawn(rng, tree)
        made = [replace(x, tenant="ads", priority=None) for x in drew]
        alone, around = run(host, tree, made, {}), run(f"quota({host})", tree, made, {"ads": 99})
        assert alone.placements == around.placements


@pytest.mark.parametrize(("host", "round_s"), [("gavel", 360.0), ("equal-share", 60.0)])
def test_gpus_that_a_preempted_job_leaves_over_go_to_others_in_the_same_round(
    host: str, round_s: float
) -> None:
    made = [
        job("first", 4, 400, priority=3),
        job("urgent", 5, 400, arrival_s=1.0, priority=1),
        job("beside", 3, 400, arrival_s=1.0, priority=3),
    ]
    rows = run(f"quota({host})", cluster([8]), made, {})
    begun = {row.job.id: seconds(row.start) for row in rows.jobs}
    assert begun == pytest.approx({"first": 0.0, "urgent": round_s, "beside": round_s}, abs=1e-8)


def test_a_job_that_waits_for_the_round_is_not_one_that_the_host_passed_over() -> None:
    """Otherwise a job above quota would be offered the GPUs that this job may take."""
    made = [
        job("short", 4, 3, tenant="ads"),
        job("within", 4, 50, arrival_s=5.0, tenant="ads", gpus_min=1, gpus_max=4),
        job("above", 4, 50, arrival_s=7.0, gpus_min=1, gpus_max=4),
    ]
    rows = run("quota(equal-share)", cluster([4]), made, {"ads": 4})
    assert [row.placement.gpus for row in intervals(rows, 1)] == [4]


class Batches(BasePolicy):
    """Starts what fits, and gives every running job a batch."""

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        fits = [x for x, state in view.waiting.items() if state.job.gpus <= view.free.total]
        starts = [Start(x, on({0: view.waiting[x].job.gpus})) for x in fits[:1]]
        return [*starts, *(SetBatch(x, Batch(64, 0)) for x in view.running)]


def test_a_batch_falls_with_the_stay_of_a_job_that_is_preempted() -> None:
    made = [
        job("above", 4, 200, goodput=NOISY, compute_s=NOISY.compute_s(NOISY.submitted(4))),
        job("within", 4, 100, arrival_s=7.0, tenant="ads"),
    ]
    tree, tenants = cluster([4]), {"ads": Tenant(quota=4)}
    policy = QuotaWrapper(QueueOptions(), Batches(), tenants=tenants)
    rows = Simulator(tree, made, LevelRates(tree), check=True).run(policy)
    assert finishes(rows)["within"] == pytest.approx(107.0)
