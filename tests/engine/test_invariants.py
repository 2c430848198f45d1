"""Does `--check` notice a broken invariant? Each test breaks one by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import S, Script, cluster, job, on, run, simulator

from artist.contract import Start, Wake
from artist.engine.invariants import check_rows
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.errors import InvariantError


def busy() -> Simulator:
    """Job 0 runs, job 1 waits, and a question is to be answered."""
    engine = simulator(cluster([8], [8]), [job("a", gpus=4), job("b", gpus=4)])
    engine.next_question()
    engine.answer([Start(0, on({0: 4})), Wake(S)])
    engine.next_question()
    return engine


def forget_a_release(engine: Simulator) -> None:
    engine._holdings.free.claim(on({1: 1}))


def lose_a_bucket(engine: Simulator) -> None:
    engine._holdings.free._levels[0].buckets[4] = 0


def miscount_the_cluster(engine: Simulator) -> None:
    engine._holdings.free.total += 1


def miscount_a_rack(engine: Simulator) -> None:
    engine._holdings.free._levels[1].counts[0] += 1


def wait_and_run(engine: Simulator) -> None:
    engine._holdings.waiting[0] = engine._holdings.running[0]


def run_without_gpus(engine: Simulator) -> None:
    engine._holdings.running[1] = engine._holdings.waiting.pop(1)


def wait_with_gpus(engine: Simulator) -> None:
    engine._holdings.waiting[1].placement = on({0: 1})


def forget_gpus_out_of_service(engine: Simulator) -> None:
    engine._holdings.withdrawn[1] = 2


BREAKAGES: dict[Callable[[Simulator], None], str] = {
    forget_a_release: "free \\+ held \\+ withdrawn differs",
    forget_gpus_out_of_service: "free \\+ held \\+ withdrawn differs",
    lose_a_bucket: "the index of machines is wrong",
    miscount_the_cluster: "of the cluster do not add up",
    miscount_a_rack: "free GPUs per rack do not add up",
    wait_and_run: "wait and run at once",
    run_without_gpus: "job 'b' runs without GPUs",
    wait_with_gpus: "job 'b' waits and holds GPUs",
}


@pytest.mark.parametrize("breakage", BREAKAGES, ids=lambda breakage: breakage.__name__)
def test_a_broken_state_is_found_at_the_next_event(breakage: Callable[[Simulator], None]) -> None:
    engine = busy()
    breakage(engine)
    with pytest.raises(InvariantError, match=BREAKAGES[breakage]):
        engine.answer([])


def finished() -> Rows:
    script = Script({0: [Start(0, on({0: 4}))], 10: [Start(1, on({0: 4}))]})
    return run(cluster([8]), [job("a", gpus=4), job("b", gpus=4, arrival_s=10.0)], script)


def test_the_rows_of_a_lawful_run_are_lawful() -> None:
    check_rows(finished())


def test_gpu_seconds_by_job_must_equal_the_timelines_integral() -> None:
    rows = finished()
    rows.timeline.gpus_held[0] = 3
    with pytest.raises(InvariantError, match="integral"):
        check_rows(rows)


@pytest.mark.parametrize(
    ("table", "row", "changes", "words"),
    [
        ("placements", 1, {"handle": 0, "start": 5, "end": 5 + 10 * S}, "in two places"),
        ("jobs", 1, {"arrival": 10 * S + 1}, "job 'b' ran when it was not there"),
        ("jobs", 0, {"finish": 10 * S + 1}, "job 'a' ran when it was not there"),
        ("jobs", 0, {"run": 1}, "job 'a' ran 1 ticks, its rows say otherwise"),
    ],
)
def test_rows_that_contradict_each_other_are_found(table, row, changes, words) -> None:
    rows = finished()
    of_table = getattr(rows, table)
    of_table[row] = of_table[row]._replace(**changes)
    with pytest.raises(InvariantError, match=words):
        check_rows(rows)
