"""Are leases, offers and batches those of the original's allocator? Worked out by hand."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import pytest
from support import Outage, S, cluster, on, simulator

from artist.cluster.placement import Placement
from artist.cluster.tree import regular
from artist.contract import Restore, Withdraw
from artist.engine.simulator import Simulator
from artist.errors import ConfigError, PolicyError
from artist.estimates.query import Estimate
from artist.network.rates.isolated import AloneRates
from artist.run import open_policy
from artist.testing import check_policy
from artist.units import seconds
from artist.workload.job import Job
from validation.original.scheduler import OriginalScheduler

FILE = Path(__file__).parents[2] / "validation" / "original" / "policies.py"
OPTIONS = {"lease_s": 100.0, "granularity": 10}
NAMES = ("Dally", "DallyManual", "DallyNoWait", "DallyFullyConsolidated", "Tiresias")


def original(name: str = "Dally", **options: object) -> OriginalScheduler:
    """A policy by its name on the command line."""
    return open_policy(f"{FILE}:{name}", {**OPTIONS, **options})


def simulator_of(jobs: list[Job], gpus: int = 8, **sizes: int) -> Simulator:
    """A run on one machine, or on `racks` and `machines_per_rack`, without communication."""
    sizes = {"racks": 1, "machines_per_rack": 1, "gpus_per_socket": 4, **sizes}
    tree = regular(gpus_per_machine=gpus, **sizes)
    rates = AloneRates(tree, lambda model, shape: Estimate(1000, 1000, "hand"))
    return Simulator(tree, jobs, rates, check=True)


def run(jobs: list[Job], gpus: int) -> Mapping[str, tuple]:
    """Name to (start, finish, preemptions) on one machine, in seconds."""
    rows = simulator_of(jobs, gpus).run(original())
    return {
        row.job.id: (seconds(row.start), seconds(row.finish), row.preemptions) for row in rows.jobs
    }


def job(name: str, gpus: int, iterations: int, compute_s: float = 1.0, arrival_s: float = 0) -> Job:
    return Job(name, arrival_s, gpus, "any", iterations, compute_s)


def test_job_alone_waits_for_the_offer_of_its_own_gpus() -> None:
    assert run([job("a", 8, 200)], gpus=8) == {"a": (0, 208, 1)}


def test_job_that_gets_its_own_gpus_back_at_once_does_not_stop() -> None:
    assert run([job("a", 1, 60, 3.0)], gpus=1) == {"a": (0, 180, 0)}


def test_arrival_is_offered_free_gpus_at_once() -> None:
    times = run([job("a", 4, 10), job("b", 4, 10, arrival_s=3.0)], gpus=8)
    assert times["b"] == (3, 13, 0)


def test_arrival_does_not_take_gpus_before_their_offer_unless_some_are_free() -> None:
    # a finishes at 10 s. c arrives at 12 s, finds free GPUs (a's) and takes them; had it
    # arrived while none was free it would have waited for the offer at 18 s.
    times = run([job("a", 8, 10), job("c", 8, 10, arrival_s=12.0)], gpus=8)
    assert times["c"] == (12, 22, 0)
    times = run([job("a", 8, 10), job("c", 8, 10, arrival_s=9.0)], gpus=8)
    assert times["c"] == (18, 28, 0)


def test_timer_is_looked_at_only_when_something_is_offered() -> None:
    # 3 GPUs of each machine are free. e wants 6: it would accept a rack from 150 s on. The first
    # offer before that is at 105 s, when the lease of a has expired: it has room for e.
    jobs = [job("a", 5, 600), job("b", 5, 600), job("e", 6, 10)]
    policy = original("DallyManual", machine_timer_s=150.0, rack_timer_s=1e6)
    rows = simulator_of(jobs, machines_per_rack=2, gpus_per_socket=8).run(policy)
    started = {row.job.id: seconds(row.start) for row in rows.jobs}
    assert started["e"] == 105.0  # a's machine is free from 100 s, and offered at 105 s
    assert policy.lease is None


def test_own_machine_order_or_a_seeded_one_decides_among_machines() -> None:
    def first(seed: int | None) -> Placement:
        engine = simulator_of([job("a", 8, 10)], racks=2, machines_per_rack=8)
        return engine.run(original(machine_order_seed=seed)).placements[0].placement

    assert first(None) == first(None)
    assert len({first(seed) for seed in range(8)}) > 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_policies_keep_the_contract(name: str) -> None:
    check_policy(lambda: original(name, lease_s=1000.0))


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_an_outage_hits_is_refused(name: str) -> None:
    policy = original(name)
    events = Outage(Withdraw(100 * S, on({0: 8})), Restore(200 * S, on({0: 8})))
    engine = simulator(cluster([8]), [job("a", 8, 1000)], events=events)
    with pytest.raises(PolicyError, match="job 'a' lost its GPUs in an outage; the original"):
        engine.run(policy)


def test_a_wrapper_that_draws_placements_refuses_them() -> None:
    with pytest.raises(ConfigError, match="keeps its own record of which job has"):
        open_policy(f"random-placement({FILE}:Dally)", {})


def test_copy_at_a_question_goes_on_to_the_same_rows() -> None:
    jobs = [job(str(i), 1 + i % 8, 10 * (1 + i % 7), arrival_s=5.0 * i) for i in range(30)]
    engine, policy = simulator_of(jobs, machines_per_rack=2), original()
    for _ in range(20):
        engine.answer(policy.decide(engine.next_question()))
    twin, its_policy = copy.deepcopy((engine, policy))
    assert twin.run(its_policy) == engine.run(policy)
