"""Can a run with data be copied at a question, and is it the same whatever the visiting order?"""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest
from regions_and_tables import CLUSTER, DATA, HEADER

from artist.config import Scenario
from artist.engine.rows import Rows
from artist.run import prepare

TABLES = ("", "ads", "user", "logs", "ads logs")
ROWS = [f"j{i},{3 * i},{1 + i % 4},vgg11,{40 + 9 * i},1.0,{TABLES[i % 5]}" for i in range(20)]


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    (tmp_path / "mine.yaml").write_text(CLUSTER)
    (tmp_path / "data.csv").write_text(DATA)
    (tmp_path / "trace.csv").write_text(HEADER + "\n".join(ROWS) + "\n")
    return Scenario(
        cluster=str(tmp_path / "mine.yaml"),
        data=str(tmp_path / "data.csv"),
        trace=str(tmp_path / "trace.csv"),
        policy="las",
        backend="none",
    )


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
def test_a_copy_of_a_run_goes_on_as_the_run_does(scenario: Scenario, remote: str) -> None:
    one = scenario.model_copy(update={"data_options": {"remote": remote}})
    rows, others = _rows(one, copied=False), _rows(one, copied=True)
    assert rows.placements == others.placements
    assert rows.timeline == others.timeline


@pytest.mark.parametrize("permutation", range(1, 6))
def test_every_visiting_order_keeps_jobs_beside_their_data(
    scenario: Scenario, permutation: int
) -> None:
    _rows(scenario.model_copy(update={"permutation": permutation}), copied=False)
