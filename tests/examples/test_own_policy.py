"""Does the example of a policy that asks for communication do what its page says?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import artist
from artist.run import open_policy
from artist.testing import check_policy

POLICY = f"{Path(__file__).parents[2] / 'examples/own-policy/compact.py'}:Compact"


def mean_jct_h(**settings: Any) -> float:
    scenario = artist.Scenario(
        policy=POLICY, jobs=60, racks=2, machines_per_rack=4, fabric="dally2025", **settings
    )
    return float(artist.simulate(scenario, cache=False).summary["jct_mean_s"]) / 3600


def test_the_policy_keeps_the_contract() -> None:
    check_policy(lambda: open_policy(POLICY, {}))


def test_keeping_communicating_jobs_compact_pays() -> None:
    assert mean_jct_h() == pytest.approx(21, abs=0.5)
    assert mean_jct_h(policy_options={"share": 0.99}) == pytest.approx(44, abs=0.5)


def test_without_communication_jobs_may_lie_anywhere() -> None:
    asked = {"backend": "none"}
    assert mean_jct_h(**asked) == mean_jct_h(policy_options={"share": 0.99}, **asked)
