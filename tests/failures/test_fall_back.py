"""Does a job fall back to its last checkpoint, and what do checkpoints cost? Worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest
from failures.made import every, exponential, run_with_failures
from hypothesis import given
from hypothesis import strategies as st
from support import (
    AloneRates,
    EstimateByLevel,
    Outage,
    S,
    Script,
    cluster,
    finishes,
    intervals,
    job,
    make_policy,
    on,
    rate,
    simulator,
)

from artist.contract import ClusterView, Decision, Migrate, Preempt, Restore, Start, Wake, Withdraw
from artist.contract import Outage as Cause
from artist.engine.progress import Progress
from artist.engine.rows import EndReason
from artist.engine.simulator import Simulator
from artist.errors import PolicyError


def test_checkpoints_of_30_s_each_100_iterations_make_1000_iterations_last_1300_s() -> None:
    progress = Progress(1000)
    progress.start(0)
    added_s = progress.set_rate(rate(1.0), every(100.0, 30.0))
    assert added_s == 0.3
    assert progress.finish() == 1300 * S


def test_a_failure_after_the_second_checkpoint_loses_what_came_after_it() -> None:
    # Ten iterations of 1 s and a checkpoint of 2 s: a checkpoint ends at 12 s, 24 s, 36 s.
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(1.0), every(10.0, 2.0))
    progress.settle(30 * S)
    assert progress.fall_back() == 6 * S
    assert progress.done(30 * S) == 20
    assert progress.phase(30 * S) == 0


@pytest.mark.parametrize(("at", "kept", "lost"), [(12 * S, 10, 0), (12 * S - 1, 0, 12 * S - 1)])
def test_a_checkpoint_counts_from_the_tick_at_which_it_is_whole(
    at: int, kept: int, lost: int
) -> None:
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(1.0), every(10.0, 2.0))
    progress.settle(at)
    assert progress.fall_back() == lost
    assert progress.done(at) == kept


def test_an_interval_is_rounded_up_to_whole_iterations() -> None:
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(4.0), every(10.0))  # three iterations
    progress.settle(23 * S)
    assert progress.fall_back() == 11 * S
    assert progress.done(23 * S) == 3


def test_a_slower_rate_keeps_what_was_done_since_the_last_checkpoint() -> None:
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(1.0), every(10.0))
    progress.settle(14 * S)  # saved 10, four since
    progress.set_rate(rate(2.0), every(10.0))  # every five: the next after one more
    progress.settle(17 * S)  # saved 15 at 16 s, and half an iteration
    assert progress.fall_back() == 1 * S
    assert progress.done(17 * S) == 15


def test_a_faster_rate_that_makes_a_checkpoint_overdue_writes_it_after_this_iteration() -> None:
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(1.0), every(10.0))
    progress.settle(8 * S)
    progress.set_rate(rate(5.0), every(10.0))  # every two: overdue
    progress.settle(8 * S + 7 * S)
    assert progress.fall_back() == 2 * S
    assert progress.done(15 * S) == 9


def test_a_hold_is_not_lost_work() -> None:
    progress = Progress(100)
    progress.start(0)
    progress.set_rate(rate(1.0), every(None))
    progress.settle(3 * S)
    progress.hold(50 * S)
    progress.settle(52 * S)
    assert progress.fall_back() == 5 * S


@given(
    iteration_s=st.sampled_from([0.1, 1 / 3, 1.0, 7.0]),
    interval_s=st.floats(0.01, 500.0),
    cost_s=st.sampled_from([0.0, 0.25, 31.0]),
    stops=st.lists(st.integers(1, 400 * S), min_size=1, max_size=8),
)
def test_settling_often_gives_the_same_last_checkpoint_as_one_long_look(
    iteration_s: float, interval_s: float, cost_s: float, stops: list[int]
) -> None:
    """Compared with a count of iterations one by one, in exact fractions."""
    progress = Progress(10**9)
    progress.start(0)
    progress.set_rate(rate(iteration_s), every(interval_s, cost_s))
    now = 0
    for length in stops:
        now += length
        progress.settle(now)
    length = Fraction(repr(iteration_s)) * S
    each = max(1, -(-every(interval_s).interval // length))
    span = each * length + every(None, cost_s).cost
    whole = int(Fraction(now) // span)
    lost = progress.fall_back()
    assert progress.done(now) == whole * each
    assert abs(now - lost - whole * span) < 1


def failed(at: float, leaf: int, gpus: int, repair_s: float = 0.0) -> tuple[Withdraw, Restore]:
    until = round((at + repair_s) * S)
    cause = Cause("machine", leaf, until)
    return Withdraw(round(at * S), on({leaf: gpus}), cause), Restore(until, on({leaf: gpus}))


def test_a_job_that_fails_waits_and_starts_from_its_last_checkpoint() -> None:
    engine = Simulator(
        cluster([4, 4]),
        [job("a", gpus=2, iterations=30, restart_s=5.0)],
        AloneRates(cluster([4, 4]), EstimateByLevel(cluster([4, 4]))),
        events=Outage(*failed(27.0, 0, 4, 100.0)),
        checkpoints=lambda job, placement: every(10.0, 1.0),
        check=True,
    )
    rows = engine.run(Script({0: [Start(0, on({0: 2}))], 27: [Start(0, on({1: 2}))]}))
    lost, rest = intervals(rows, 0)
    # Checkpoints end at 11 s and 22 s. So 5 s are lost, and ten iterations are left: 5 + 11 s.
    assert (lost.reason, lost.iterations, lost.lost) == (EndReason.FAILED, 24, 5 * S)
    assert lost.ended == "failed: machine 0 failed"
    assert (rest.start, rest.stalled, rest.iterations) == (27 * S, 5 * S, 10)
    assert finishes(rows) == {"a": 27 + 5 + 11}
    assert rows.jobs[0].failures == rows.jobs[0].preemptions == 1


@pytest.mark.parametrize("leaves", [Preempt(0), Migrate(0, on({1: 2}))])
def test_a_job_that_its_policy_stops_saves_first(leaves: Preempt | Migrate) -> None:
    restarts = {7: [leaves], 8: [Start(0, on({1: 2}))]} if isinstance(leaves, Preempt) else {}
    script = Script(
        {
            0: [Start(0, on({0: 2})), Wake(7 * S), Wake(8 * S)],
            7: [leaves],
            **({8: restarts[8]} if restarts else {}),
        }
    )
    engine = simulator(
        cluster([4, 4]), [job("a", gpus=2, iterations=30)], events=Outage(*failed(12.0, 1, 4))
    )
    script.decisions[12 * S] = [Start(0, on({0: 2}))]
    rows = engine.run(script)
    # Seven iterations were saved when it left; all since then is lost, as nothing is written.
    last = 12 + 30 - 7
    assert finishes(rows) == {"a": last}


def test_maintenance_lets_jobs_save() -> None:
    cause = Cause("machine", 0, 20 * S, failed=False)
    events = Outage(Withdraw(7 * S, on({0: 4}), cause), Restore(20 * S, on({0: 4})))
    engine = simulator(cluster([4, 4]), [job("a", gpus=2, iterations=30)], events=events)
    rows = engine.run(Script({0: [Start(0, on({0: 2}))], 7: [Start(0, on({1: 2}))]}))
    assert intervals(rows, 0)[0].ended == "withdrawn: machine 0 in maintenance"
    assert finishes(rows) == {"a": 30}
    assert rows.jobs[0].failures == 0


@pytest.mark.parametrize(("position", "stopped"), [(0, [0]), (1, [0]), (2, [1]), (3, [])])
def test_a_failing_gpu_stops_the_job_that_holds_it(position: int, stopped: list[int]) -> None:
    cause = Cause("gpu", position, 2 * S)
    events = Outage(Withdraw(S, on({0: 1}), cause, position), Restore(2 * S, on({0: 1})))
    engine = simulator(cluster([4]), [job("a", gpus=2), job("b", gpus=1)], events=events)
    again = [Start(handle, on({0: 2 - handle})) for handle in stopped]
    rows = engine.run(
        Script({0: [Start(0, on({0: 2})), Start(1, on({0: 1}))], 1: again, 2: []})
        if not stopped
        else Script({0: [Start(0, on({0: 2})), Start(1, on({0: 1}))], 2: again})
    )
    assert [list(row.stopped) for row in rows.outages if not row.back] == [stopped]


def test_failures_in_a_row_are_counted_until_the_job_saves() -> None:
    """A job whose stays end before its first checkpoint, then one that ends after it."""
    counts = []

    class Looking(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            counts.extend(state.failures_in_a_row for state in view.waiting.values())
            return [Start(handle, on({1: 2})) for handle in view.waiting] if view.now else (
                [Start(0, on({0: 2}))]
            )  # fmt: skip

    tree = cluster([4, 4])
    events = [event for at in (5, 9, 25, 30) for event in failed(at, 1 if at > 5 else 0, 4)]
    Simulator(
        tree,
        [job("a", gpus=2, iterations=30)],
        AloneRates(tree, EstimateByLevel(tree)),
        events=Outage(*events),
        checkpoints=lambda job, placement: every(10.0),
        check=True,
    ).run(Looking({}))
    assert counts == [0, 1, 2, 1, 2]


def test_a_policy_that_leaves_jobs_waiting_for_failures_is_reported() -> None:
    class Idle(Script):
        def decide(self, view: ClusterView) -> Sequence[Decision]:
            return ()

    with pytest.raises(PolicyError, match="left all jobs waiting on free GPUs 1,000 times"):
        run_with_failures(
            cluster([4]), [job("a")], {"machine": exponential(100.0)}, policy=Idle({})
        )


@pytest.mark.parametrize("policy", ["srtf", "srsf"])
def test_a_job_that_a_failure_threw_back_gives_way_to_a_shorter_one(policy: str) -> None:
    """At 80 it had 20 s to go. It fails at 85, and begins again at 120."""
    jobs = [
        job("long", gpus=8, iterations=100),
        job("middle", gpus=8, iterations=30, arrival_s=80.0),
        job("late", gpus=8, iterations=50, arrival_s=130.0),
    ]
    model = {"outages": [{"kind": "machine", "unit": 0, "at_s": 85.0, "duration_s": 5.0}]}
    rows, _ = run_with_failures(cluster([8]), jobs, model, policy=make_policy(policy))
    assert finishes(rows) == {"middle": 120.0, "late": 180.0, "long": 270.0}
