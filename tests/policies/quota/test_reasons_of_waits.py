"""Is it true that a quota keeps a job waiting? Within its quota it starts then."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from quota_cases import TENANTS, jobs, tree
from support import interpreted, make_policy, questions, simulator

from artist.contract import Start, Wait
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.testing import LevelRates


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
            # Others lose GPUs for it, and a nanosecond later it gets them.
            assert wait.handle in starts | other._reserved_for
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
