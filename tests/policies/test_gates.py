"""Does a job keep its GPUs if only what is refused would have taken them?"""

from __future__ import annotations

import pytest
from support import cluster, job, on, question, simulator

from artist.contract import ClusterView, Decision, Migrate, Preempt, Start, Wait
from artist.contract.gates import without

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
    ],
    ids=["victims", "and what is said of them", "not another one", "not one that a second start "
         "needs", "a move out of the way", "not a move for its own sake"],
)  # fmt: skip
def test_what_served_only_a_refused_start_falls_with_it(
    view: ClusterView, answer: list[Decision], kept: list[Decision]
) -> None:
    assert without(answer, {BIG}, view, "") == (kept, [BIG])
