"""Is all GPU time accounted for, once, as what it was?"""

from __future__ import annotations

import numpy as np
import pytest

from artist.cluster.placement import Placement
from artist.config import Scenario
from artist.engine.rows import EndReason, JobRow, PlacementRow, Rows
from artist.io.shipped import resource
from artist.results.gpu_time import gpu_time, gpus_over_time
from artist.run import drive, prepare, simulate
from artist.units import TICKS_PER_S
from artist.workload.job import Job

ELASTIC = str(resource("traces", "tiny-elastic.parquet"))
RUNS = [
    Scenario(racks=1, machines_per_rack=4, jobs=60, policy="las", restart_s=120.0),
    Scenario(racks=2, machines_per_rack=2, jobs=60, policy="gandiva", restart_s=30.0),
    Scenario(racks=1, machines_per_rack=2, trace=ELASTIC, policy="themis"),
    Scenario(racks=1, jobs=60, policy="srtf", policy_options={"preemption": "at-once"}),
]


@pytest.fixture(params=RUNS, ids=lambda scenario: scenario.policy, scope="module")
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return request.param


def test_the_parts_add_up_to_what_was_allocated(scenario: Scenario) -> None:
    summary = simulate(scenario).summary
    parts = [summary[f"gpu_{part}_share"] for part in gpu_parts()]
    assert all(part >= 0 for part in parts)
    assert sum(parts) == pytest.approx(summary["gpu_allocated_share"], rel=1e-15)


def test_the_parts_add_up_at_every_instant_and_over_time(scenario: Scenario) -> None:
    result = simulate(scenario)
    timeline = result.tables["timeline"]
    parts = {part: np.asarray(timeline[f"gpus_{part}"]) for part in gpu_parts()}
    assert (sum(parts.values()) == timeline["gpus_held"]).all()
    length_s = np.diff(timeline["time_s"])
    available = result.summary["gpus"] * result.summary["makespan_s"]
    for part, gpus in parts.items():
        assert gpus.min() >= 0
        integral = np.sum(gpus[:-1] * length_s)
        expected = result.summary[f"gpu_{part}_share"]
        assert integral / available == pytest.approx(expected, rel=1e-9, abs=1e-15)


def test_the_computing_that_is_kept_is_the_work_of_the_trace(scenario: Scenario) -> None:
    prepared = prepare(scenario)
    drive(prepared)
    rows = prepared.simulator.rows
    work = sum(row.job.gpus * row.job.ideal_s for row in rows.jobs)
    # An elastic job's last iteration may be worth more than is left to do.
    assert gpu_time(rows).computing == pytest.approx(work, rel=1e-3)
    if scenario.policy == "srtf":  # it preempts amid iterations, the others at their ends
        assert gpu_time(rows).lost > 0


def test_losses_by_hand() -> None:
    # 2 GPUs, iterations of 4 s, 1 s computing. It runs 0-6, is held 6-9, runs 9-10 and is
    # preempted: the second iteration, 4-6 and 9-10, is lost.
    rows = rows_of((0, 6, 0, 0, EndReason.HELD), (6, 10, 3, 3, EndReason.PREEMPTED))
    used = gpu_time(rows)
    assert (used.computing, used.communicating, used.stalled, used.lost) == (2, 6, 6, 6)
    ticks, over = gpus_over_time(rows)
    assert (ticks / TICKS_PER_S).tolist() == [0, 4, 6, 9, 10]
    assert over.computing.tolist() == [0.5, 0, 0, 0, 0]
    assert over.communicating.tolist() == [1.5, 0, 0, 0, 0]
    assert over.lost.tolist() == [0, 2, 0, 2, 0]
    assert over.stalled.tolist() == [0, 0, 2, 0, 0]


def test_a_loss_does_not_reach_into_an_earlier_stay() -> None:
    rows = rows_of((0, 4, 0, 0, EndReason.LEASE_ENDED), (4, 5, 0, 3, EndReason.PREEMPTED))
    assert gpu_time(rows).lost == 2  # 2 GPUs for the one second of its own stay


def gpu_parts() -> tuple[str, ...]:
    return ("computing", "communicating", "stalled", "lost")


def rows_of(*intervals: tuple[int, int, int, int, EndReason]) -> Rows:
    """Intervals of one job: start, end, stalled, lost in seconds, and how it ended."""
    rows = Rows()
    job = Job("a", 0.0, 2, "m", 10, 1.0)
    rows.jobs.append(JobRow(job, 0, 0, 0, 0, 0, 0, 0))
    for start, end, stalled, lost, reason in intervals:
        ticks = [second * TICKS_PER_S for second in (start, end, stalled, lost)]
        rows.placements.append(
            PlacementRow(
                0, Placement((0,), (2,)), 0, ticks[0], ticks[1], 0, 4.0, 4.0, ticks[2], ticks[3],
                "hand", reason,
            )
        )  # fmt: skip
    return rows
