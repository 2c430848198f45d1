"""Times questions beside long queues: 200 of them, with 100, 1,000 and 10,000 waiting jobs.

Divide the figures of one policy by each other: a policy that finds who can win by index takes about
as long beside 10,000 jobs as beside 100.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import POLICY_NAMES, synthetic

from artist.config import Scenario
from artist.run import prepare

RACKS, RUNNING, QUESTIONS = 10, 400, 200

# These look at every waiting job, and take minutes beside more.
MOST = {
    "conservative": 100,
    "pollux": 100,
    "sia": 100,
    "easy": 1_000,
    "gavel-ftf": 1_000,
    "gavel-makespan": 1_000,
    "themis": 1_000,
}


@pytest.mark.parametrize("waiting", [100, 1_000, 10_000])
@pytest.mark.parametrize("policy", POLICY_NAMES)
def bench_queue(measure: Callable[..., None], traces: Path, policy: str, waiting: int) -> None:
    """Jobs that all come at once, on 640 GPUs."""
    if waiting > MOST.get(policy, waiting):
        pytest.skip(f"{policy} looks at every waiting job")
    if policy.startswith("rl-"):
        pytest.importorskip("torch")
    elif policy.startswith("gavel"):
        pytest.importorskip("scipy")
    path = synthetic(RUNNING + waiting, RACKS * 64, traces)
    measure(prepare=lambda: questions(path, policy), rounds=1, items=QUESTIONS)


def questions(trace: Path, policy: str) -> Callable[[], None]:
    """A function that answers the questions after the first, at which the cluster fills."""
    scenario = Scenario(
        trace=str(trace), racks=RACKS, policy=policy, backend="none", arrivals="batch"
    )
    prepared = prepare(scenario)

    def answer(count: int) -> None:
        for _ in range(count):
            view = prepared.simulator.next_question(prepared.policy)
            if view is None:
                return
            prepared.simulator.answer(prepared.policy.decide(view))

    answer(1)
    return lambda: answer(QUESTIONS)
