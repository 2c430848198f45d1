"""Does the table say of each policy whether it knows how long jobs will run?"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support import SELF_SUFFICIENT, cluster, job

from artist.contract import ClusterView, Decision, Wait
from artist.engine.simulator import Simulator
from artist.policies.run_times import knows_run_times
from artist.run import open_policy
from artist.testing import LevelRates
from artist.units import ticks

LOOKED_AT = ticks(100_000)
"""No job finishes before it, and several leases end."""

RISING = [2**17, 2**18, 2**19, 2**20, 2**21, 2**22]
"""Iterations of 1 s; in the second trace their order is the opposite."""


class Recorded:
    """Notes the decisions of a policy, the words of `Wait` apart."""

    def __init__(self, name: str) -> None:
        self._policy = open_policy(name, {})
        self.lease = self._policy.lease
        self.tables = self._policy.tables
        self.contests = self._policy.contests
        self.noted: list[tuple[int, list[Decision]]] = []

    def decide(self, view: ClusterView) -> Sequence[Decision]:
        answer = list(self._policy.decide(view))
        told = [one for one in answer if not isinstance(one, Wait)]
        if told and view.now < LOOKED_AT:
            self.noted.append((view.now, told))
        return answer


def decisions(name: str, iterations: Sequence[int]) -> list[tuple[int, list[Decision]]]:
    """What the policy decides before any job of these lengths has finished."""
    tree = cluster([4, 4])
    jobs = [
        job(f"j{index}", gpus=(4, 8, 2)[index % 3], iterations=count, compute_s=1.0)
        for index, count in enumerate(iterations)
    ]
    policy = Recorded(name)
    Simulator(tree, jobs, LevelRates(tree), lease=policy.lease).run(policy)
    return policy.noted


# Finish-time fairness is a ratio of two run times: at the arrival of a job its length cancels.
# Optimus looks at what is left of elastic jobs only.
BY_LENGTH_LATER = ("gavel-ftf", "optimus")


@pytest.mark.parametrize("name", SELF_SUFFICIENT)
def test_only_policies_that_know_run_times_decide_by_them(name: str) -> None:
    differ = decisions(name, RISING) != decisions(name, RISING[::-1])
    assert differ == (knows_run_times(name) and name not in BY_LENGTH_LATER)


def test_a_wrapper_knows_what_the_policy_inside_knows(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "from artist.contract import BasePolicy, WrapperPolicy\n"
        "class Plain(BasePolicy):\n    def decide(self, view): return ()\n"
        "class Oracle(Plain):\n    knows_run_times = True\n"
        "class Quota(WrapperPolicy): pass\n"
    )
    assert not knows_run_times("own.py:Plain")
    assert knows_run_times("own.py:Oracle")
    assert knows_run_times("own.py:Quota(srtf)")
    assert not knows_run_times("own.py:Quota(own.py:Quota(las))")
