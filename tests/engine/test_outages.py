"""Do GPUs leave and enter service as an event source says, and is only unavoidable work lost?"""

from __future__ import annotations

import pytest
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
    simulator,
)

from artist.cluster.placement import Placement
from artist.contract import Notice, OutsideEvent, Preempt, Restore, Start, Wake, Withdraw
from artist.contract import Outage as Cause
from artist.engine.rows import EndReason
from artist.errors import InvariantError, PolicyError

PLANNED = Cause("machine", 0, 9 * S, failed=False)


def test_a_job_whose_gpus_leave_service_waits_and_keeps_its_whole_iterations() -> None:
    events = Outage(Withdraw(int(3.5 * S), on({0: 4})), Restore(20 * S, on({0: 4})))
    engine = simulator(cluster([4, 4]), [job("a", gpus=2)], events=events)
    rows = engine.run(Script({0: [Start(0, on({0: 2}))], 3.5: [Start(0, on({1: 2}))]}))
    lost, rest = intervals(rows, 0)
    assert (lost.reason, lost.iterations, lost.lost) == (EndReason.WITHDRAWN, 3, S // 2)
    assert (rest.start, rest.iterations) == (int(3.5 * S), 7)
    assert finishes(rows) == {"a": 10.5}
    assert rows.jobs[0].preemptions == 1


def test_free_gpus_go_first_and_then_those_of_the_latest_arrival() -> None:
    events = Outage(Withdraw(2 * S, on({0: 3})), Restore(4 * S, on({0: 3})))
    jobs = [job("a", gpus=2), job("b", gpus=2), job("c", gpus=2)]
    script = Script(
        {
            0: [Start(handle, on({0: 2})) for handle in range(3)],
            4: [Start(2, on({0: 2}))],
        }
    )
    rows = simulator(cluster([8]), jobs, events=events).run(script)
    # Two of the three are free, the third is the last job's; its other GPU is free from then on.
    assert [len(intervals(rows, handle)) for handle in range(3)] == [1, 1, 2]
    assert [row.gpus_held for row in rows.timeline] == [6, 4, 6, 2, 0]


def test_a_policy_sees_no_gpu_that_is_out_of_service() -> None:
    events = Outage(Withdraw(0, on({0: 3})), Restore(9 * S, on({0: 3})))
    engine = simulator(cluster([4]), [job("a", gpus=2)], events=events)
    assert question(engine).free.total == 1
    with pytest.raises(PolicyError, match="2 GPUs of machine 0 claimed, but 1 are free"):
        engine.answer([Start(0, on({0: 2}))])


def test_rates_are_queried_with_the_gpus_that_a_job_has_left() -> None:
    script = Script(
        {
            0: [Start(0, on({0: 2})), Wake(S)],
            1: [Preempt(0), Wake(2 * S)],
            2: [Start(0, on({1: 2}))],
        }
    )
    heard = []

    class Listening(Rates):
        def __call__(self, now, running, changed):
            heard.extend((view.former_placement, view.placement) for view in changed)
            return super().__call__(now, running, changed)

    rates = Listening(lambda now, running: dict.fromkeys(running, rate(1.0)))
    simulator(cluster([4, 4]), [job("a", gpus=2)], rates).run(script)
    assert heard == [
        (None, on({0: 2})),
        (on({0: 2}), None),
        (on({0: 2}), on({1: 2})),
        (on({1: 2}), None),
    ]


def test_events_after_the_last_job_do_not_matter() -> None:
    events = Outage(Withdraw(5 * S, on({0: 1})), Restore(50 * S, on({0: 1})))
    rows = simulator(cluster([4]), [job("a")], events=events).run(
        Script({0: [Start(0, on({0: 1}))]})
    )
    assert rows.timeline[-1].tick == 10 * S


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([Withdraw(0, on({0: 5}))], "5 GPUs of machine 0 withdrawn, but 4 are in service"),
        ([Withdraw(0, on({7: 1}))], "1 GPUs of machine 7 withdrawn, but 0 are in service"),
        ([Withdraw(0, on({0: 3})), Withdraw(0, on({0: 3}))], "but 1 are in service"),
        ([Restore(0, on({0: 1}))], "1 GPUs of machine 0 restored, but 0 are out of service"),
        ([Withdraw(2 * S, on({0: 1})), Restore(S, on({0: 1}))], "not in the past"),
    ],
)
def test_a_source_that_contradicts_the_cluster_is_an_error(
    events: list[OutsideEvent], words: str
) -> None:
    engine = simulator(cluster([4]), [job("a")], events=Outage(*events))
    with pytest.raises(InvariantError, match=words):
        engine.run(Script({0: [Start(0, on({0: 1}))]}))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Withdraw(1.5, on({0: 1})), "whole tick"),  # type: ignore[arg-type]  # what is refused
        (Withdraw(S, Placement((0, 0), (1, 1))), "its placement lists leaves twice"),
        (Restore(S, Placement((), ())), "its placement has no GPUs"),
        (Preempt(0), "expected Withdraw, Restore or Notice"),
        (Notice(S, (), 2 * S, PLANNED), "expected leaves, and a later end"),
        (Notice(S, (0,), S, PLANNED), "expected leaves, and a later end"),
    ],
)
def test_what_is_not_an_event_is_named(event: OutsideEvent, words: str) -> None:
    with pytest.raises(InvariantError, match=words):
        simulator(cluster([4]), [job("a")], events=Outage(event))


def test_victims_enter_the_queue_in_order_of_arrival() -> None:
    events = Outage(Withdraw(S, on({0: 4})), Restore(2 * S, on({0: 4})))
    engine = simulator(cluster([4]), [job("a"), job("b"), job("c")], events=events)
    engine.next_question()
    engine.answer([Start(handle, on({0: 1})) for handle in range(3)])
    view = question(engine)
    assert list(view.waiting) == [state.handle for state in view.entered] == [0, 1, 2]
