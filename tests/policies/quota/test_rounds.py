"""Does `quota(HOST)` hold around policies that place all jobs together in rounds?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from support import S, cluster, finishes, intervals, job, on

from artist.cluster.tree import ClusterTree
from artist.contract import BasePolicy, ClusterView, Decision, SetBatch, Start
from artist.engine.rows import PREEMPTED, Rows
from artist.engine.simulator import Simulator
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import seconds
from artist.workload.goodput import Batch, Goodput
from artist.workload.job import Job
from artist.workload.tenants import Tenant

HOSTS = ["equal-share", "max-throughput", "optimus", "tiresias-rounds", "pollux", "sia", "gavel"]
NOISY = Goodput(64, 1024, 8, 128, 0.1, 0.01, 0.1, 0.01, 0.5, 0.05, 2.0, ((0.0, 50.0), (0.5, 900.0)))
TREES = [cluster([4]), cluster([2, 2]), cluster([2, 2], [4]), cluster([1, 3], [2])]
MOST_QUESTIONS = 3000


def drawn(rng: Random, tree: ClusterTree, *, elastic: bool) -> list[Job]:
    """Two to seven jobs, some elastic, some with goodput parameters."""
    made = []
    for index, arrival_s in enumerate(
        sorted(rng.choices([0, 1, 7, 60, 61, 500], k=rng.randint(2, 7)))
    ):
        gpus, fields = rng.randint(1, tree.gpus), {}
        if elastic and rng.random() < 0.7:
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
    questions = 0

    def watch(_: Simulator) -> None:
        nonlocal questions
        questions += 1
        assert questions < MOST_QUESTIONS, "the run does not end"

    engine = Simulator(tree, made, LevelRates(tree), check=True)
    return engine.run(open_policy(policy, {}, FIRST_DRAWS, tenants), watch)


def losses_in_vain(rows: Rows, gpus: int) -> list[tuple[int, int]]:
    """Jobs that were preempted, and wait beside as many free GPUs as they ask for."""
    asked = {row.handle: row.job.gpus for row in rows.jobs}
    found = []
    for lost in rows.placements:
        if lost.reason == PREEMPTED:
            after = lost.end + 5
            there = {
                x.handle: x.placement.gpus for x in rows.placements if x.start <= after < x.end
            }
            if lost.handle not in there and asked[lost.handle] <= gpus - sum(there.values()):
                found.append((lost.end, lost.handle))
    return found


@pytest.mark.parametrize("host", HOSTS)
def test_no_job_loses_gpus_that_stay_free_beside_it(host: str) -> None:
    """It would lose progress, and the GPUs would be idle until the next round."""
    taken = 0
    for seed in range(30):
        rng = Random(seed)
        tree = rng.choice(TREES)
        made = drawn(rng, tree, elastic=host != "gavel")
        quotas = {"ads": rng.randint(0, tree.gpus), "web": rng.randint(1, tree.gpus)}
        rows = run(f"quota({host})", tree, made, quotas)
        assert len(rows.jobs) == len(made)
        assert not losses_in_vain(rows, tree.gpus)
        taken += sum(row.reason == PREEMPTED for row in rows.placements)
    assert taken  # else the test could not fail


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
def test_a_quota_that_binds_nobody_changes_nothing(host: str) -> None:
    for seed in range(15):
        rng = Random(seed)
        tree = rng.choice(TREES)
        drew = drawn(rng, tree, elastic=host != "gavel")
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
    """Else a job above quota would be offered the GPUs that it may take."""
    made = [
        job("short", 4, 3, tenant="ads"),
        job("within", 2, 50, arrival_s=5.0, tenant="ads", gpus_min=1, gpus_max=4),
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
