"""Does a job keep its GPUs if only what is refused would have taken them?"""

from __future__ import annotations

import pytest
from support import EstimateByLevel, cluster, job, on, question, simulator

from artist.contract import ClusterView, Decision, Migrate, Preempt, Start, Wait, Wake
from artist.contract.gates import without
from artist.engine.simulator import Simulator
from artist.network.rates.isolated import AloneRates

FIRST, SECOND, THIRD, BIG, SMALL = range(5)


@pytest.fixture
def view() -> ClusterView:
    """Three machines of four GPUs. On the first run two jobs of two, on the second one of three."""
    sizes = {"first": 2, "second": 2, "third": 3, "big": 4, "small": 1}
    engine = simulator(cluster([4, 4, 4]), [job(name, gpus) for name, gpus in sizes.items()])
    question(engine)
    engine.answer([Start(FIRST, on({0: 2})), Start(SECOND, on({0: 2})), Start(THIRD, on({1: 3}))])
    return engine.view()


MOVE = Migrate(THIRD, on({2: 3}))
SHRINK = Migrate(THIRD, on({1: 2}))
BOTH = [Preempt(FIRST), Preempt(SECOND), Start(BIG, on({0: 4}))]


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (BOTH, []),
        ([*BOTH, Wait(FIRST, "it was preempted")], []),
        ([*BOTH, Preempt(THIRD)], [Preempt(THIRD)]),
        (
            [*BOTH[:2], Start(BIG, on({0: 3, 2: 1})), Start(SMALL, on({0: 1}))],
            [Preempt(FIRST), Start(SMALL, on({0: 1}))],
        ),
        ([MOVE, Start(BIG, on({1: 4}))], []),
        ([MOVE, Start(BIG, on({1: 1, 2: 1}))], [MOVE]),
        ([SHRINK, Start(BIG, on({1: 2, 2: 1}))], []),
        ([SHRINK, Start(BIG, on({1: 1, 2: 1}))], [SHRINK]),
    ],
    ids=["victims", "and what is said of them", "not another one", "not one that a second start "
         "needs", "a move out of the way", "not a move for its own sake", "GPUs given up for it",
         "not GPUs given up for another question"],
)  # fmt: skip
def test_what_served_only_a_refused_start_falls_with_it(
    view: ClusterView, answer: list[Decision], kept: list[Decision]
) -> None:
    assert without(answer, {BIG}, view, "") == (kept, [BIG])


def test_where_nothing_is_refused_nothing_falls(view: ClusterView) -> None:
    """This includes GPUs given up for a job that starts only at the next question."""
    for answer in ([SHRINK], [MOVE], [Preempt(FIRST)], BOTH):
        assert without(answer, (), view, "") == (answer, [])


A, B, C = on({0: 1}), on({1: 1}), on({2: 1})


@pytest.mark.parametrize(
    ("answer", "refused", "gone"),
    [
        ([Migrate(0, C), Start(2, A, beside=1)], {0}, [0]),
        ([Migrate(0, C), Preempt(3), Start(2, B)], {0}, [3]),
        ([Migrate(0, B), Preempt(3), Migrate(1, C), Start(2, A)], {0, 1}, [0, 1]),
        ([Migrate(0, B), Preempt(3), Migrate(1, C), Start(2, A)], {0}, [0]),
        ([Migrate(0, B), Preempt(3), Migrate(1, C), Start(2, A)], {0, 1, 2}, []),
        (
            [Preempt(1), Preempt(5), Migrate(3, A, beside=0), Start(4, A), Start(2, B)],
            {2},
            [1, 5],
        ),
    ],
    ids=["another comes beside the one that stays", "nobody does", "both would leave, for another",
         "one does", "that is refused", "a move beside another leaves no GPUs there"],
)  # fmt: skip
def test_what_is_left_of_an_answer_about_shared_gpus_is_lawful(
    answer: list[Decision], refused: set[int], gone: list[int]
) -> None:
    # Jobs 0 and 1 share a GPU of machine 0, job 5 has the other one, and job 3 that of machine 1.
    tree, jobs = cluster([2, 1, 1]), [job(name) for name in "abcdef"]
    engine = Simulator(
        tree, jobs, AloneRates(tree, EstimateByLevel(tree)), jobs_per_gpu=2, check=True
    )
    starts = [Start(0, A), Start(5, A), Start(3, B), Wake(1)]
    for earlier in (starts, [Start(1, A, beside=0), Wake(2)]):
        question(engine)
        engine.answer(earlier)
    question(engine)
    kept, _ = without(answer, refused, engine.view(), "gate")
    assert [x.handle for x in kept if isinstance(x, Preempt)] == gone
    engine.answer(kept)
