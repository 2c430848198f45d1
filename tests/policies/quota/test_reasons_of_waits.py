"""Is it true that a quota keeps a job waiting? Within its quota, the job starts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from quota_cases import TENANTS, jobs, tree
from support import cluster, interpreted, job, make_policy, questions, simulator

from artist.contract import Start, Wait
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.testing import LevelRates
from artist.units import seconds
from artist.workload.job import Job
from artist.workload.tenants import Tenant


@interpreted
@pytest.mark.parametrize("seed", range(4))
def test_within_its_quota_the_job_would_have_started(seed: int) -> None:
    made = QuotaWrapper(QueueOptions(), make_policy("fifo-backfill"), tenants=TENANTS)
    engine = simulator(tree(), jobs(seed, priorities=False), LevelRates(tree()))
    told = 0
    for view, before, answer in questions(engine, made):
        for wait in [x for x in answer if isinstance(x, Wait) and x.reason]:
            assert wait.cause == "quota"
            told += 1
            other: Any = copy.deepcopy(before)
            within(other, wait.handle)
            starts = {x.handle for x in other.decide(view) if isinstance(x, Start)}
            # Others lose GPUs for it, and a nanosecond later it gets them; or a mate in its place.
            mates = {x: entry.mates for x, entry in before._ledger.waiting.items()}
            served = starts | other._reserved_for
            assert wait.handle in served or mates[wait.handle] in {mates[x] for x in starts}
    assert told


def within(policy: Any, handle: int) -> None:
    """Let one job be within its tenant's quota from the next question on."""
    admission, ledger = policy._admission, policy._ledger
    admit = admission.admit

    def admits(free: int, reserved_for: Any) -> list[Any]:
        ledger.carry(handle, 0)
        return admit(free, reserved_for)

    admission.admit = admits


def test_a_quota_is_not_the_reason_any_more_once_a_job_may_run() -> None:
    made = QuotaWrapper(QueueOptions(), make_policy("dally"), tenants=TENANTS)
    engine = simulator(tree(), jobs(0), LevelRates(tree()))
    told: set[int] = set()
    for view, _, answer in questions(engine, made):
        for wait in [x for x in answer if isinstance(x, Wait)]:
            if wait.cause == "quota":
                told.add(wait.handle)
            else:  # the host's words come after those of the quota
                told.discard(wait.handle)
        told &= set(view.waiting) - {x.handle for x in answer if isinstance(x, Start)}
        assert told.isdisjoint(made._admission.seen)


def told(host: str, jobs: list[Job], tenants: dict[str, Tenant]) -> dict[str, list[Any]]:
    """Of each job, when which cause was told or taken back, and its words."""
    policy = QuotaWrapper(QueueOptions(), make_policy(host), tenants=tenants)
    tree = cluster([8])
    rows = simulator(tree, jobs).run(policy)
    found: dict[str, list[Any]] = {}
    for row in rows.wait_reasons:
        words = (seconds(row.tick), row.cause if row.reason else "", row.reason)
        found.setdefault(jobs[row.handle].id, []).append(words)
    return found


def test_jobs_of_later_classes_count_from_their_start_on() -> None:
    # large is above its quota of 4, and could take 8 GPUs from old and the two of next. While early
    # runs, which is more urgent, it could not.
    jobs = [
        job("old", 6, 1000, tenant="ads", priority=3),
        job("large", 8, 10, tenant="web", priority=3, arrival_s=10.0),
        job("early", 2, 100, tenant="lab", priority=1, arrival_s=30.0),
        job("next", 2, 800, tenant="lab", priority=5, arrival_s=40.0),
    ]
    tenants = {"ads": Tenant(quota=2), "web": Tenant(quota=4), "lab": Tenant(quota=2)}
    large = told("fifo", jobs, tenants)["large"]
    assert [x[:2] for x in large] == [(10.0, "quota"), (30.0, ""), (130.0, "quota")]


def test_a_job_within_quota_but_for_a_mate_waits_behind_that_one() -> None:
    # large never fits the quota of web, and small would, until large runs at 1000.
    jobs = [
        job("old", 6, 1000, tenant="ads", priority=3),
        job("large", 8, 1000, tenant="web", priority=3, arrival_s=10.0),
        job("small", 4, 100, tenant="web", priority=3, arrival_s=20.0),
    ]
    small = told("fifo", jobs, {"ads": Tenant(quota=4), "web": Tenant(quota=4)})["small"]
    assert [x[:2] for x in small] == [(20.0, "policy"), (1000.0, "quota")]
    assert small[0][2].startswith("a job before it was above their tenant's quota")


@pytest.mark.parametrize("host", ["fifo", "las"])
def test_a_job_without_a_tenant_is_not_above_the_quota_of_one(host: str) -> None:
    jobs = [
        job("old", 8, 1000, tenant="ads", priority=3),
        job("none", 2, 100, priority=2, arrival_s=50.0),
    ]
    ((at, cause, words),) = told(host, jobs, {"ads": Tenant(quota=6)})["none"]
    assert (at, cause) == (50.0, "quota")
    assert words.startswith("it has no tenant and hence no quota, so it could take no GPUs")
