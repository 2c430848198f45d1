"""What happens to moves to regions without data, whatever the policy gives others meanwhile?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from regions_and_tables import times
from support import SELF_SUFFICIENT

from artist.results.result import Result

Run = Callable[..., Result]

MOVES = """
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, Migrate, Options, Start


class Moves(BasePolicy):
    def decide(self, view):
        if view.now == 10 * 10**9:
            start = [Start(1, Placement((0,), (4,)))] if TAKES else []
            return [Migrate(0, Placement((1,), (4,))), *start]
        return [Start(handle, Placement((0,), (4,))) for handle in list(view.waiting)[:1]
                if not view.running]
"""
"""At 10 s the first job is to move from region east to west, where its table is not."""


@pytest.mark.parametrize("takes", [True, False])
def test_a_move_away_from_data_costs_the_job_its_gpus_only_if_others_get_them(
    run: Run, tmp_path: Path, takes: bool
) -> None:
    file = tmp_path / "moves.py"
    file.write_text(MOVES.replace("TAKES", str(takes)), encoding="utf-8")
    result = run("a,0,4,any,30,1.0,ads", "b,10,4,any,5,1.0,", policy=f"{file}:Moves")
    finish = times(result, "finish_s")
    assert finish == ({"a": 35.0, "b": 15.0} if takes else {"a": 30.0, "b": 35.0})
    assert result.summary["preemptions"] == int(takes)


POLICIES = [
    *SELF_SUFFICIENT,
    "rl-base",
    "rl-hybrid",
    "quota(srsf)",
    "lookahead(srsf)",
    "cassini(las)",
]


def finished(run: Run, folder: Path, policy: str, seed: int) -> int:
    """Jobs that finish where machines fail, are announced to leave, and data is elsewhere."""
    draw = Random(seed)
    tables = ("", "ads", "user", "logs", "ads logs")
    made = [(draw.randint(0, 60), draw.choice([1, 2, 3, 4, 6, 8])) for _ in range(14)]
    rows = [
        f"j{index},{arrival_s},{gpus},vgg11,{draw.randint(10, 4000)},1.0,{draw.choice(tables)}"
        for index, (arrival_s, gpus) in enumerate(sorted(made))
    ]
    model = folder / "failures.yaml"
    model.write_text(
        "machine: {distribution: exponential, mtbf_s: 3000, repair_s: 60}\n"
        "maintenance:\n"
        "  - {kind: machine, unit: 1, at_s: 900, duration_s: 100, notice_s: 600}\n",
        encoding="utf-8",
    )
    result = run(*rows, policy=policy, failures=str(model), seed=seed)
    return int(result.summary["jobs_finished"])


@pytest.mark.parametrize("policy", ["dally", "srsf", "gandiva", "rl-hybrid", "quota(srsf)"])
def test_policies_that_move_jobs_finish_them_on_data_under_failures_and_notices(
    run: Run, tmp_path: Path, policy: str
) -> None:
    assert finished(run, tmp_path, policy, 1) == 14


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_finishes_its_jobs_on_data_under_failures_and_notices(
    run: Run, tmp_path: Path, policy: str
) -> None:
    assert all(finished(run, tmp_path, policy, seed) == 14 for seed in range(12))
