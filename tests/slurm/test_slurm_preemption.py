"""Jobs that lose their GPUs under Slurm: requeued, cancelled, with a grace, or not at all.

Schedules are worked out by hand from slurm.conf(5), or were recorded from slurmctld 22.05.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from support import cluster, make_policy, run
from test_slurm_policy import TWO, asked

from artist.engine.rows import Rows
from artist.policies.slurm.options import SlurmOptions
from artist.policies.slurm.policy import Slurm
from artist.results.caveats import cancelled_sentence
from artist.results.metrics import summarise
from artist.results.tables import finished_jobs, job_table, timeline_table
from artist.rng import Draws
from artist.units import seconds
from artist.workload.job import Job

# What the recorded Slurm had: its schedulers looked every 5 s.
SETTINGS = {
    "SchedulerParameters": "bf_interval=5,bf_resolution=1,batch_sched_delay=1,sched_interval=5",
    "PreemptType": "preempt/qos",
    "PreemptMode": "CANCEL",
    "KillWait": "5 sec",
    "MessageTimeout": "10 sec",
}


def qos(**low: Any) -> list[dict[str, Any]]:
    return [
        {"name": "high", "priority": 100, "preempts": ["low"]},
        {"name": "low", "priority": 10, **low},
    ]


def simulated(jobs: list[Job], settings: dict[str, str] | None = None, **low: Any) -> Rows:
    facts = {"settings": {**SETTINGS, **(settings or {})}, "qos": qos(**low)}
    return run(cluster([8]), jobs, make_policy("slurm", facts=facts))


def told(rows: Rows) -> dict[str, list[tuple[float, float, str]]]:
    """Of each job the start and the end of its stays in seconds, and how they ended."""
    found: dict[str, list[tuple[float, float, str]]] = {}
    names = {row.handle: row.job.id for row in rows.jobs}
    for row in rows.placements:
        stay = seconds(row.start), seconds(row.end), row.ended
        found.setdefault(names[row.handle], []).append(stay)
    return found


def victim_and_urgent(run_s: int = 300) -> list[Job]:
    victim = asked("victim", 8, run_s, 10, qos="low")
    return [victim, asked("urgent", 8, 10, 10, arrival_s=12.0, qos="high")]


def test_a_cancelled_job_ends_and_is_not_counted_as_finished() -> None:
    rows = simulated(victim_and_urgent())
    assert told(rows) == {
        "victim": [(0.5, 12.5, "cancelled: by Slurm for job urgent")],
        "urgent": [(12.5, 22.5, "finished")],
    }
    assert {row.job.id: row.cancelled for row in rows.jobs} == {"victim": True, "urgent": False}


def test_means_leave_out_a_cancelled_job() -> None:
    rows = simulated(victim_and_urgent())
    jobs, tree = job_table(rows), cluster([8])
    summary = summarise(rows, tree, jobs, timeline_table(rows, tree), len(rows.jobs))
    # `urgent` arrives at 12 s, runs from 12.5 to 22.5 s; the victim did 12 of its 300 iterations.
    assert (summary["jobs_finished"], summary["jobs_cancelled"]) == (1, 1)
    assert (summary["jct_mean_s"], summary["makespan_s"]) == (10.5, 22.5)
    assert summary["finish_time_fairness_max"] == pytest.approx(1.05)
    assert (jobs["cancelled"].tolist(), jobs["iterations"].tolist()) == ([1, 0], [12, 10])
    assert finished_jobs(jobs)["job_id"] == ["urgent"]
    assert "2 jobs were cancelled" in cancelled_sentence([summary, summary, {}])
    kept = simulated(victim_and_urgent(), {"PreemptMode": "REQUEUE"})
    assert "cancelled" not in job_table(kept)


@pytest.mark.parametrize(
    ("settings", "low", "ended"),
    [
        ({}, {"preempt_mode": "requeue"}, "preempted: requeued by Slurm for job urgent"),
        ({"PreemptMode": "REQUEUE"}, {}, "preempted: requeued by Slurm for job urgent"),
        ({}, {"preempt_mode": "CLUSTER"}, "cancelled: by Slurm for job urgent"),
        ({"PreemptMode": "Requeue"}, {"preempt_mode": "Cluster"}, "preempted: requeued by Slurm"),
        ({"PreemptMode": "REQUEUE", "JobRequeue": "0"}, {}, "cancelled: by Slurm for job urgent"),
        ({"PreemptMode": "GANG,SUSPEND"}, {"preempt_mode": "cancel"}, "cancelled: by Slurm for"),
        ({"PreemptMode": "GANG,SUSPEND"}, {}, "finished"),
        ({}, {"preempt_mode": "suspend"}, "finished"),
        ({}, {"preempt_mode": "off"}, "finished"),
    ],
)
def test_what_becomes_of_a_job_is_its_qos_mode_or_the_clusters(
    settings: dict[str, str], low: dict[str, Any], ended: str
) -> None:
    stays = told(simulated(victim_and_urgent(), settings, **low))
    assert stays["victim"][0][2].startswith(ended)
    # Suspended jobs keep their GPUs, so none is suspended, and `urgent` waits for the end.
    assert (stays["urgent"][0][0] >= 300.5) == (ended == "finished")


@pytest.mark.parametrize(
    ("default", "own", "ended"),
    [
        # slurmctld 22.05: "preempted JobId=1 had to be killed" of the first, and of one of salloc;
        # "JobId=2 has been requeued" of the second.
        ("1", "0", "cancelled"),
        ("1", "1", "preempted"),
        ("0", "1", "preempted"),
        ("0", "0", "cancelled"),
        ("1", "", "preempted"),
        ("0", "", "cancelled"),
    ],
)
def test_a_job_says_itself_whether_it_is_requeued(default: str, own: str, ended: str) -> None:
    _, urgent = victim_and_urgent()
    victim = asked("victim", 8, 300, 10, qos="low", requeue=own)
    settings = {"PreemptMode": "REQUEUE", "JobRequeue": default}
    rows = simulated([victim, urgent], settings)
    assert told(rows)["victim"][0][2].startswith(ended)
    assert {row.job.id: row.cancelled for row in rows.jobs}["victim"] == (ended == "cancelled")


def test_a_grace_ends_at_a_try_of_the_job_that_wants_the_gpus() -> None:
    rows = simulated(victim_and_urgent(), grace_s=20)
    # Told at 12.5 s, so the grace is over at 32 s. KillWait and MessageTimeout are 15 s: tries at
    # 12.5, 30.5 (27.5 is no pass) and 45.5 s; but at 60.5 s slurmctld would look itself.
    (victim,), (urgent,) = told(rows).values()
    assert victim == (0.5, 45.5, "cancelled: by Slurm for job urgent, after 20 s of grace")
    assert urgent[:2] == (45.5, 55.5)
    reasons = {row.reason for row in rows.wait_reasons}
    assert reasons == {"Resources: the jobs that it preempts have a grace"}


def test_a_job_that_ends_within_its_grace_has_finished() -> None:
    stays = told(simulated(victim_and_urgent(run_s=21), grace_s=60))
    assert stays["victim"] == [(0.5, 21.5, "finished")]
    assert 21.5 < stays["urgent"][0][0] <= 25.5


def test_a_job_outstays_its_grace_by_half_a_minute_at_most() -> None:
    # The tries are an hour apart, so slurmctld's own look, every 30 s, comes first.
    stays = told(simulated(victim_and_urgent(), {"KillWait": "3600 sec"}, grace_s=20))
    assert stays["victim"][0][1] == 60.5
    assert stays["urgent"][0][0] <= 66.0


def test_a_job_that_waits_for_the_start_of_another_may_take_its_place() -> None:
    jobs = [
        asked("victim", 8, 300, 10, qos="low", job_number=7),
        asked("urgent", 8, 10, 10, arrival_s=12.0, qos="high", dependency="after:7"),
    ]
    stays = told(simulated(jobs, {"KillWait": "3600 sec"}, grace_s=20))
    assert stays["victim"][0][1] == stays["urgent"][0][0] == 60.5


def test_a_partition_has_a_grace_where_partitions_preempt() -> None:
    settings = {**SETTINGS, "PreemptType": "preempt/partition_prio"}
    partitions = [
        {
            "name": "day",
            "nodes": "ALL",
            "default": True,
            "preempt_mode": "REQUEUE",
            "grace_s": 20,
        },
        {"name": "now", "nodes": "ALL", "priority_tier": 2},
    ]
    jobs = [asked("a", 8, 300, 10), asked("b", 8, 10, 10, arrival_s=12.0, partition="now")]
    facts = {"settings": settings, "partitions": partitions}
    stays = told(run(cluster([8]), jobs, make_policy("slurm", facts=facts)))
    assert stays["a"][0][1:] == (
        45.5, "preempted: requeued by Slurm for job b, after 20 s of grace",
    )  # fmt: skip


def test_nobody_else_gets_the_gpus_that_a_job_waits_for() -> None:
    jobs = [
        asked("victim", 4, 300, 10, qos="low"),
        asked("urgent", 8, 10, 10, arrival_s=12.0, qos="high"),
        asked("small", 4, 10, 9, arrival_s=13.0, qos="low"),
    ]
    stays = told(simulated(jobs, grace_s=20))
    assert stays["urgent"][0][0] == 45.5
    assert stays["small"][0][0] >= 55.5


def test_a_qos_says_how_long_its_jobs_are_spared() -> None:
    jobs = victim_and_urgent()
    # Without an event in between: 60 s after its start at .5 s, at the next pass.
    assert told(simulated(jobs, exempt_s=60))["victim"][0][1] == 60.5
    spared = {"PreemptExemptTime": "00:05:00"}
    assert told(simulated(jobs, spared, exempt_s=60))["victim"][0][1] == 60.5
    assert told(simulated(jobs, spared))["victim"][0][1] == 300.5


PHASES = range(40)


def recorded(jobs: list[Job], low: dict[str, Any], job: str) -> tuple[float, float]:
    """The first and the last start of a job in many phases of Slurm's periods."""
    starts = []
    for phase in PHASES:
        facts = {"settings": SETTINGS, "qos": qos(**low)}
        policy = Slurm(SlurmOptions(facts=facts), Draws(1, phase))
        starts.append(told(run(cluster([8]), jobs, policy))[job][-1][0])
    return min(starts), max(starts)


@pytest.mark.parametrize(
    ("low", "urgent_s", "recorded_s"),
    [
        # Seconds after the first submission, as slurmctld 22.05 logged them: told at 13 s, tried
        # at 30 s and 45 s.
        ({"grace_s": 20}, 12.0, 45.0),
        ({"grace_s": 20, "preempt_mode": "requeue"}, 12.0, 46.0),
        ({"preempt_mode": "cancel"}, 10.0, 11.0),
        ({"preempt_mode": "cancel", "exempt_s": 60}, 10.0, 63.0),
        # GANG,SUSPEND: the other job ran for 60 s, and kept its GPUs.
        ({"preempt_mode": "suspend"}, 8.0, 61.0),
    ],
)
def test_starts_that_slurm_recorded_lie_in_the_envelope_of_phases(
    low: dict[str, Any], urgent_s: float, recorded_s: float
) -> None:
    run_s = 60 if low.get("preempt_mode") == "suspend" else 300
    jobs = [
        asked("victim", 8, run_s, 10, qos="low"),
        asked("urgent", 8, 10, 10, arrival_s=urgent_s, qos="high"),
    ]
    first, last = recorded(jobs, low, "urgent")
    # Slurm logs whole seconds, and takes up to one to start a job.
    assert first - 1 <= recorded_s <= last + 1


@pytest.mark.parametrize("mode", ["cancel", "requeue"])
def test_gpus_and_jobs_are_conserved(mode: str) -> None:
    draws, ended = np.random.default_rng(7), Counter[str]()
    for _ in range(20):
        jobs = [
            asked(
                f"j{n}", int(draws.integers(1, 9)), int(draws.integers(5, 200)), 10,
                arrival_s=float(10 * n), qos=str(draws.choice(["high", "low"])),
            )
            for n in range(25)
        ]  # fmt: skip
        facts = {"settings": SETTINGS, "qos": qos(preempt_mode=mode, grace_s=15)}
        rows = run(TWO, jobs, make_policy("slurm", facts=facts))  # which checks every invariant
        cancelled = [row for row in rows.jobs if row.cancelled]
        assert len(rows.jobs) == len(jobs)
        ended += Counter(row.ended.partition(":")[0] for row in rows.placements)
        assert all(row.job.hints["hint_qos"] == "low" for row in cancelled)
        ends = {row.handle: row.ended for row in rows.placements}
        for row in rows.jobs:
            assert ends[row.handle].startswith("cancelled" if row.cancelled else "finished")
    assert bool(ended["cancelled"]) == (mode == "cancel")
    assert bool(ended["preempted"]) == (mode == "requeue")
