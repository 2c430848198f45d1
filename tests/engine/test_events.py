"""Is the order of events the written one?"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import (
    Outage,
    Rates,
    S,
    Script,
    cluster,
    finishes,
    intervals,
    job,
    on,
    question,
    rate,
    run,
    simulator,
    speeds,
)

from artist.contract import Preempt, Restore, Start, Wake, Withdraw
from artist.engine.events import EventKind, EventQueue
from artist.engine.rows import EndReason


def test_the_written_order_of_kinds() -> None:
    assert [kind.name for kind in sorted(EventKind)] == [
        "FINISH",
        "LEASE_END",
        "RATE_END",
        "OUTSIDE",
        "ARRIVAL",
        "WAKE",
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(EventKind))))
def test_any_events_leave_in_order_of_tick_kind_and_serial(pushed: list) -> None:
    queue = EventQueue()
    for serial, (tick, kind) in enumerate(pushed):
        queue.push(tick, kind, handle=-serial)
    events = []
    while queue.next_events():
        events.append(queue.pop()[:4])
    assert events == sorted((*event, n, -n) for n, event in enumerate(pushed))


# Whole days of the queue are the ticks at which one day ends and the next begins.
@pytest.mark.parametrize(("mean", "unit"), [(1, 1), (60 * S, 1), (86400 * S, 1), (60 * S, 2**36)])
def test_very_many_events_leave_in_the_same_order_while_others_are_pushed(
    mean: int, unit: int
) -> None:
    random = Random(mean)
    queue, serials, expected, left = EventQueue(), count(), [], []

    def push(now: int) -> None:
        tick = now + int(random.expovariate(1 / mean)) * random.randint(0, 1)
        tick = -(-tick // unit) * unit
        serial, kind = next(serials), random.choice(list(EventKind))
        queue.push(tick, kind, serial)
        heappush(expected, (tick, kind, serial))

    for _ in range(1_500):  # more than a heap alone holds
        push(0)
    for _ in range(3_000):
        for _ in range(random.randint(0, 1)):
            push(left[-1][0] if left else 0)
        if queue.next_events():
            left.append(queue.pop()[:3])
            assert left[-1] == heappop(expected)
    assert sorted(event[:3] for event in queue) == sorted(expected)
    assert len(expected) < 1_500  # days have come and gone


# -- where a run shows the order ---------------------------------------------------------


def test_a_job_that_ends_frees_its_gpus_before_a_simultaneous_arrival_is_seen() -> None:
    jobs = [job("a", gpus=8), job("b", gpus=8, arrival_s=10.0)]
    script = Script({0: [Start(0, on({0: 8}))], 10: [Start(1, on({0: 8}))]})
    rows = run(cluster([8]), jobs, script)
    assert finishes(rows) == {"a": 10.0, "b": 20.0}
    assert script.asked == [0, 10 * S, 20 * S]  # one question at 10 s, not two


def test_a_lease_that_ends_is_seen_together_with_a_simultaneous_arrival() -> None:
    jobs = [job("a", gpus=8, iterations=20), job("b", gpus=8, arrival_s=10.0)]
    script = Script(
        {
            0: [Start(0, on({0: 8}))],
            10: [Preempt(0), Start(1, on({0: 8}))],
            20: [Start(0, on({0: 8}))],
        }
    )
    rows = run(cluster([8]), jobs, script, lease_s=10.0)
    assert intervals(rows, 0)[0].reason is EndReason.LEASE_ENDED
    assert finishes(rows) == {"b": 20.0, "a": 30.0}


def test_at_one_tick_jobs_that_finish_are_reported_before_rates_that_end() -> None:
    rates = Rates(
        lambda now, running: {handle: rate(1.0, until=None if handle else 10) for handle in running}
    )
    jobs = [job("long", iterations=20), job("short", iterations=10)]
    run(cluster([8]), jobs, Script({0: [Start(0, on({0: 1})), Start(1, on({0: 1}))]}), rates)
    assert rates.calls[1] == (10 * S, [1, 0])


def test_a_rate_that_ends_is_handled_before_gpus_leave_service() -> None:
    until_ten = rate(1.0)._replace(until=10 * S)
    rates = Rates(lambda now, running: dict.fromkeys(running, until_ten))
    outage = Outage(Withdraw(10 * S, on({0: 8})), Restore(10 * S, on({0: 8})))
    script = Script({0: [Start(0, on({0: 1}))], 10: [Start(0, on({0: 1}))]})
    engine = simulator(cluster([8]), [job("a", iterations=20)], rates, events=outage)
    rows = engine.run(script)
    assert finishes(rows) == {"a": 20.0}
    # Arrival, rate end, two outside, finish. The other way round the rate would have been stale.
    assert rows.events == 5


def test_gpus_leave_service_before_a_simultaneous_arrival_is_seen() -> None:
    outage = Outage(Withdraw(10 * S, on({0: 8})), Restore(12 * S, on({0: 8})))
    jobs = [job("a", gpus=8, iterations=20), job("b", arrival_s=10.0)]
    script = Script(
        {
            0: [Start(0, on({0: 8}))],
            12: [Start(1, on({0: 1})), Wake(30 * S)],
            30: [Start(0, on({0: 8}))],
        }
    )
    simulator(cluster([8]), jobs, events=outage).run(script)
    assert script.waiting[1] == [0, 1]  # the job that lost its GPUs entered first


def test_a_wake_up_sees_jobs_that_arrive_at_its_tick() -> None:
    jobs = [job("a"), job("b", arrival_s=5.0)]
    script = Script(
        {
            0: [Start(0, on({0: 1})), Wake(5 * S)],
            5: [Start(1, on({0: 1}))],
        }
    )
    run(cluster([8]), jobs, script)
    assert script.asked == [0, 5 * S, 10 * S, 15 * S]


def test_simultaneous_arrivals_come_forward_in_the_order_of_the_input() -> None:
    view = question(simulator(cluster([8]), [job("z"), job("a"), job("m")]))
    assert [state.job.id for state in view.entered] == ["z", "a", "m"]


def test_events_of_an_earlier_stay_are_dropped_when_their_tick_comes() -> None:
    # Without epochs the finish scheduled at 0 would end the job at 10 s.
    script = Script({0: [Start(0, on({0: 1})), Wake(4 * S)], 4: [Preempt(0), Wake(7 * S)]})
    script.decisions[7 * S] = [Start(0, on({0: 1}))]
    rows = run(cluster([8]), [job("a")], script)
    assert finishes(rows) == {"a": 13.0}
    assert rows.events == 4  # arrival, two wake-ups, one finish


def test_events_of_an_earlier_rate_are_dropped_when_their_tick_comes() -> None:
    # At twice the speed from 4 s on, the remaining six iterations take three seconds.
    rates = speeds(lambda now: 1.0 if now < 4 * S else 2.0)
    jobs = [job("a"), job("b", iterations=1, arrival_s=4.0)]
    script = Script({0: [Start(0, on({0: 1}))], 4: [Start(1, on({0: 1}))]})
    rows = run(cluster([8]), jobs, script, rates)
    assert finishes(rows) == {"b": 4.5, "a": 7.0}
    assert rows.events == 4  # two arrivals, two finishes


def test_a_job_preempted_for_good_is_reported_as_finished_and_never_waits() -> None:
    jobs = [job("a", gpus=8, iterations=20), job("b", gpus=8, arrival_s=10.5)]
    script = Script(
        {0: [Start(0, on({0: 8}))], 10.5: [Preempt(0, "why", True), Start(1, on({0: 8}))]}
    )
    rows = run(cluster([8]), jobs, script)
    assert finishes(rows) == {"a": 10.5, "b": 20.5}
    assert [(row.iterations, row.lost, row.ended) for row in intervals(rows, 0)] == [
        (10, S // 2, "cancelled: why")
    ]
    assert [(row.job.id, row.cancelled, row.preemptions) for row in rows.jobs] == [
        ("a", True, 1), ("b", False, 0),
    ]  # fmt: skip
