"""Do quotas and priorities hold, whatever policy they are put around?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from quota_cases import TENANTS, Watch, jobs, run
from support import cluster, job

from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, Hold, Migrate, Preempt, Start, Wait
from artist.engine.simulator import Simulator
from artist.errors import ConfigError, PolicyError
from artist.policies.quota.wrapper import QuotaWrapper
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates, check_policy
from artist.units import seconds, ticks
from artist.workload.tenants import Tenant

# Hosts that give a waiting job GPUs whenever enough are free.
PACKING = ["fifo", "fifo-backfill", "sjf", "srsf", "srtf", "las"]


@pytest.mark.parametrize("host", PACKING)
@pytest.mark.parametrize("priorities", [True, False])
def test_no_job_within_quota_waits_for_gpus_held_above_quota(host, priorities) -> None:
    waits = 0
    for seed in range(12):
        watch = Watch(TENANTS)
        made = jobs(seed, priorities=priorities)
        rows = run(open_policy(f"quota({host})", {}, FIRST_DRAWS, TENANTS), made, watch)
        assert len(rows.jobs) == len(made)
        assert not watch.wronged
        waits += watch.waits
    assert waits  # otherwise the test could not fail


@pytest.mark.parametrize("cell", [1, 3, 5, 6, 9])
def test_the_same_holds_for_mast_right_after_a_pass(cell) -> None:
    """Between passes, jobs keep their classes (section 4.2). One cluster, so all cells agree."""
    waits = 0
    # Quotas of more than the cluster, so that jobs within them wait.
    tenants = {"ads": Tenant(quota=12), "web": Tenant(quota=10), "lab": Tenant(quota=0)}
    for seed in range(12):
        watch = Watch(tenants)
        policy = open_policy("mast", {"cell": cell}, FIRST_DRAWS, tenants)

        def after_passes(running: Simulator, policy=policy, watch=watch) -> None:
            passes = policy.tables().get("passes", [])
            if passes and running.now - ticks(passes[-1]["time_s"]) <= 1:
                watch(running)

        run(policy, jobs(seed), after_passes)
        assert not watch.wronged
        waits += watch.waits
    assert waits


@pytest.mark.parametrize("host", ["dally", "gandiva", "tiresias", "themis", "conservative"])
def test_hosts_that_let_jobs_wait_for_better_gpus_finish_all_jobs_too(host) -> None:
    made = jobs(8)
    policy = open_policy(f"quota({host})", {}, FIRST_DRAWS, TENANTS)
    assert len(run(policy, made, Watch(TENANTS)).jobs) == len(made)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["fifo", "las", "srtf", "dally", "gandiva", "themis"])
def test_the_wrapper_keeps_the_contract(host) -> None:
    check_policy(lambda: open_policy(f"quota({host})", {}))


def starts(policy: str, made: list, tenants: dict[str, Tenant]) -> dict[str, list[float]]:
    """When each job got GPUs, on one machine of 8."""
    tree = cluster([8])
    simulator = Simulator(tree, made, LevelRates(tree), check=True)
    rows = simulator.run(open_policy(policy, {}, FIRST_DRAWS, tenants))
    begun: dict[str, list[float]] = {one.id: [] for one in made}
    for row in sorted(rows.placements, key=lambda x: x.start):
        begun[made[row.handle].id].append(seconds(row.start))
    return begun


@pytest.mark.parametrize("policy", ["quota(fifo)", "mast"])
def test_a_job_above_quota_is_preempted(policy) -> None:
    tenants = {"ads": Tenant(quota=4), "web": Tenant(quota=4)}
    made = [
        job("within", 4, 100, tenant="ads"),
        job("above", 4, 100, tenant="ads"),
        job("late", 4, 100, arrival_s=10.0, tenant="web"),
    ]
    begun = starts(policy, made, tenants)
    assert begun["within"] == [0.0]
    assert begun["late"] == pytest.approx([10.0], abs=1e-8)
    assert begun["above"] == pytest.approx([0.0, 100.0], abs=1e-8)


@pytest.mark.parametrize("policy", ["quota(fifo)", "mast"])
def test_an_urgent_job_takes_gpus_from_the_least_urgent(policy) -> None:
    made = [
        job("three", 4, 100, priority=3),
        job("five", 4, 100, priority=5),
        job("one", 4, 100, arrival_s=10.0, priority=1),
        job("four", 4, 50, arrival_s=20.0, priority=4),
    ]
    begun = starts(policy, made, {})
    assert begun["one"] == pytest.approx([10.0], abs=1e-8)
    assert begun["three"] == [0.0]
    assert begun["five"] == pytest.approx([0.0, 110.0], abs=1e-8)
    assert begun["four"] == pytest.approx([100.0], abs=1e-8)


def test_a_reservation_counts_on_the_end_of_a_job_that_has_just_started() -> None:
    # urgent gets the GPUs of spare and keeps them while long, above its quota, is offered the rest.
    made = [
        job("spare", 8, 1000, tenant="web", priority=4),
        job("urgent", 6, 100, arrival_s=10.0, tenant="one", priority=1),
        job("head", 8, 100, arrival_s=10.0, tenant="two", priority=1),
        job("long", 1, 1000, arrival_s=10.0, tenant="web", priority=1),
    ]
    tenants = {"web": Tenant(quota=0), "one": Tenant(quota=6), "two": Tenant(quota=8)}
    begun = starts("quota(easy)", made, tenants)
    assert begun["urgent"] == pytest.approx([10.0], abs=1e-8)
    assert begun["head"] == pytest.approx([110.0], abs=1e-8)
    assert begun["long"][0] > 200


@pytest.mark.parametrize("policy", ["quota(fifo)", "mast"])
def test_few_jobs_are_preempted(policy) -> None:
    """Of 1, 2 and 5 GPUs that would be preempted in this order, the 5 suffice for a job of 5."""
    made = [
        job("one", 1, 100, priority=7),
        job("two", 2, 100, arrival_s=1.0, priority=7),
        job("five", 5, 100, arrival_s=2.0, priority=7),
        job("urgent", 5, 10, arrival_s=3.0, priority=1),
    ]
    begun = starts(policy, made, {})
    assert len(begun["one"]) == len(begun["two"]) == 1
    assert begun["five"] == pytest.approx([2.0, 13.0], abs=1e-8)


def test_a_job_preempts_only_later_classes_though_one_before_it_could_preempt_more() -> None:
    # three alone is too small for two, and of an earlier class than four.
    made = [
        job("one", 4, 100, priority=1),
        job("three", 4, 100, priority=3),
        job("two", 8, 10, arrival_s=10.0, priority=2),
        job("four", 4, 10, arrival_s=10.0, priority=4),
    ]
    begun = starts("quota(fifo-backfill)", made, {})
    assert begun["three"] == [0.0]
    assert begun["two"] == pytest.approx([100.0], abs=1e-8)
    assert begun["four"] == pytest.approx([110.0], abs=1e-8)


ONE_GPU = Placement((0,), (1,))
UNLAWFUL = [
    Start(0.0, ONE_GPU),  # type: ignore[arg-type]
    Start(7, ONE_GPU),
    Start(0, None),  # type: ignore[arg-type]
    Start(0, Placement((0,), (1.5,))),  # type: ignore[arg-type]
    Preempt(0),
    Migrate(7, ONE_GPU),
    Hold(0.5, 1),  # type: ignore[arg-type]
    Wait("0", "no reason"),  # type: ignore[arg-type]
    "no decision",
]


class Answers(BasePolicy):
    """Gives one answer to every question."""

    def __init__(self, *decisions: Any) -> None:
        self.decisions = list(decisions)

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        return self.decisions


@pytest.mark.parametrize(
    "decisions", [[x] for x in UNLAWFUL] + [[Start(0, ONE_GPU), Start(0, ONE_GPU)]], ids=str
)
def test_the_engine_reports_what_is_wrong_with_a_hosts_answer(decisions) -> None:
    tree = cluster([8])
    said = []
    for policy in (Answers(*decisions), QuotaWrapper(QuotaWrapper.Options(), Answers(*decisions))):
        with pytest.raises(PolicyError) as caught:
            Simulator(tree, [job("one", 1)], LevelRates(tree)).run(policy)
        said.append(str(caught.value).replace("QuotaWrapper", "Answers"))
    assert said[0] == said[1]


@pytest.mark.parametrize("host", ["srsf", "srtf"])
@pytest.mark.parametrize("restart_s", [0.0, 250.0, 400.0])
def test_a_host_preempts_no_job_for_one_of_a_later_class(host, restart_s) -> None:
    """The host once did so for shorter jobs; the quota took the GPUs back a nanosecond later."""
    made = [
        job("urgent", 8, 300, priority=3, restart_s=restart_s),
        *(
            job(f"short{x}", 8, 5, arrival_s=10.0 * x, priority=4, restart_s=restart_s)
            for x in (1, 2, 3)
        ),
    ]
    begun = starts(f"quota({host})", made, {})
    assert begun["urgent"] == [0.0]
    assert begun["short1"] == [300.0]


def test_a_host_preempts_for_jobs_of_the_same_class() -> None:
    made = [job("long", 8, 300, priority=3), job("short", 8, 5, arrival_s=10.0, priority=3)]
    assert starts("quota(srsf)", made, {}) == {"long": [0.0, 15.0], "short": [10.0]}


@pytest.mark.parametrize("host", ["quota(fifo)", "mast", "random-placement(quota(las))"])
def test_quotas_hold_once(host) -> None:
    with pytest.raises(ConfigError, match=r"^policy quota: .* has quotas and priorities already"):
        open_policy(f"quota({host})", {}, FIRST_DRAWS, TENANTS)


class Tries(BasePolicy):
    """Starts all jobs that fit, and tries at every question what no decision would lead to."""

    def __init__(self) -> None:
        self.host = open_policy("fifo", {})
        self.tried: list[tuple[set[int], set[int]]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        answer = self.host.decide(view)
        seen = {*view.waiting, *view.running}
        self.tried.append((seen, set(view.what_if(answer, self.host))))
        return answer


def test_trials_of_a_host_have_the_jobs_that_it_sees() -> None:
    host = Tries()
    made = [job("a", 4, 10, tenant="ads"), job("b", 8, 10, tenant="ads"), job("c", 4, 10)]
    tree = cluster([8])
    Simulator(tree, made, LevelRates(tree)).run(
        QuotaWrapper(QuotaWrapper.Options(), host, tenants={"ads": Tenant(quota=4)})
    )
    assert all(seen == tried for seen, tried in host.tried)
    assert host.tried[0][0] == {0, 2}


def test_a_running_job_above_quota_has_its_own_class_once_the_quota_covers_it() -> None:
    """The first job has ended when `other`, of a later class than `second`, wants its GPUs."""
    tenants = {"ads": Tenant(quota=4), "web": Tenant(quota=4)}
    made = [
        job("first", 4, 10, tenant="ads", priority=2),
        job("second", 4, 300, tenant="ads", priority=2),
        job("third", 4, 300, arrival_s=11.0),
        job("other", 4, 100, arrival_s=20.0, tenant="web", priority=5),
    ]
    begun = starts("quota(fifo)", made, tenants)
    assert begun["second"] == [0.0]
    assert begun["other"] == pytest.approx([20.0], abs=1e-8)
