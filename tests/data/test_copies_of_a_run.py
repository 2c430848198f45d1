"""Can a run with data be copied at a question, and is it the same whatever the visiting order?"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from regions_and_tables import scenario

from artist.config import Scenario
from artist.engine.rows import Rows
from artist.run import prepare

TABLES = ("", "ads", "user", "logs", "ads logs")
ROWS = [f"j{i},{3 * i},{1 + i % 4},vgg11,{40 + 9 * i},1.0,{TABLES[i % 5]}" for i in range(20)]


@pytest.fixture
def las(tmp_path: Path) -> Scenario:
    return scenario(tmp_path, *ROWS, policy="las")


def _rows(scenario: Scenario, *, copied: bool) -> Rows:
    prepared = prepare(scenario, check=True)
    simulator, policy = prepared.simulator, prepared.policy
    asked = 0
    while simulator.next_question(policy) is not None:
        asked += 1
        if copied and asked % 5 == 1:
            simulator, policy = copy.deepcopy((simulator, policy))
        elif copied and asked % 5 == 3:
            # In memory and our own: nothing is ever unpickled from outside.
            simulator, policy = pickle.loads(pickle.dumps((simulator, policy)))  # noqa: S301
        simulator.answer(policy.decide(simulator.view()))
    assert len(simulator.rows.jobs) == len(ROWS)
    return simulator.rows


@pytest.mark.parametrize("remote", ["refuse", "slow"])
def test_a_copy_of_a_run_goes_on_as_the_run_does(las: Scenario, remote: str) -> None:
    one = las.model_copy(update={"data_options": {"remote": remote}})
    rows, others = _rows(one, copied=False), _rows(one, copied=True)
    assert rows.placements == others.placements
    assert rows.timeline == others.timeline


@pytest.mark.parametrize("permutation", range(1, 6))
def test_every_visiting_order_keeps_jobs_with_their_data(las: Scenario, permutation: int) -> None:
    _rows(las.model_copy(update={"permutation": permutation}), copied=False)
