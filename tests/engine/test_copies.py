"""Does a copy of a run in progress go on to the same rows?"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from support import EstimateByLevel, cluster, job, make_policy, simulator

from artist.config import Scenario
from artist.contract import BasePolicy
from artist.engine.simulator import Simulator
from artist.network.rates.isolated import AloneRates
from artist.run import prepare


def pickled(pair: Any) -> Any:
    return pickle.loads(pickle.dumps(pair))  # noqa: S301 - our own bytes


def fresh() -> tuple[Simulator, BasePolicy]:
    """Ten jobs that compete, are preempted, restart and finish on two small racks."""
    tree = cluster([4, 4], [4, 2])
    jobs = [
        job(f"j{n}", gpus=1 + n % 5, iterations=20 + 7 * n, arrival_s=3.0 * n, restart_s=2.0)
        for n in range(10)
    ]
    policy = make_policy("dally", lease_s=10.0, machine_timer_s=15.0, rack_timer_s=30.0)
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.3, network=0.8))
    return simulator(tree, jobs, rates, lease_s=10.0), policy


@pytest.mark.parametrize("duplicate", [copy.deepcopy, pickled])
def test_a_copy_taken_at_any_question_goes_on_to_the_same_rows(
    duplicate: Callable[[Any], Any],
) -> None:
    expected = Simulator.run(*fresh())
    assert sum(row.preemptions for row in expected.jobs) > 3
    engine, policy = fresh()
    questions = 0
    while (view := engine.next_question(policy)) is not None:
        assert Simulator.run(*duplicate((engine, policy))) == expected
        engine.answer(policy.decide(view))
        assert Simulator.run(*duplicate((engine, policy))) == expected  # and between questions
        questions += 1
    assert questions == expected.questions
    assert engine.rows == expected


def test_a_run_as_it_is_prepared_goes_on_after_pickling() -> None:
    scenario = Scenario(racks=1, trace="tiny-batch")
    prepared = prepare(scenario)
    engine, policy = prepared.simulator, prepared.policy
    for _ in range(5):
        view = engine.next_question(policy)
        assert view is not None
        engine.answer(policy.decide(view))
    assert engine.next_question(policy) is not None
    rows = Simulator.run(*pickled((engine, policy)))
    whole = prepare(scenario)
    assert rows == whole.simulator.run(whole.policy)


def test_two_runs_in_one_process_share_nothing() -> None:
    first, policy = fresh()
    first.next_question()
    expected = Simulator.run(*fresh())
    assert Simulator.run(*fresh()) == expected
    assert first.run(policy) == expected
