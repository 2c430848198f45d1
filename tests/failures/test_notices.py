"""Does no job start on a unit about to leave service, and does leaving in time cost nothing?"""

from __future__ import annotations

from pathlib import Path

import pytest
from failures.made import run_with_failures
from support import Outage, S, Script, cluster, finishes, intervals, job, make_policy, on, simulator

import artist
from artist.config import Scenario
from artist.contract import Migrate, Notice, Preempt, Restore, Start, Withdraw
from artist.contract import Outage as Cause
from artist.engine.rows import EndReason
from artist.errors import ConfigError, PolicyError
from artist.failures.model_file import load_failures
from artist.failures.notice_gate import NoticeGate
from artist.results.failure_tables import outage_table

WORK = Cause("machine", 0, 30 * S, failed=False)


def maintenance(at_s: float = 20.0, duration_s: float = 10.0, **more: object) -> dict:
    """An outage of machine 0, announced ten seconds ahead."""
    one = {"kind": "machine", "unit": 0, "at_s": at_s, "duration_s": duration_s, "notice_s": 10.0}
    return {"maintenance": [{**one, **more}]}


def test_a_job_that_ends_in_time_runs_on_and_the_next_one_waits_until_the_outage_is_over() -> None:
    jobs = [job("a", gpus=8, iterations=15), job("b", gpus=8, arrival_s=12.0)]
    rows, _ = run_with_failures(cluster([8]), jobs, maintenance())
    # `a` ends at 15, five seconds before the outage. `b` gets the machine when it is back, at 30.
    assert finishes(rows) == {"a": 15.0, "b": 40.0}
    assert [row.preemptions for row in rows.jobs] == [0, 0]
    assert [(row.tick, row.gpus) for row in rows.withdrawn] == [
        (10 * S, 0), (15 * S, 8), (20 * S, 8), (30 * S, 0),
    ]  # fmt: skip


def test_without_a_notice_the_next_job_starts_and_is_stopped() -> None:
    jobs = [job("a", gpus=8, iterations=15), job("b", gpus=8, arrival_s=12.0)]
    rows, _ = run_with_failures(cluster([8]), jobs, maintenance(notice_s=0.0))
    assert [row.preemptions for row in rows.jobs] == [0, 1]
    assert finishes(rows) == {"a": 15.0, "b": 35.0}  # five iterations from 15 on, five from 30 on


def test_a_job_that_is_still_there_saves_when_the_outage_begins() -> None:
    rows, _ = run_with_failures(cluster([8]), [job("a", gpus=2, iterations=25)], maintenance())
    first, _ = intervals(rows, 0)
    assert (first.end, first.reason, first.iterations) == (20 * S, EndReason.WITHDRAWN, 20)
    assert rows.jobs[0].failures == 0
    assert [(row.tick, row.gpus) for row in rows.withdrawn] == [
        (10 * S, 6), (20 * S, 8), (30 * S, 0),
    ]  # fmt: skip


def test_a_job_that_moves_away_in_time_loses_nothing() -> None:
    events = Outage(
        Notice(10 * S, (0,), 20 * S, WORK),
        Withdraw(20 * S, on({0: 8}), WORK),
        Restore(30 * S, on({0: 8})),
    )
    script = Script({0: [Start(0, on({0: 4}))], 10: [Migrate(0, on({1: 4}))]})
    rows = simulator(cluster([8, 8]), [job("a", gpus=4, iterations=25)], events=events).run(script)
    assert finishes(rows) == {"a": 25.0}
    assert [row.lost for row in rows.placements] == [0, 0]


def test_the_engine_places_no_job_on_gpus_on_notice_whoever_releases_them() -> None:
    events = Outage(Notice(10 * S, (0,), 20 * S, WORK))
    engine = simulator(cluster([8, 8]), [job("a", gpus=8, iterations=25)], events=events)
    assert engine.next_question()
    engine.answer([Start(0, on({0: 8}))])
    view = engine.next_question()
    assert view is not None
    assert dict(view.on_notice) == {0: 20 * S}
    with pytest.raises(PolicyError, match="machine 0, which leaves service at tick 20000000000"):
        engine.answer([Migrate(0, on({0: 8}))])


def test_no_job_loses_gpus_for_a_start_on_gpus_on_notice() -> None:
    """`big` would take both machines, of which one is on notice; `a` and `b` run on."""
    events = Outage(Notice(10 * S, (0,), 30 * S, WORK))
    start = [Start(0, on({0: 4})), Start(1, on({1: 4}))]
    takes = [Preempt(0), Preempt(1), Start(2, on({0: 4, 1: 4}))]
    script = Script({0: start, 12: takes, 25: [Start(2, on({0: 4, 1: 4}))]})
    jobs = [job("a", 4, 15), job("b", 4, 25), job("big", 8, 5, arrival_s=12.0)]
    engine = simulator(cluster([4, 4]), jobs, events=events)
    policy = NoticeGate(script)
    while (view := engine.next_question(policy)) is not None and view.now < 25 * S:
        engine.answer(policy.decide(view))
    assert finishes(engine.rows) == {"a": 15.0, "b": 25.0}
    assert [row.preemptions for row in engine.rows.jobs] == [0, 0]


def test_a_unit_that_fails_while_it_is_on_notice_comes_back_for_nobody() -> None:
    model = {
        "outages": [{"kind": "machine", "unit": 0, "at_s": 12.0, "duration_s": 3.0}],
        **maintenance(),
    }
    jobs = [job("a", gpus=4, iterations=18), job("b", gpus=4, arrival_s=11.0, iterations=20)]
    rows, _ = run_with_failures(cluster([8]), jobs, model)
    # `a` is stopped at 12. It may not start when the machine is back at 15, but at 30.
    starts = sorted({row.start / S for row in rows.placements})
    assert starts == [0, 30]


@pytest.mark.parametrize(
    "policy", ["srsf", "las", "mast", "quota(fifo)", "dally", "gandiva", "themis", "rl-hybrid"]
)
def test_a_policy_that_takes_gpus_away_gives_none_of_those_on_notice(policy: str) -> None:
    jobs = [
        job("long", gpus=8, iterations=1000, priority=7),
        job("other", gpus=4, iterations=500, priority=7),
        job("short", gpus=8, iterations=5, arrival_s=12.0, priority=1),
        job("tiny", gpus=2, iterations=50, arrival_s=13.0, priority=1),
    ]
    model = maintenance(at_s=200.0, notice_s=190.0)
    rows, _ = run_with_failures(cluster([8, 8]), jobs, model, policy=make_policy(policy))
    ends = {(row.handle, row.end, row.placement) for row in rows.placements}
    begun = [
        row
        for row in rows.placements
        if 10 * S < row.start < 200 * S and (row.handle, row.start, row.placement) not in ends
    ]
    assert begun
    assert all(0 not in row.placement.leaves for row in begun)
    assert len(rows.jobs) == 4
    # No job could get the GPUs of the jobs there, so none is preempted for them before the outage.
    (stopped,) = [row for row in rows.outages if row.outage is not None]
    assert stopped.stopped == rows.notices[0].there != ()


def test_the_table_of_outages_lists_notices_and_the_jobs_there() -> None:
    rows, _ = run_with_failures(cluster([8]), [job("a", gpus=2, iterations=25)], maintenance())
    table = outage_table(rows, ["a"])
    assert table["event"] == ["notice", "maintenance"]
    assert list(table["time_s"]) == [10.0, 20.0]
    assert list(table["until_s"]) == [20.0, 30.0]
    assert table["job_ids"] == [["a"], ["a"]]
    assert list(table["gpus"]) == [8, 8]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "maintenance:\n  - {kind: gpu, unit: 3, at_s: 100, duration_s: 50, notice_s: 5}",
            "a notice is for machines and larger units",
        ),
        (
            "outages:\n  - {kind: machine, unit: 3, at_s: 100, duration_s: 50, notice_s: 5}",
            "unknown setting 'outages.0.notice_s'",
        ),
        (
            "maintenance:\n  - {kind: machine, unit: 3, at_s: 100, duration_s: 50, notice_s: -5}",
            "'maintenance.0.notice_s' is -5, expected at least 0",
        ),
    ],
)
def test_a_bad_notice_ends_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words) as error:
        load_failures(str(file))
    assert "\n" not in str(error.value)


def test_a_scenario_with_a_notice_stops_fewer_jobs(tmp_path: Path) -> None:
    def stopped(notice_s: float) -> int:
        file = tmp_path / "work.yaml"
        lines = [
            f"  - {{kind: machine, unit: {unit}, at_s: 4000, duration_s: 3600, "
            f"notice_s: {notice_s}}}"
            for unit in range(8)
        ]
        file.write_text("maintenance:\n" + "\n".join(lines), encoding="utf-8")
        scenario = Scenario(racks=1, trace="tiny-poisson", policy="las", failures=str(file))
        result = artist.simulate(scenario, cache=False, check=True)
        table = result.tables["outages"]
        pairs = zip(table["event"], table["jobs"], strict=True)
        return sum(int(jobs) for event, jobs in pairs if event == "maintenance")

    assert stopped(4000.0) == 0 < stopped(0.0)
