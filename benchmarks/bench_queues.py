"""Times questions beside long queues: 200 of them, with 100 to 100,000 waiting jobs.

Divide the figures of one policy by each other: a policy that finds who can win by index takes about
as long beside 10,000 jobs as beside 100.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import POLICY_NAMES, synthetic

from artist.config import Scenario
from artist.garbage_collector import search_rarely
from artist.run import prepare
from artist.workload.tenants import Tenant

RACKS, RUNNING, QUESTIONS = 10, 400, 200
WAITING = (100, 1_000, 10_000, 100_000)
TENANTS, PRIORITIES = 8, 3

# These look at every waiting job. `conservative` reserves GPUs for each, which takes .9 s for 1,000
# and 41 s for 10,000. `sia` and `pollux` choose GPUs for all jobs together. The others rank all by
# rho, share time among all, or try all: at most .07 s a question beside 10,000.
MOST = {
    "conservative": 1_000,
    "pollux": 1_000,
    "sia": 1_000,
    "federated": 10_000,
    "gavel": 10_000,
    "gavel-ftf": 10_000,
    "gavel-makespan": 10_000,
    "lucid": 10_000,
    "mast": 10_000,
    "themis": 10_000,
}


@pytest.mark.parametrize("waiting", WAITING)
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


@pytest.mark.parametrize("waiting", [100, 1_000, 10_000])
@pytest.mark.parametrize("policy", ["quota(fifo)", "quota(las)", "quota(sjf)", "quota(dally)"])
def bench_queue_of_tenants(
    measure: Callable[..., None], traces: Path, policy: str, waiting: int
) -> None:
    """The same jobs of tenants whose quotas are together as large as the cluster."""
    path = synthetic(RUNNING + waiting, RACKS * 64, traces)
    owned = path.with_stem(f"{path.stem}-owned")
    if not owned.exists():
        header, *rows = path.read_text().splitlines()
        lines = [
            f"{row},team-{number % TENANTS},{1 + number % PRIORITIES}"
            for number, row in enumerate(rows)
        ]
        owned.write_text("\n".join([f"{header},tenant,priority", *lines, ""]))
    quotas = {f"team-{x}": Tenant(quota=RACKS * 64 // TENANTS) for x in range(TENANTS)}
    measure(prepare=lambda: questions(owned, policy, quotas), rounds=1, items=QUESTIONS)


def questions(
    trace: Path, policy: str, tenants: dict[str, Tenant] | None = None
) -> Callable[[], None]:
    """A function that answers the questions after the first, at which the cluster fills."""
    scenario = Scenario(
        trace=str(trace),
        racks=RACKS,
        policy=policy,
        backend="none",
        arrivals="batch",
        tenants=tenants,
    )
    prepared = prepare(scenario)
    search_rarely()  # as `Simulator.run` does

    def answer(count: int) -> None:
        for _ in range(count):
            view = prepared.simulator.next_question(prepared.policy)
            if view is None:
                return
            prepared.simulator.answer(prepared.policy.decide(view))

    answer(1)
    return lambda: answer(QUESTIONS)
