"""Does the engine ask, check, apply and write down as its docstring says?"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from support import (
    EstimateByLevel,
    Outage,
    Rates,
    S,
    Script,
    cluster,
    finishes,
    intervals,
    job,
    make_policy,
    on,
    question,
    rate,
    run,
    simulator,
    speeds,
)

from artist.cluster.placement import Placement
from artist.contract import (
    BasePolicy,
    ClusterView,
    Decision,
    Hold,
    Migrate,
    Preempt,
    Restore,
    Start,
    Turn,
    Wait,
    Wake,
    Withdraw,
)
from artist.engine.livelock import SHORT_NAP
from artist.engine.rows import EndReason, Rows
from artist.engine.simulator import Simulator
from artist.errors import InvariantError, PolicyError, TraceError
from artist.network.rates.isolated import AloneRates
from artist.policies.classic import Classic, ClassicOptions
from artist.units import LAST_TICK, Tick, seconds

WHOLE = on({0: 8})


def stalls(rows: Rows, handle: int) -> list[float]:
    return [seconds(row.stalled) for row in intervals(rows, handle)]


# -- questions ---------------------------------------------------------------------------


def test_an_instant_is_drained_and_then_asked_about_once() -> None:
    # At 10 s: a and b finish, c's lease ends, d and e arrive, and a wake-up is due.
    jobs = [
        job("a"),
        job("b"),
        job("c", iterations=15),
        job("d", arrival_s=10.0),
        job("e", arrival_s=10.0),
    ]
    engine = simulator(cluster([8]), jobs, lease_s=10.0)
    engine.next_question()
    engine.answer([*(Start(handle, on({0: 1})) for handle in range(3)), Wake(10 * S)])
    view = question(engine)
    assert view.now == 10 * S
    assert list(view.finished) == [0, 1]
    assert [state.handle for state in view.lease_ended] == [2]
    assert [state.handle for state in view.entered] == [3, 4]
    assert list(view.waiting) == [3, 4]
    assert list(view.running) == [2]
    assert view.free.total == 7
    engine.answer([Start(3, on({0: 1})), Start(4, on({0: 1}))])
    assert engine.rows.questions == 2


def test_a_question_stays_until_it_is_answered() -> None:
    engine = simulator(cluster([8]), [job("a"), job("b", arrival_s=1.0)])
    assert question(engine).now == question(engine).now == 0


def test_a_view_shows_only_what_happened_since_the_last_answer() -> None:
    engine = simulator(cluster([8]), [job("a"), job("b", arrival_s=1.0)])
    engine.next_question()
    engine.answer([])
    view = question(engine)
    assert [state.job.id for state in view.entered] == ["b"]
    assert [state.job.id for state in view.waiting.values()] == ["a", "b"]


def test_a_preempted_job_enters_the_queue_again_behind_the_others() -> None:
    engine = simulator(cluster([8]), [job("a", gpus=8), job("b", gpus=8)])
    engine.next_question()
    engine.answer([Start(0, WHOLE), Wake(5 * S)])
    engine.next_question()
    engine.answer([Preempt(0), Wake(6 * S)])
    view = question(engine)
    assert list(view.waiting) == [1, 0]
    assert [state.handle for state in view.entered] == [0]
    assert [state.entered for state in view.waiting.values()] == [0, 5 * S]


def test_a_wake_up_is_a_question_of_its_own() -> None:
    script = Script({0: [Start(0, on({0: 1})), Wake(3 * S)], 3: [Wake(4 * S)]})
    run(cluster([8]), [job("a")], script)
    assert script.asked == [0, 3 * S, 4 * S, 10 * S]


def test_a_policy_may_ask_what_an_iteration_would_take_elsewhere() -> None:
    tree = cluster([8, 8], [8])
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.5, network=2.0))
    view = question(simulator(tree, [job("a", gpus=2)], rates))
    places = ({0: 2}, {0: 1, 1: 1}, {0: 1, 2: 1})
    rates_there = [view.alone(job("a", gpus=2), on(place)) for place in places]
    assert [rate.iteration_s for rate in rates_there] == [1.0, 1.5, 3.0]
    half = view.alone(job("a", gpus=4), on({0: 2}))
    assert (half.iteration_s, half.worth, half.submitted_iteration_s) == (1.0, 0.5, 2.0)
    shares = [view.comm_share(job("a", gpus=2), on(place)) for place in places]
    assert shares == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]


def test_a_view_tells_a_jobs_time_on_gpus_service_and_whole_iterations() -> None:
    engine = simulator(cluster([8]), [job("a", gpus=2, compute_s=3.0)])
    engine.next_question()
    engine.answer([Start(0, on({0: 2})), Wake(4 * S)])
    shown = []
    for decisions in (
        [Preempt(0), Wake(9 * S)],
        [Start(0, on({0: 2})), Wake(13 * S)],
        [Preempt(0)],
    ):
        view = question(engine)
        state = {**view.waiting, **view.running}[0]
        times = (state.run_ticks(view.now) / S, state.service_gpu_s(view.now))
        shown.append((*times, state.iterations_done(view.now), state.tier))
        engine.answer(decisions)
    # After 4 s of running, 5 s of waiting, and 4 s of running; an iteration takes 3 s.
    assert shown == [(4.0, 8.0, 1, 0), (4.0, 8.0, 1, -1), (8.0, 16.0, 2, 0)]


# -- answers -----------------------------------------------------------------------------


def test_two_running_jobs_swap_their_gpus_in_one_answer() -> None:
    left, right = on({0: 8}), on({1: 8})
    script = Script(
        {
            0: [Start(0, left), Start(1, right), Wake(4 * S)],
            4: [Migrate(0, right), Migrate(1, left)],
        }
    )
    rows = run(cluster([8, 8]), [job("a", gpus=8), job("b", gpus=8)], script)
    assert [row.placement for row in intervals(rows, 0)] == [left, right]
    assert [row.placement for row in intervals(rows, 1)] == [right, left]
    assert [row.migrations for row in rows.jobs] == [1, 1]
    assert finishes(rows) == {"a": 10.0, "b": 10.0}


def test_releases_come_before_claims_whatever_the_order_of_the_decisions() -> None:
    script = Script(
        {
            0: [Start(0, WHOLE), Wake(4 * S)],
            4: [Start(1, WHOLE), Preempt(0)],
            14: [Start(0, WHOLE)],
        }
    )
    rows = run(cluster([8]), [job("a", gpus=8), job("b", gpus=8)], script)
    assert finishes(rows) == {"b": 14.0, "a": 20.0}


def test_preemption_falls_back_to_the_last_whole_iteration() -> None:
    jobs = [job("a", iterations=3, compute_s=10.0)]
    script = Script(
        {
            0: [Start(0, on({0: 1})), Wake(14 * S)],
            14: [Preempt(0), Wake(20 * S)],
            20: [Start(0, on({0: 1}))],
        }
    )
    rows = run(cluster([8]), jobs, script)
    first, second = intervals(rows, 0)
    assert (first.iterations, first.lost, first.reason) == (1, 4 * S, EndReason.PREEMPTED)
    assert (second.iterations, second.lost, second.reason) == (2, 0, EndReason.FINISHED)
    assert finishes(rows) == {"a": 40.0}


def started(**fields: object):
    """Job a runs on half of machine 0, b waits, c (order 2) is still to come; now is 2 s."""
    jobs = [
        job("a", gpus=4),
        job("b", gpus=4, gpus_min=2, gpus_max=6),
        job("c", gpus=4, arrival_s=5.0),
    ]
    engine = simulator(cluster([8, 8]), jobs, **fields)
    engine.next_question()
    engine.answer([Start(0, on({0: 4})), Wake(2 * S)])
    engine.next_question()
    return engine


UNLAWFUL = {
    "GPUs that another job holds": (
        [Start(1, on({0: 5}))],
        "job 'b': 5 GPUs of machine 0 claimed, but 4 are free there",
    ),
    "GPUs given twice in one answer": (
        [Migrate(0, on({1: 4})), Start(1, on({1: 5}))],
        "job 'b': 5 GPUs of machine 1 claimed, but 4 are free there",
    ),
    "too few GPUs": ([Start(1, on({0: 1}))], "job 'b' placed on 1 GPU, but it runs on 2 to 6"),
    "too many GPUs": ([Start(1, on({1: 7}))], "job 'b' placed on 7 GPUs, but it runs on 2 to 6"),
    "too many GPUs of a rigid job": (
        [Migrate(0, on({1: 5}))],
        "job 'a' placed on 5 GPUs, but it runs on 4",
    ),
    "an unknown job": ([Start(9, on({1: 4}))], "unknown job 9 is not waiting"),
    "a negative job": ([Preempt(-1)], "unknown job -1 is not running"),
    "a job that has not arrived": ([Start(2, on({1: 4}))], "job 'c' is not waiting"),
    "starting a running job": ([Start(0, on({1: 4}))], "job 'a' is not waiting"),
    "preempting a waiting job": ([Preempt(1)], "job 'b' is not running"),
    "migrating a waiting job": ([Migrate(1, on({1: 4}))], "job 'b' is not running"),
    "a job decided twice": (
        [Preempt(0), Migrate(0, on({1: 4}))],
        "job 'a' appears in two decisions",
    ),
    "a leaf listed twice": (
        [Start(1, Placement((1, 1), (2, 2)))],
        "job 'b': Placement(leaves=(1, 1), counts=(2, 2)) lists leaves twice or out of order",
    ),
    "leaves out of order": (
        [Start(1, Placement((1, 0), (2, 2)))],
        "job 'b': Placement(leaves=(1, 0), counts=(2, 2)) lists leaves twice or out of order",
    ),
    "more counts than leaves": (
        [Start(1, Placement((1,), (2, 2)))],
        "job 'b': Placement(leaves=(1,), counts=(2, 2)) lists leaves twice or out of order",
    ),
    "a leaf that does not exist": ([Start(1, on({2: 4}))], "job 'b': 4 GPUs of machine 2 claimed"),
    "a negative leaf": ([Start(1, on({-1: 4}))], "job 'b': 4 GPUs of machine -1 claimed"),
    "no GPUs of a leaf": (
        [Start(1, on({0: 4, 1: 0}))],
        "job 'b': a placement with 0 GPUs of machine 1",
    ),
    "a fraction of a GPU": (
        [Start(1, on({1: 2.5}))],
        "job 'b': Placement(leaves=(1,), counts=(2.5,)) holds numbers other than Python's integers",
    ),
    "a leaf counted by numpy": (
        [Start(1, on({np.int64(1): 4}))],
        "job 'b': Placement(leaves=(np.int64(1),), counts=(4,)) holds numbers other",
    ),
    "a wake-up now": ([Wake(2 * S)], "wake-up at tick 2000000000 is not after now (2000000000)"),
    "a wake-up in the past": ([Wake(S)], "wake-up at tick 1000000000 is not after now"),
    "a wake-up after the clock's end": (
        [Wake(2**63)],
        "wake-up at tick 9223372036854775808: the clock ends at 9223372036854775807",
    ),
    "something else": (["preempt everybody"], "'preempt everybody' is not a decision"),
    "a dict for a placement": ([Start(1, {1: 4})], "job 'b': {1: 4} is not a placement"),
    "a dict in a placement": (
        [Start(1, Placement({1: 4}, (4,)))],
        "job 'b': Placement(leaves={1: 4}, counts=(4,)) holds something other than two tuples",
    ),
    "a list for a handle": ([Start([1], on({1: 4}))], "Start(handle=[1], placement="),
    "a truth value for a handle": (
        [Preempt(False)],
        "Preempt(handle=False, reason='', for_good=False) names no",
    ),
    "telling a running job to wait": ([Wait(0, "so")], "job 'a' is not waiting"),
    "telling a job to wait that starts": (
        [Wait(1, "so"), Start(1, on({1: 4}))],
        "job 'b' starts and is told to wait",
    ),
    "telling a story": ([Wait(1, "so" * 101)], "job 'b' waits because of 'soso"),
    "telling a number": ([Wait(1, 3)], "job 'b' waits because of 3, expected at most 200 char"),
    "telling an unknown cause": (
        [Wait(1, "so", "weather")],
        "job 'b' waits with cause 'weather', expected one of timer, consolidation, links, "
        "quota, data, notice, cpu_cores, memory, gpu_memory, mig, gpu_kind, policy",
    ),
    "telling a number for a cause": ([Wait(1, "so", 3)], "job 'b' waits with cause 3, expected"),
    "a reason until a fraction": (
        [Wait(1, "so", until=3.5)],
        "job 'b' waits until 3.5, expected a whole number of ticks, or None",
    ),
    "a reason that holds no more": (
        [Wait(1, "so", until=2 * S)],
        "job 'b' waits until 2000000000, which is not after now (2000000000)",
    ),
    "a number for a reason": ([Preempt(0, 3)], "job 'a': reason 3, expected text"),
    "a wake-up at a fraction": ([Wake(3.5 * S)], "wake-up at tick 3500000000.0, expected a whole"),
    "telling nobody": ([Wait(True, "so")], "Wait(handle=True, reason='so', cause="),
    "a number of seconds for a handle": ([Hold(0.0, 9 * S)], "Hold(handle=0.0, until="),
}


@pytest.mark.parametrize("case", UNLAWFUL)
def test_an_unlawful_decision_is_an_error_that_names_policy_job_and_value(case: str) -> None:
    decisions, message = UNLAWFUL[case]
    with pytest.raises(PolicyError) as caught:
        started().answer(decisions, "Greedy")
    assert str(caught.value).startswith(f"invalid decision of Greedy: {message}")


def test_a_policy_that_returns_nothing_gets_a_clear_error() -> None:
    with pytest.raises(PolicyError, match="of Greedy: None is not a list of decisions"):
        started().answer(None, "Greedy")  # type: ignore[arg-type]


@pytest.mark.parametrize("case", UNLAWFUL)
def test_after_an_unlawful_answer_the_same_question_can_be_answered_lawfully(case: str) -> None:
    # The invalid answer starts with valid decisions, which must not stay either.
    decisions, _ = UNLAWFUL[case]
    results = []
    for bad in ([], [Wake(3 * S), *decisions]):
        engine = started()
        if bad:
            with pytest.raises(PolicyError):
                engine.answer(bad)
        engine.answer([Start(1, on({0: 4}))])
        while (view := engine.next_question()) is not None:
            engine.answer([Start(handle, on({1: 4})) for handle in view.waiting])
        results.append(engine.rows)
    assert results[0] == results[1]


def test_a_reason_may_be_a_member_of_a_policys_own_texts() -> None:
    engine = started()
    engine.answer([Preempt(0, EndReason.HELD)])  # a `StrEnum`, as policies have them
    assert engine.rows.placements[-1].ended == "preempted: held"


@pytest.mark.parametrize("answer", [5, Start(1, on({1: 4}))])
def test_an_answer_that_is_not_a_list_is_an_error(answer: object) -> None:
    with pytest.raises(PolicyError, match=r"of Greedy: .* is not a list of decisions"):
        started().answer(answer, "Greedy")


def test_an_answer_without_a_question_is_an_error() -> None:
    engine = simulator(cluster([8]), [job("a")])
    start = [Start(0, on({0: 1}))]
    with pytest.raises(PolicyError, match=r"without a question; call next_question\(\) first"):
        engine.answer(start)
    engine.next_question()
    engine.answer(start)
    with pytest.raises(PolicyError, match="answer of Greedy without a question"):
        engine.answer([], "Greedy")


class Restless(BasePolicy):
    """Asks to be woken after every nap; starts what waits at a tick, if that ever comes."""

    def __init__(self, nap: Tick, at: Tick | None = None) -> None:
        self.nap = nap
        self.at = at

    def decide(self, view: ClusterView) -> list[Decision]:
        if self.at is not None and view.now >= self.at:
            return [Start(handle, on({0: 1})) for handle in view.waiting]
        return [Wake(view.now + self.nap)]


@pytest.fixture
def early_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Livelocks are found after 1,000 wake-ups."""
    monkeypatch.setattr("artist.engine.livelock.WAKES_IN_A_ROW", 1000)
    monkeypatch.setattr("artist.engine.livelock.STORM", 1000)


@pytest.mark.usefixtures("early_limits")
@pytest.mark.parametrize(
    ("nap", "jobs", "words"),
    [
        (1, [job("a")], "asked to be woken at 1,000 instants in a row"),
        (1, [job("a"), job("b", arrival_s=9e8)], "from tick 1 to 1000, less than a millisecond"),
        (SHORT_NAP - 1, [job("a"), job("b", arrival_s=9e8)], "less than a millisecond apart"),
        (SHORT_NAP, [job("a")], "woken 1,000 times in a row"),
        (3600 * S, [job("a")], "while nothing else happened or could happen"),
    ],
)
def test_a_policy_that_is_woken_for_ever_is_reported(nap, jobs, words) -> None:
    with pytest.raises(PolicyError, match=f"Restless .*{words}"):
        run(cluster([8]), jobs, Restless(nap))


@pytest.mark.usefixtures("early_limits")
@pytest.mark.parametrize(
    ("nap", "at", "jobs"),
    [
        (S, 999 * S, [job("a")]),  # woken for nothing, but not forever
        (S, 2500 * S, [job("a"), job("b", arrival_s=2400.0)]),  # and something is still to come
        (1, 3000, [job(f"j{n}", arrival_s=5e-7 * n) for n in range(6)]),  # arrivals in between
        (
            SHORT_NAP,
            2 * S,
            [job("a"), job("b", arrival_s=2.0)],
        ),  # a nap that is just long enough is allowed
    ],
)
def test_a_policy_that_looks_often_is_left_alone(nap, at, jobs) -> None:
    assert len(run(cluster([8]), jobs, Restless(nap, at)).jobs) == len(jobs)


class Fickle(BasePolicy):
    """Takes the job's GPUs and gives them back, at every tick up to the 2,000th."""

    def decide(self, view: ClusterView) -> list[Decision]:
        if view.running and view.now >= 2000:
            return []
        turn: Decision = Preempt(0) if view.running else Start(0, on({0: 1}))
        return [turn, Wake(view.now + 1)]


@pytest.mark.usefixtures("early_limits")
def test_a_storm_is_one_whatever_the_policy_decides() -> None:
    with pytest.raises(PolicyError, match=r"Fickle .* at 1,000 instants in a row"):
        run(cluster([8]), [job("a")], Fickle())


class Hoarder(BasePolicy):
    """Asks for ten wake-ups whenever it is asked."""

    def decide(self, view: ClusterView) -> list[Decision]:
        return [Wake(view.now + S * n) for n in range(1, 11)]


def test_wake_ups_that_are_still_to_come_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr("artist.engine.simulator.MAX_WAKES", 10)
    script = Script({0: [Wake(S), Wake(S)], 1: [Start(0, on({0: 1})), *[Wake(2 * S)] * 10]})
    assert run(cluster([8]), [job("a")], script).jobs  # those that have come do not count
    with pytest.raises(PolicyError, match="more than 10 wake-ups at once; ask for the next one"):
        run(cluster([8]), [job("a")], Hoarder())


class Mover(BasePolicy):
    """Moves the job to the other machine after every `pause`."""

    def __init__(self, pause: Tick) -> None:
        self.pause = pause

    def decide(self, view: ClusterView) -> list[Decision]:
        if view.waiting:
            return [Start(0, on({0: 1})), Wake(view.now + self.pause)]
        if not view.running:
            return []
        there = on({1: 1}) if view.running[0].placement == on({0: 1}) else on({0: 1})
        return [Migrate(0, there), Wake(view.now + self.pause)]


def test_a_job_that_never_does_an_iteration_is_an_error(monkeypatch) -> None:
    monkeypatch.setattr("artist.engine.job_state.MOST_WASTED_STAYS", 50)
    jobs = [job("a", iterations=100, restart_s=5.0)]
    with pytest.raises(TraceError, match="job 'a' lost its GPUs 51 times in a row before it could"):
        run(cluster([8, 8]), jobs, Mover(6 * S - 1))
    assert run(cluster([8, 8]), jobs, Mover(6 * S)).jobs  # it does an iteration between two


def test_a_first_start_and_a_restart_cost_their_own_times() -> None:
    jobs = [job("a", iterations=100, first_start_s=7.0, restart_s=5.0)]
    script = Script({0: [Start(0, on({0: 1})), Wake(17 * S)], 17: [Migrate(0, on({1: 1}))]})
    rows = run(cluster([8, 8]), jobs, script)
    assert [row.stalled / S for row in rows.placements] == [7, 5]
    assert [row.iterations for row in rows.placements] == [10, 90]
    assert finishes(rows) == {"a": 112.0}


def test_a_lease_of_microseconds_is_refused() -> None:
    simulator(cluster([8]), [job("a")], lease_s=1e-3)
    with pytest.raises(PolicyError, match="a lease of 999999 ns, expected at least 1,000,000"):
        simulator(cluster([8]), [job("a")], lease_s=1e-3 - 1e-9)


def queue_of(*durations_s: float) -> Rows:
    """Jobs of this many seconds, one after another."""

    class InTurn(BasePolicy):
        def decide(self, view: ClusterView) -> list[Decision]:
            free = not view.running and view.waiting
            return [Start(next(iter(view.waiting)), on({0: 1}))] if free else []

    jobs = [job(f"j{n}", iterations=1, compute_s=s) for n, s in enumerate(durations_s)]
    return run(cluster([1]), jobs, InTurn())


def test_time_ends_where_a_column_of_ticks_does() -> None:
    last_s = LAST_TICK // S - 8 * 10**9
    assert finishes(queue_of(4e9, 4e9, last_s))["j2"] == 9223372036.0
    with pytest.raises(TraceError, match=r"job 'j2' would still run after 9223372036854775807 ns"):
        queue_of(4e9, 4e9, last_s + 1)


def test_a_policy_that_leaves_jobs_waiting_for_ever_is_reported() -> None:
    with pytest.raises(PolicyError, match=r"Script left 2 jobs waiting .*job 'a', 3 GPUs, 8 free"):
        run(cluster([8]), [job("a", gpus=3), job("b")], Script({}))


# -- leases ------------------------------------------------------------------------------


def test_leases_end_on_a_grid_from_the_start_at_the_next_iteration_boundary() -> None:
    # Started at 5 s; due at 15, 25, 35, ... s; iterations of 4 s end at 9, 13, 17, ... s.
    jobs = [job("a", iterations=10, compute_s=4.0, arrival_s=5.0)]
    script = Script({5: [Start(0, on({0: 1}))]})
    rows = run(cluster([8]), jobs, script, lease_s=10.0)
    assert script.lease_ends == [(17.0, [0]), (25.0, [0]), (37.0, [0])]
    assert finishes(rows) == {"a": 45.0}  # when the lease due at 45 s would end


def test_a_renewed_lease_costs_nothing_and_writes_no_row() -> None:
    jobs = [job("a", iterations=100, restart_s=7.0)]
    rows = run(cluster([8]), jobs, Script({0: [Start(0, on({0: 1}))]}), lease_s=10.0)
    assert finishes(rows) == {"a": 100.0}
    assert len(rows.placements) == 1


def test_a_lease_shorter_than_an_iteration_still_lets_the_job_progress() -> None:
    jobs = [job("a", gpus=8, iterations=3, compute_s=10.0), job("b", gpus=8, iterations=20)]

    class TakeTurns(BasePolicy):
        def decide(self, view):
            taken = [Preempt(state.handle) for state in view.lease_ended if view.waiting]
            free = taken or not view.running
            return [*taken, *(Start(handle, WHOLE) for handle in list(view.waiting)[:1] if free)]

    rows = run(cluster([8]), jobs, TakeTurns(), lease_s=1.0)
    assert [row.iterations for row in intervals(rows, 0)] == [1, 1, 1]
    assert {row.iterations for row in intervals(rows, 1)[:2]} == {1}


def test_a_lease_that_is_due_survives_a_re_rating_before_the_boundary() -> None:
    # Iterations of 10 s; the lease is due at 15 s and the speed changes at 16 s, when b arrives.
    rates = speeds(lambda now: 0.1 if now < 16 * S else 0.2)
    script = Script({0: [Start(0, on({0: 1}))], 16: [Start(1, on({0: 1}))]})
    jobs = [job("a"), job("b", arrival_s=16.0, iterations=1)]
    run(cluster([8]), jobs, script, rates, lease_s=15.0)
    # 6 of 10 s are done at 16 s; the other 40 % take 2 s at twice the speed.
    assert script.lease_ends[0] == (18.0, [0])


def test_a_lease_counts_from_a_migration() -> None:
    script = Script({0: [Start(0, on({0: 1})), Wake(4 * S)], 4: [Migrate(0, on({1: 1}))]})
    run(cluster([8, 8]), [job("a", iterations=20)], script, lease_s=10.0)
    assert script.lease_ends == [(14.0, [0])]


def test_a_lease_that_ends_with_the_job_is_no_event() -> None:
    script = Script({0: [Start(0, on({0: 1}))]})
    rows = run(cluster([8]), [job("a", iterations=20)], script, lease_s=10.0)
    assert script.lease_ends == [(10.0, [0])]
    assert rows.events == 3  # arrival, lease end, finish


# -- standing still ------------------------------------------------------------------------


def test_a_restart_is_charged_after_preemption_and_migration_but_not_at_first() -> None:
    script = Script(
        {
            0: [Start(0, on({0: 1})), Wake(2 * S)],
            2: [Preempt(0), Wake(3 * S)],
            3: [Start(0, on({0: 1})), Wake(12 * S)],
            12: [Migrate(0, on({1: 1}))],
        }
    )
    rows = run(cluster([8, 8]), [job("a", restart_s=5.0)], script)
    assert stalls(rows, 0) == [0.0, 5.0, 5.0]
    assert [row.iterations for row in intervals(rows, 0)] == [2, 4, 4]
    assert finishes(rows) == {"a": 21.0}  # 12 s + 5 s + the last four


def test_a_job_preempted_while_it_restarts_has_stalled_for_that_long_and_lost_nothing() -> None:
    script = Script(
        {
            0: [Start(0, on({0: 1})), Wake(2 * S)],
            2: [Migrate(0, on({1: 1})), Wake(4 * S)],
            4: [Preempt(0), Wake(6 * S)],
            6: [Start(0, on({0: 1}))],
        }
    )
    rows = run(cluster([8, 8]), [job("a", restart_s=5.0)], script)
    assert stalls(rows, 0) == [0.0, 2.0, 5.0]
    assert sum(row.lost for row in intervals(rows, 0)) == 0
    assert finishes(rows) == {"a": 19.0}  # 6 s + 5 s + the last eight


def held(until_s: int, *decisions: Decision) -> Simulator:
    """A job of two iterations of 10 s, held from 4 s on."""
    engine = simulator(cluster([8]), [job("a", iterations=2, compute_s=10.0)])
    engine.next_question()
    engine.answer([Start(0, on({0: 1})), Wake(4 * S)])
    engine.next_question()
    engine.answer([Hold(0, until_s * S), *decisions])
    return engine


def test_a_hold_keeps_the_phase_and_shows_as_stalled_time() -> None:
    engine = held(9)
    rows = engine.run(Script({}))
    assert finishes(rows) == {"a": 25.0}
    first, second = intervals(rows, 0)
    assert (first.reason, first.stalled, first.lost) == (EndReason.HELD, 0, 0)
    assert (second.start, second.stalled, second.iterations) == (4 * S, 5 * S, 2)


def test_a_hold_ends_with_the_stay() -> None:
    engine = held(1000, Wake(6 * S))
    rows = engine.run(Script({6: [Preempt(0), Wake(10 * S)], 10: [Start(0, on({0: 1}))]}))
    assert finishes(rows) == {"a": 30.0}
    assert stalls(rows, 0) == [0.0, 2.0, 0.0]
    ended = intervals(rows, 0)[1]
    assert (ended.start, ended.end, ended.lost, ended.reason) == (
        4 * S,
        6 * S,
        4 * S,
        EndReason.PREEMPTED,
    )


def test_a_turn_ends_with_the_stay_and_with_a_hold_without_one() -> None:
    turn = Turn(1, 9 * S, 10 * S, S)
    engine = simulator(cluster([8]), [job("a", iterations=9, compute_s=10.0)])
    seen = []
    answers: list[list[Decision]] = [
        [Start(0, on({0: 1})), Hold(0, 2 * S, "", turn), Wake(3 * S)],
        [Wake(4 * S)],
        [Hold(0, 5 * S), Wake(6 * S)],
        [Hold(0, 7 * S, "", turn), Wake(8 * S)],
        [Preempt(0), Wake(9 * S)],
    ]
    for answer in answers:
        seen += [one.turn for one in question(engine).running.values()]
        engine.answer(answer)
    seen += [one.turn for one in question(engine).waiting.values()]
    assert seen == [turn, turn, None, turn, None]


def test_a_job_may_be_held_by_the_answer_that_starts_it() -> None:
    script = Script({0: [Hold(0, 5 * S), Start(0, on({0: 1}))]})
    rows = run(cluster([8]), [job("a")], script)
    assert stalls(rows, 0) == [5.0]
    assert finishes(rows) == {"a": 15.0}


def test_a_job_may_be_held_by_the_answer_that_moves_it() -> None:
    script = Script(
        {0: [Start(0, on({0: 1})), Wake(3 * S)], 3: [Migrate(0, on({1: 1})), Hold(0, 7 * S)]}
    )
    rows = run(cluster([8, 8]), [job("a")], script)
    assert stalls(rows, 0) == [0.0, 4.0]
    assert finishes(rows) == {"a": 14.0}


def test_a_restart_goes_on_during_a_hold() -> None:
    script = Script(
        {0: [Start(0, on({0: 1})), Wake(3 * S)], 3: [Migrate(0, on({1: 1})), Hold(0, 5 * S)]}
    )
    rows = run(cluster([8, 8]), [job("a", restart_s=6.0)], script)
    assert stalls(rows, 0) == [0.0, 6.0]
    assert finishes(rows) == {"a": 16.0}


def test_a_shorter_hold_does_not_end_a_longer_one() -> None:
    engine = held(9, Wake(5 * S))
    rows = engine.run(Script({5: [Hold(0, 6 * S)]}))
    assert finishes(rows) == {"a": 25.0}
    assert sum(stalls(rows, 0)) == 5.0


def test_a_hold_at_the_end_of_a_lease_ends_no_lease_twice() -> None:
    engine = simulator(cluster([8]), [job("a", iterations=40)], lease_s=10.0)
    engine.next_question()
    engine.answer([Start(0, on({0: 1}))])
    engine.next_question()
    engine.answer([Hold(0, 35 * S)])
    script = Script({})
    rows = engine.run(script)
    # Due at 20 s: ends with the first iteration after the hold; then 40 s, 50 s, ... as before.
    assert script.lease_ends == [(float(at), [0]) for at in (36, 40, 50, 60)]
    assert finishes(rows) == {"a": 65.0}


def test_a_hold_is_reported_to_the_rate_function() -> None:
    rates = speeds()
    engine = simulator(cluster([8]), [job("a")], rates)
    engine.next_question()
    engine.answer([Start(0, on({0: 1})), Wake(2 * S)])
    engine.next_question()
    engine.answer([Hold(0, 3 * S)])
    assert rates.calls == [(0, [0]), (2 * S, [0])]


@pytest.mark.parametrize(
    ("decisions", "words"),
    [
        ([Hold(1, 9 * S)], "unknown job 1 is not running"),
        ([Hold(0, 4 * S)], "job 'a' held until 4000000000, not after 4000000000"),
        ([Hold(0, 0)], "job 'a' held until 0"),
        ([Hold(0, 9.5 * S)], "job 'a' held until 9500000000.0"),
        ([Hold(0, 9 * S, "", Turn(0, 0, 0, None))], "job 'a' held for Turn"),
        ([Hold(0, 9 * S, "", Turn(0, 0, 5, -1))], "a period above 0 and a slack from 0"),
        ([Hold(0, 9 * S, "", Turn(0, 0.5, 5, 1))], "expected whole ticks"),
        ([Wake(float("nan"))], "wake-up at tick nan"),
        ([Start(0, None)], "job 'a': None is not a placement"),
        ([Hold(0, 9 * S), Hold(0, 8 * S)], "job 'a' is held twice"),
        ([Preempt(0), Hold(0, 9 * S)], "job 'a' is preempted and held"),
    ],
)
def test_an_impossible_hold_is_an_error(decisions: list[Decision], words: str) -> None:
    engine = simulator(cluster([8]), [job("a", iterations=2, compute_s=10.0)])
    engine.next_question()
    engine.answer([Start(0, on({0: 1})), Wake(4 * S)])
    engine.next_question()
    with pytest.raises(PolicyError, match=words):
        engine.answer(decisions)
    engine.answer([])  # nothing has changed
    assert finishes(engine.run(Script({}))) == {"a": 20.0}


# -- rates ---------------------------------------------------------------------------------


def test_the_rate_function_is_asked_once_per_instant_with_each_changed_job_once() -> None:
    jobs = [job("a"), job("b"), job("c", arrival_s=4.0), job("d", arrival_s=5.0)]
    script = Script(
        {
            0: [Start(0, on({0: 1})), Start(1, on({0: 1}))],
            4: [Migrate(0, on({1: 1})), Preempt(1), Start(2, on({0: 1}))],
            10: [Start(1, on({0: 1})), Start(3, on({0: 1}))],
        }
    )
    rates = speeds()
    run(cluster([8, 8]), jobs, script, rates)
    assert [(now / S, sorted(changed)) for now, changed in rates.calls] == [
        (0, [0, 1]),
        (4, [0, 1, 2]),  # not at 5 s: an arrival changes no rate
        (10, [0, 1, 3]),  # a finished, b and d started
        (14, [2]),
        (16, [1]),
        (20, [3]),
    ]


def test_a_rate_that_asks_to_be_asked_again_is() -> None:
    # Iterations of 1 s until the fourth is done, of 3 s afterwards.
    rates = Rates(
        lambda now, running: dict.fromkeys(
            running, rate(1.0, until=4) if now < 4 * S else rate(3.0)
        )
    )
    script = Script({0: [Start(0, on({0: 1}))]})
    rows = run(cluster([8]), [job("a")], script, rates)
    assert [now / S for now, _ in rates.calls] == [0, 4, 22]
    assert finishes(rows) == {"a": 22.0}
    assert [row.iterations for row in intervals(rows, 0)] == [4, 6]
    assert script.asked == [0, 22 * S]  # no question: nothing happened that a policy may see


def test_a_rate_until_an_iteration_that_is_done_is_not_asked_about_at_once() -> None:
    rates = Rates(lambda now, running: dict.fromkeys(running, rate(1.0, until=0)))
    run(cluster([8]), [job("a")], Script({0: [Start(0, on({0: 1}))]}), rates)
    assert rates.calls == [(0, [0]), (10 * S, [0])]


def test_a_rate_that_only_asks_again_later_ends_no_interval() -> None:
    rates = Rates(
        lambda now, running: dict.fromkeys(running, rate(1.0)._replace(until=now + 3 * S))
    )
    rows = run(cluster([8]), [job("a")], Script({0: [Start(0, on({0: 1}))]}), rates)
    assert [now // S for now, _ in rates.calls] == [0, 3, 6, 9, 10]
    assert len(intervals(rows, 0)) == 1
    assert finishes(rows) == {"a": 10.0}


def test_the_same_rate_again_changes_nothing() -> None:
    jobs = [job("a"), job("b", arrival_s=4.5, iterations=1)]
    script = Script({0: [Start(0, on({0: 1}))], 4.5: [Start(1, on({0: 1}))]})
    rows = run(cluster([8]), jobs, script, speeds())
    assert len(intervals(rows, 0)) == 1


def test_re_rating_at_every_event_conserves_work_to_the_last_iteration() -> None:
    # Speed falls with the number of jobs that run: two share what one had.
    jobs = [job(f"j{index}", iterations=30, arrival_s=3.7 * index) for index in range(12)]

    shared = Rates(lambda now, running: dict.fromkeys(running, rate(0.3 * len(running))))
    rows = run(cluster([16]), jobs, make_policy("fifo"), shared)
    assert len(rows.placements) > 100
    for handle in range(len(jobs)):
        parts = intervals(rows, handle)
        assert sum(row.iterations for row in parts) == 30
        assert [row.end for row in parts[:-1]] == [row.start for row in parts[1:]]
    # Work conserved: the last of 360 iterations of 0.3 s leaves a server that never idles.
    assert abs(max(row.finish for row in rows.jobs) - 108 * S) <= len(rows.placements)


PLAIN = rate(1.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "job 'a' runs, but was given no rate"),
        ({0: PLAIN, 1: PLAIN}, "a rate for job 'b', which does not run"),
        ({0: 1.5}, "gave 1.5, expected a Rate"),
        ({0: PLAIN._replace(iteration_s=0.0)}, "gave iterations of 0.0 s"),
        ({0: PLAIN._replace(iteration_s=math.nan)}, "gave iterations of nan s"),
        ({0: PLAIN._replace(alone_iteration_s=math.inf)}, "alone inf s"),
        ({0: PLAIN._replace(worth=1e9)}, "worth 1000000000.0 submitted iterations"),
        ({0: PLAIN._replace(worth=-1.0)}, "worth -1.0 submitted iterations"),
        ({0: PLAIN._replace(until_iteration=math.inf)}, "asked at iteration inf or tick None"),
        ({0: PLAIN._replace(until=1.5)}, "asked at iteration None or tick 1.5"),
    ],
)
def test_an_answer_that_is_not_a_rate_of_each_running_job_is_a_broken_law(answer, words) -> None:
    rates = Rates(lambda now, running: answer)
    with pytest.raises(InvariantError, match=re.escape(words)):
        run(cluster([8]), [job("a"), job("b")], Script({0: [Start(0, on({0: 1}))]}), rates)


def test_an_iteration_takes_its_compute_time_and_the_networks_share() -> None:
    tree = cluster([4, 4], [4])
    rates = AloneRates(tree, EstimateByLevel(tree, rack=0.25, network=1.0))
    jobs = [job("one", gpus=2), job("rack", gpus=2), job("far", gpus=2)]
    places = ({0: 2}, {0: 1, 1: 1}, {0: 1, 2: 1})
    script = Script({0: [Start(handle, on(place)) for handle, place in enumerate(places)]})
    rows = run(tree, jobs, script, rates)
    assert finishes(rows) == {"one": 10.0, "rack": 12.5, "far": 20.0}
    assert [tree.levels[intervals(rows, handle)[0].tier].name for handle in range(3)] == [
        "machine",
        "rack",
        "network",
    ]


def test_a_job_on_a_third_of_its_gpus_takes_three_times_as_many_iterations() -> None:
    jobs = [job("a", gpus=3, gpus_min=1, gpus_max=6, iterations=10)]
    script = Script(
        {
            0: [Start(0, on({0: 3})), Wake(4 * S)],
            4: [Migrate(0, on({0: 1})), Wake(10 * S)],
            10: [Migrate(0, on({0: 6}))],
        }
    )
    rows = run(cluster([8]), jobs, script)
    # 4 iterations, then 6 that are worth 2, then 2 that are worth 4.
    assert [row.iterations for row in intervals(rows, 0)] == [4, 6, 2]
    assert finishes(rows) == {"a": 12.0}


# -- rows ----------------------------------------------------------------------------------


def test_the_timeline_has_one_row_per_change() -> None:
    jobs = [job("a", gpus=4), job("b", gpus=8, arrival_s=4.0)]
    script = Script({0: [Start(0, on({0: 4})), Wake(2 * S)], 10: [Start(1, WHOLE)]})
    rows = run(cluster([8]), jobs, script)
    assert [tuple(row) for row in rows.timeline] == [
        (0, 4, 1, 0),
        (4 * S, 4, 1, 1),
        (10 * S, 8, 1, 0),
        (20 * S, 0, 0, 0),
    ]


def test_a_job_row_counts_the_time_on_gpus_and_the_stays() -> None:
    script = Script(
        {
            3: [Start(0, on({0: 1})), Start(1, on({1: 1})), Wake(5 * S)],
            5: [Preempt(0), Wake(9 * S)],
            9: [Start(0, on({0: 1})), Wake(12 * S)],
            12: [Migrate(0, on({1: 1}))],
        }
    )
    rows = run(cluster([8, 8]), [job("a", arrival_s=1.0), job("b", arrival_s=3.0)], script)
    row = next(row for row in rows.jobs if row.job.id == "a")
    assert (row.arrival, row.start, row.finish, row.run) == (S, 3 * S, 17 * S, 10 * S)
    assert (row.preemptions, row.migrations) == (1, 1)


def test_time_never_goes_back() -> None:
    jobs = [job("a", arrival_s=5.0), job("b", arrival_s=1.0)]
    with pytest.raises(InvariantError, match="time went back"):
        run(cluster([8]), jobs, Script({}))


# -- telling why a job waits -----------------------------------------------------------


def test_the_reason_of_a_wait_is_written_when_it_changes() -> None:
    jobs = [job("a", iterations=20), job("b", iterations=3)]
    script = {
        0: [Start(0, on({0: 1})), Wait(1, "one"), Wake(S), Wake(2 * S), Wake(3 * S)],
        1: [Wait(1, "one")],
        2: [Wait(1, "two"), Wait(1, "three")],
        3: [Preempt(0, "make room"), Wait(0, "for b"), Start(1, on({0: 1}))],
        6: [Start(0, on({0: 1}))],
    }
    rows = run(cluster([1]), jobs, Script(script))
    assert [(seconds(row.tick), row.handle, row.reason) for row in rows.wait_reasons] == [
        (0.0, 1, "one"),
        (2.0, 1, "two"),
        (2.0, 1, "three"),
        (3.0, 0, "for b"),
    ]


def test_a_reason_is_written_again_when_a_job_waits_again() -> None:
    script = {
        0: [Wait(0, "so"), Wake(S)],
        1: [Start(0, on({0: 1})), Wake(2 * S)],
        2: [Preempt(0), Wait(0, "so"), Wake(3 * S)],
        3: [Start(0, on({0: 1}))],
    }
    rows = run(cluster([1]), [job("a")], Script(script))
    assert [row.tick for row in rows.wait_reasons] == [0, 2 * S]


def test_stating_reasons_of_waits_changes_nothing_else() -> None:
    class Talker(Classic):
        def decide(self, view: ClusterView) -> list[Decision]:
            decisions = list(super().decide(view))
            gone = {one.handle for one in decisions if isinstance(one, Start)}
            told = [Wait(handle, f"at {view.now}") for handle in view.waiting if handle not in gone]
            return [*told, *decisions]

    jobs = [job(f"j{i}", 1 + i % 3, 10 + i, arrival_s=float(i)) for i in range(20)]
    options = ClassicOptions(order="service", preemption="lease", lease_s=7)
    quiet = run(cluster([2, 2]), jobs, Classic(options), lease_s=7.0)
    talking = run(cluster([2, 2]), jobs, Talker(options), lease_s=7.0)
    assert talking.wait_reasons
    assert (talking.placements, talking.jobs, talking.timeline) == (
        quiet.placements,
        quiet.jobs,
        quiet.timeline,
    )
    assert (talking.events, talking.questions) == (quiet.events, quiet.questions)


def test_gpus_out_of_service_are_written_down() -> None:
    events = Outage(Withdraw(S, on({0: 1, 1: 2})), Restore(4 * S, on({1: 1})))
    script = Script({0: [Start(0, on({0: 1}))]})
    rows = simulator(cluster([2, 2]), [job("a")], events=events).run(script)
    assert rows.withdrawn == [(S, 3), (4 * S, 2)]
