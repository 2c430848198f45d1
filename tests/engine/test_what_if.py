"""Does a trial tell what would happen, without the future, and without changing anything?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from support import Outage, cluster, finishes, job, make_policy, on, question, simulator

from artist.config import Scenario
from artist.contract import (
    ClusterView,
    Decision,
    Policy,
    Start,
    Withdraw,
    WrapperPolicy,
    nothing_to_try,
)
from artist.engine.simulator import Simulator
from artist.errors import InvariantError, PolicyError
from artist.estimates.cache import DiskStore
from artist.run import Prepared, prepare
from artist.units import TICKS_PER_S

JOBS = [job("a", 3, 10), job("b", 2, 20), job("c", 4, 5, arrival_s=4.0)]


class Asks(WrapperPolicy):
    """Answers as its host does, and keeps the result of a trial of each answer."""

    def __init__(self, host: Policy) -> None:
        super().__init__(host)
        self.told: list[dict[int, float]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        answer = super().decide(view)
        ends = view.what_if(answer, self.host)
        self.told.append({handle: tick / TICKS_PER_S for handle, tick in sorted(ends.items())})
        return answer


@pytest.mark.parametrize("name", ["fifo", "srsf", "las", "dally", "tiresias", "themis", "gandiva"])
def test_asking_changes_nothing_and_the_last_trial_comes_true(name: str) -> None:
    def run(policy: Policy) -> object:
        lease_s = policy.lease and policy.lease / TICKS_PER_S
        return simulator(cluster([4, 4]), JOBS, lease_s=lease_s).run(policy)

    asks = Asks(make_policy(name))
    rows = run(asks)
    assert rows == run(make_policy(name))
    present = [told for told in asks.told if 2 in told]
    names = {index: finishes(rows)[one.id] for index, one in enumerate(JOBS)}
    for told in present:  # all jobs have come: nothing is hidden any more
        assert told == {handle: names[handle] for handle in told}


def test_a_trial_knows_no_job_that_is_still_to_come() -> None:
    # With `c`, which takes all GPUs when it comes, SRSF would preempt `b` at 4.
    jobs = [job("b", 2, 20), job("c", 4, 5, arrival_s=4.0)]
    asks = Asks(make_policy("srsf"))
    rows = simulator(cluster([4]), jobs).run(asks)
    assert asks.told[0] == {0: 20.0}
    assert finishes(rows) == {"b": 25.0, "c": 9.0}


def test_a_trial_knows_no_outage_that_is_still_to_come() -> None:
    asks = Asks(make_policy("fifo"))
    events = Outage(Withdraw(5 * TICKS_PER_S, on({1: 4})))
    rows = simulator(cluster([4, 4]), [job("a", 4, 10), job("b", 4, 10)], events=events).run(asks)
    assert asks.told[0] == {0: 10.0, 1: 10.0}
    assert finishes(rows) == {"a": 10.0, "b": 15.0}  # five iterations are kept


SHARED_LINKS = Scenario(
    racks=2,
    machines_per_rack=2,
    gpus_per_machine=8,
    trace="synth:16:32:0.9",
    contention="mean",
    # Links that a few jobs fill.
    fabric_options={"rack": {"oversubscription": 16.0}},
    policy="srsf-threshold",
    seed=4,
)


def asked_in_a_run() -> tuple[Asks, Prepared]:
    prepared = prepare(SHARED_LINKS)
    asks = Asks(prepared.policy)
    prepared.simulator.run(asks)
    return asks, prepared


def test_trials_that_share_facts_give_the_results_of_separate_trials(monkeypatch) -> None:
    asks, _ = asked_in_a_run()
    monkeypatch.setattr(Simulator, "facts", lambda self: [self.tree])
    alone, _ = asked_in_a_run()
    assert asks.told == alone.told
    assert len(asks.told) > 16


def test_a_run_whose_estimates_are_kept_on_disk_can_be_copied(tmp_path: Path) -> None:
    store = DiskStore(tmp_path)
    prepared = prepare(SHARED_LINKS, store=store)
    asks = Asks(prepared.policy)
    prepared.simulator.run(asks)
    store.close()
    assert asks.told


def test_queries_of_trials_are_not_counted_as_queries_of_the_run() -> None:
    _, with_trials = asked_in_a_run()
    without = prepare(SHARED_LINKS)
    without.simulator.run(without.policy)
    counts = [(x.estimates.queries, x.estimates.distinct) for x in (with_trials, without)]
    assert counts[0] == counts[1]


def test_an_unlawful_answer_is_refused_and_changes_nothing() -> None:
    sim = simulator(cluster([4]), [job("a", 2)])
    view = question(sim)
    with pytest.raises(PolicyError, match="invalid decision of Classic"):
        view.what_if([Start(0, on({0: 5}))], make_policy("fifo"))
    with pytest.raises(PolicyError, match="left 1 job waiting"):
        view.what_if([], make_policy("fifo"))  # it has not heard of the job
    sim.answer([Start(0, on({0: 2}))])
    assert sim.next_question() is not None


def test_a_view_of_no_run_has_nothing_to_try() -> None:
    with pytest.raises(InvariantError, match="belongs to no run"):
        nothing_to_try([], make_policy("fifo"))
