"""Does the search wait where that is better, and only there? Worked by hand."""

from __future__ import annotations

import pytest
from failures.made import exponential, run_with_failures
from support import EstimateByLevel, cluster, finishes, job, make_policy, question, simulator

from artist.cluster.placement import Placement
from artist.contract import BasePolicy, ClusterView, Decision, Preempt, Start
from artist.engine.rows import Rows
from artist.errors import ConfigError
from artist.network.rates.isolated import AloneRates
from artist.policies.lookahead import Lookahead, LookaheadOptions
from artist.run import open_policy
from artist.testing import check_policy
from artist.workload.job import Job


def run(policy: str, jobs: list[Job], rack: float, **options: object) -> Rows:
    tree = cluster([4, 4])
    rates = AloneRates(tree, EstimateByLevel(tree, rack=rack))
    opened = open_policy(policy, options)
    lease_s = opened.lease and opened.lease / 1e9
    return simulator(tree, jobs, rates, lease_s=lease_s).run(opened)


# `a` and `b` leave one GPU in each machine. `w` starts on both, 1 + rack seconds an iteration, or
# waits until `a` ends at 10 and takes one second an iteration: 110. At rack = .1 both end at 110.
@pytest.mark.parametrize(
    ("rack", "alone", "searched"), [(3.0, 400.0, 110.0), (0.2, 120.0, 110.0), (0.1, 110.0, 110.0)]
)
def test_a_job_waits_for_one_machine_where_it_ends_sooner(rack, alone, searched) -> None:
    jobs = [job("a", 3, 10), job("b", 3, 500), job("w", 2, 100)]
    assert finishes(run("fifo", jobs, rack))["w"] == pytest.approx(alone)
    rows = run("lookahead(fifo)", jobs, rack)
    assert finishes(rows)["w"] == pytest.approx(searched)
    started = {row.job.id: row.start for row in rows.jobs}["w"]
    assert started == (0 if rack == 0.1 else 10_000_000_000)  # of equal ones the host's answer


def test_a_job_goes_on_waiting_as_long_as_that_is_better() -> None:
    # `s` comes at 2, a question: `w` is offered again, and left out again. FIFO gave the two
    # GPUs to `w`, so they are idle until the next question, at 10.
    jobs = [
        job("a", 3, 10),
        job("b", 3, 500),
        job("w", 2, 100),
        job("s", 1, 1, arrival_s=2.0),
    ]
    assert finishes(run("lookahead(fifo)", jobs, 3.0)) == {"a": 10, "b": 500, "s": 11, "w": 110}


def test_only_the_job_that_gains_by_waiting_waits() -> None:
    # Two jobs need both machines. Alone in the cluster, neither has anything to wait for.
    jobs = [job("v", 6, 10), job("w", 8, 10)]
    rows = run("lookahead(fifo)", jobs, 3.0)
    assert finishes(rows) == finishes(run("fifo", jobs, 3.0)) == {"v": 40.0, "w": 80.0}


@pytest.mark.parametrize("host", ["fifo", "srsf", "las"])
def test_lookahead_keeps_the_contract(host: str) -> None:
    check_policy(lambda: open_policy(f"lookahead({host})", {}))


def test_a_host_with_books_of_its_own_is_refused() -> None:
    class Bookkeeper(BasePolicy):
        remembers_placements = True

    with pytest.raises(ConfigError, match="lookahead: the policy inside keeps its own record"):
        Lookahead(LookaheadOptions(), Bookkeeper())


class Pushy(BasePolicy):
    """Starts jobs in one machine, but the one of two GPUs on both, in the place of the second."""

    def decide(self, view: ClusterView) -> list[Decision]:
        free, answer = list(view.free.leaves), list[Decision]()
        running = {state.job.id: handle for handle, state in view.running.items()}
        for handle, state in view.waiting.items():
            gpus = state.job.gpus
            leaf = next((leaf for leaf, count in enumerate(free) if count >= gpus), None)
            if leaf is not None:
                free[leaf] -= gpus
                answer.append(Start(handle, Placement.of({leaf: gpus})))
            elif gpus == 2 and "second" in running:
                answer.append(Preempt(running["second"]))
                answer.append(Start(handle, Placement.of({0: 1, 1: 1})))
        return answer


def test_a_start_that_is_left_out_costs_no_job_its_gpus() -> None:
    jobs = [job("first", 3, 500), job("second", 4, 10), job("w", 2, 100, arrival_s=1.0)]
    rates = AloneRates(cluster([4, 4]), EstimateByLevel(cluster([4, 4]), rack=3.0))
    host = simulator(cluster([4, 4]), jobs, rates).run(Pushy())
    assert finishes(host) == {"first": 500, "w": 401, "second": 410}
    searched = simulator(cluster([4, 4]), jobs, rates).run(Lookahead(LookaheadOptions(), Pushy()))
    assert finishes(searched) == {"first": 500, "second": 10, "w": 110}
    assert all(row.preemptions == 0 for row in searched.jobs)


def test_the_host_sees_once_that_a_job_left_out_waits_again() -> None:
    policy = make_policy("lookahead(srsf)")
    assert isinstance(policy, Lookahead)
    policy.left_out = (0,)
    sim = simulator(cluster([4]), [job("a", 2)])
    assert len(policy.decide(question(sim)._replace(entered=[]))) == 1
    assert policy.left_out == ()


def test_nothing_is_tried_while_gpus_are_out_of_service() -> None:
    """A copy of the run would wait for them forever: a job of all GPUs, and machines that fail."""
    tree = cluster([2, 2], [2, 2])
    jobs = [job(str(n), gpus=gpus, iterations=200) for n, gpus in enumerate((3, 3, 8, 3))]
    model = {"machine": exponential(300.0, 60.0)}
    policy = make_policy("lookahead(fifo)")
    rows, _ = run_with_failures(tree, jobs, model, policy=policy, interval_s=10.0)
    assert len(rows.jobs) == len(jobs)
