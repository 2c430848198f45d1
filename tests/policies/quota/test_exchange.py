"""Does the host decide which of a tenant's jobs its quota serves?"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from quota_cases import TENANTS, jobs, run, tree
from support import S, cluster, job, on

from artist.contract import Start
from artist.engine.rows import PREEMPTED
from artist.engine.simulator import Simulator
from artist.policies.quota.exchange import Exchange
from artist.policies.quota.host_ledger import HostLedger
from artist.policies.quota.options import QueueOptions
from artist.policies.quota.wrapper import QuotaWrapper
from artist.rng import FIRST_DRAWS
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import Tick
from artist.workload.job import Job
from artist.workload.tenants import Tenant

HOSTS = ["fifo", "fifo-backfill", "sjf", "srsf", "srtf", "las", "tiresias", "dally", "gandiva"]
WHOLE = {"all": Tenant(quota=tree().gpus)}


def of_one_tenant(seed: int, count: int = 25) -> list[Job]:
    """Jobs of 1 to 8 GPUs that arrive within 50 minutes."""
    rng = np.random.default_rng(seed)
    return [
        job(
            str(index),
            int(2 ** rng.integers(0, 4)),
            int(rng.integers(1, 1500)),
            arrival_s=float(arrival_s),
            restart_s=float(rng.integers(0, 2) * 30),
            tenant="all",
        )
        for index, arrival_s in enumerate(np.sort(rng.integers(0, 3000, count)))
    ]


def placements(policy: str, made: list[Job], tenants: dict[str, Tenant]) -> list[Any]:
    """Every stay on GPUs."""
    rows = run(open_policy(policy, {}, FIRST_DRAWS, tenants), made, lambda _: None)
    return sorted((x.handle, x.start, x.end, x.reason) for x in rows.placements)


@pytest.mark.parametrize("host", HOSTS)
def test_a_quota_that_binds_no_job_changes_nothing(host: str) -> None:
    for seed in range(8):
        made = of_one_tenant(seed)
        assert placements(f"quota({host})", made, WHOLE) == placements(host, made, {})


def stays(
    policy: str, made: list[Job], tenants: dict[str, Tenant], gpus: int = 8
) -> dict[str, list[Any]]:
    """(start_s, end_s) of each job's stays on one machine."""
    here = cluster([gpus])
    chosen = open_policy(policy, {}, FIRST_DRAWS, tenants)
    asked = count()

    def ends(_: Simulator) -> None:
        assert next(asked) < 1000, "the run does not end"

    rows = Simulator(here, made, LevelRates(here), lease=chosen.lease, check=True).run(chosen, ends)
    found: dict[str, list[Any]] = {one.id: [] for one in made}
    for row in sorted(rows.placements, key=lambda x: x.start):
        found[made[row.handle].id].append((row.start / S, row.end / S))
    return found


def test_the_shorter_job_starts_first_under_sjf() -> None:
    """Quota: 100 s of `first`, then 10 s of `short`, then `long`, which came before it."""
    made = [
        job("first", 8, 100, tenant="a"),
        job("long", 8, 1000, arrival_s=1.0, tenant="a"),
        job("short", 8, 10, arrival_s=2.0, tenant="a"),
    ]
    assert stays("quota(sjf)", made, {"a": Tenant(quota=8)}) == {
        "first": [(0.0, 100.0)],
        "short": [(100.0, 110.0)],
        "long": [(110.0, 1110.0)],
    }


def test_a_host_may_preempt_a_job_within_quota_for_a_mate() -> None:
    made = [job("long", 4, 300, tenant="a"), job("short", 4, 5, arrival_s=10.0, tenant="a")]
    others = [job("other", 4, 300, tenant="b")]
    found = stays("quota(srsf)", [*made[:1], *others, *made[1:]],
                  {"a": Tenant(quota=4), "b": Tenant(quota=4)})  # fmt: skip
    assert found["short"] == [pytest.approx((10.0, 15.0), abs=1e-8)]
    assert found["other"] == [(0.0, 300.0)]  # its tenant's quota is its own


def test_no_job_gives_way_to_one_of_another_priority() -> None:
    """`short` would come first under sjf, and the quota is charged to `long`."""
    made = [
        job("first", 8, 100, tenant="a", priority=2),
        job("long", 8, 1000, arrival_s=1.0, tenant="a", priority=2),
        job("short", 8, 10, arrival_s=2.0, tenant="a", priority=3),
    ]
    found = stays("quota(sjf)", made, {"a": Tenant(quota=8)})
    assert found["long"] == [(100.0, 1100.0)]


@pytest.mark.parametrize("host", ["fifo-backfill", "las"])
def test_no_mate_starts_in_place_of_one_for_which_others_lose_gpus(host: str) -> None:
    # Of eight GPUs two are free. first needs two more, which fall to it from old, of a later class.
    # small would fit at once, but only in place of first.
    made = [
        job("old", 6, 1000, tenant="ads", priority=5),
        job("first", 4, 100, tenant="web", priority=3, arrival_s=10.0),
        job("small", 2, 50, tenant="web", priority=3, arrival_s=10.0),
    ]
    tenants = {"ads": Tenant(quota=4), "web": Tenant(quota=4)}
    found = stays(f"quota({host})", made, tenants)
    assert found["first"] == [(pytest.approx(10.0), pytest.approx(110.0))]


@pytest.mark.parametrize("tenants", [{}, {"a": Tenant(quota=4)}])
def test_the_host_chooses_which_mate_gets_the_gpus_that_others_lost(
    tenants: dict[str, Tenant],
) -> None:
    """`low` is preempted for `long`, which came first. The host takes `short`."""
    tenant = "a" if tenants else None
    made = [
        job("low", 4, 1000, tenant=tenant, priority=5),
        job("long", 4, 1000, arrival_s=1.0, tenant=tenant, priority=3),
        job("short", 4, 10, arrival_s=1.0, tenant=tenant, priority=3),
    ]
    found = stays("quota(sjf)", made, tenants, gpus=4)
    assert found["short"][0][0] < found["long"][0][0]


class Books:
    """Finds tenants whose jobs within quota have more GPUs than it, after an instant's end."""

    def __init__(self, policy: QuotaWrapper) -> None:
        self.policy = policy
        self.overbooked: list[tuple[Tick, str]] = []
        self.within = 0
        self._found: list[tuple[Tick, str]] = []

    def __call__(self, running: Simulator) -> None:
        """Look at the books after an answer."""
        self.overbooked += [x for x in self._found if running.now > x[0] + 1]
        self._found.clear()
        ledger = self.policy._ledger
        for name, tenant in TENANTS.items():
            gpus = sum(
                entry.gpus
                for entry in (*ledger.running.values(), *ledger.waiting.values())
                if entry.within and entry.tenant == name
            )
            self.within += gpus
            if gpus > tenant.quota:
                self._found.append((running.now, name))


@pytest.mark.parametrize("host", ["fifo", "sjf", "srtf", "las", "tiresias", "dally"])
@pytest.mark.parametrize("priorities", [True, False])
def test_no_more_jobs_are_within_a_quota_than_it_has_gpus_for(host: str, priorities: bool) -> None:
    for seed in range(6):
        policy: Any = open_policy(f"quota({host})", {}, FIRST_DRAWS, TENANTS)
        books = Books(policy)
        run(policy, jobs(seed, priorities=priorities), books)
        assert not books.overbooked
        assert books.within


def test_hosts_differ_under_quotas() -> None:
    made = jobs(5, priorities=False)
    found = {x: placements(f"quota({x})", made, TENANTS) for x in ("fifo", "sjf", "las")}
    assert found["sjf"] != found["fifo"]
    assert sum(x[3] == PREEMPTED for x in found["las"]) > 0


def test_a_start_that_falls_leaves_the_books_as_they_were() -> None:
    ledger = HostLedger({"ads": Tenant(quota=4)}, QueueOptions())
    for handle in (0, 1):
        ledger.enter(handle, job(str(handle), 4, 10, tenant="ads"), 0)
    ledger.rank_all(0)
    first, second = ledger.waiting[0], ledger.waiting[1]
    assert (first.within, second.within) == (True, False)
    for now in (1000, 2000):
        start = [Start(1, on({0: 4}))]
        exchange = Exchange(ledger, start, [0], now)
        assert exchange.carries(1, ())
        exchange.settle([], {1})
        exchange.commit()
        assert (first.within, first.within_since, second.within) == (True, 0, False)
        assert not ledger.waited
    exchange = Exchange(ledger, start, [0], 3000)
    assert exchange.carries(1, ())
    exchange.settle(start, ())
    exchange.commit()
    assert (first.within, second.within) == (False, True)
    assert [(x.handle, x.wait, x.started) for x in ledger.waited] == [(0, 3000, False)]
