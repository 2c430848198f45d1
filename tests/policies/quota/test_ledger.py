"""Are credit, window and charges those of MAST's equations?"""

from __future__ import annotations

import numpy as np
import pytest
from support import S, job

from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.ledger import LAST_CLASS, NO_PRIORITY, Ledger, UsageWindow
from artist.policies.quota.options import QueueOptions
from artist.workload.tenants import Tenant


def test_the_window_is_the_integral_of_its_steps() -> None:
    rng = np.random.default_rng(1)
    window, gpus = UsageWindow(100), np.zeros(2000, int)
    changes = {int(t): int(rng.integers(-3, 6)) for t in sorted(rng.choice(1500, 60, False))}
    held = 0
    for tick in range(1500):
        if tick in changes:
            change = max(-held, changes[tick])
            held += change
            window.change(tick, change)
        gpus[tick] = held
        if tick % 37 == 0:
            assert window.gpu_ticks(tick) == gpus[max(0, tick - 100) : tick].sum()


def ledger(**options: float) -> HostLedger:
    """Two tenants with quotas of 8."""
    tenants = {"ads": Tenant(quota=8), "web": Tenant(quota=8, weight=3.0)}
    return HostLedger(tenants, QueueOptions(**options))


def credits_of(books: Ledger, now: int) -> dict[int, float]:
    """Credit by handle at a pass."""
    return {handle: -minus for minus, handle, _ in books.rank_all(now)}


def test_credit_grows_with_age_up_to_the_cap() -> None:
    books = ledger(age_cap_s=7200, fair_weight=0.0, age_weight=2.0)
    books.enter(0, job("a"), 0)
    for hours, credit in ((1, 2.0), (2, 4.0), (3, 4.0)):
        assert credits_of(books, hours * 3600 * S)[0] == pytest.approx(credit)


def test_credit_falls_with_use_over_weight() -> None:
    """`web` has three quarters of the weight; it used 4 GPUs of 8 that were used, `ads` 4."""
    books = ledger(age_weight=0.0, fair_weight=1.0, window_s=3600)
    for handle, tenant in enumerate(("ads", "web")):
        books.enter(handle, job(tenant, 4, tenant=tenant), 0)
        books.start(handle, 0)
    books.enter(2, job("x", tenant="ads"), 0)
    books.enter(3, job("y", tenant="web"), 0)
    credit = credits_of(books, 3600 * S)
    # Means: ads 4 over a quarter of 8 is twice its share, web 4 over three quarters is 2/3.
    assert credit[2] == pytest.approx(1 - 2.0)
    assert credit[3] == pytest.approx(1 - 2 / 3)


def test_a_pass_charges_in_the_order_of_credit() -> None:
    books = ledger(fair_weight=0.0)
    books.enter(0, job("young", 8, tenant="ads", priority=1), 20 * S)
    books.enter(1, job("old", 8, tenant="ads", priority=7), 10 * S)
    assert [books.waiting[x].rank for x in (0, 1)] == [1, LAST_CLASS]  # as they came
    books.rank_all(30 * S)
    assert [books.waiting[x].rank for x in (0, 1)] == [LAST_CLASS, 7]


def test_running_jobs_above_quota_count_against_it() -> None:
    books = ledger()
    books.enter(0, job("a", 16, tenant="ads"), 0)
    assert books.waiting[0].rank == LAST_CLASS
    books.start(0, 0)
    books.enter(1, job("b", 1, tenant="ads", priority=1), 0)
    assert books.waiting[1].rank == LAST_CLASS
    books.stop(0, S)
    books.promote(S)
    assert books.waiting[1].rank == 1


def test_without_quotas_no_job_is_above_one() -> None:
    books = Ledger({}, QueueOptions())
    books.enter(0, job("a", 1000, tenant="ads"), 0)
    books.enter(1, job("b", 1000, priority=2), 0)
    assert [books.waiting[x].rank for x in (0, 1)] == [NO_PRIORITY, 2]
    assert not books.waited


def test_a_job_without_a_tenant_is_above_quota_where_there_are_quotas() -> None:
    books = ledger()
    books.enter(0, job("a", priority=1), 0)
    assert books.waiting[0].rank == LAST_CLASS


def test_a_running_job_is_charged_for_the_gpus_that_it_has() -> None:
    books = ledger()
    for handle, gpus in enumerate((2, 2)):
        books.enter(handle, job(str(handle), 8, tenant="ads"), 0, gpus=gpus)
    assert books.room("ads") == 4
    books.start(0, 0)
    books.resize(0, 6, 10)
    assert (books.room("ads"), books.gpus_within) == (0, {("ads", NO_PRIORITY): 8})
    assert books._windows["ads"].gpu_ticks(20) == 10 * 2 + 10 * 6
    books.enter(2, job("2", 1, tenant="ads"), 20)
    assert not books.waiting[2].within
    books.resize(0, 5, 20)
    books.promote(20)
    assert books.waiting[2].within
    books.stop(0, 20)
    assert (books.room("ads"), books.gpus_within) == (5, {("ads", NO_PRIORITY): 3})


def test_a_running_job_above_quota_is_charged_for_the_gpus_that_it_has() -> None:
    books = ledger()
    books.enter(0, job("a", 9, tenant="ads"), 0, gpus=9)
    books.start(0, 0)
    books.resize(0, 10, 0)
    assert (books.room("ads"), books.gpus_within) == (-2, {})
    books.resize(0, 8, 0)
    books.promote(0)
    assert books.running[0].within and books.gpus_within == {("ads", NO_PRIORITY): 8}
