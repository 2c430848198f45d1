"""Gandiva: each rule on a trace worked out by hand. Comments derive the expected times."""

from __future__ import annotations

import pytest
from paper_cases import count, job, leaves, run, times

from artist.policies.gandiva.options import GandivaOptions
from artist.policies.gandiva.policy import Gandiva
from artist.rng import FIRST_DRAWS, Draws
from artist.units import TICKS_PER_S as S
from artist.units import seconds


def gandiva(draws: Draws = FIRST_DRAWS, **options: object) -> Gandiva:
    return Gandiva(GandivaOptions.model_validate({"quantum_s": 10, **options}), draws)


# -- affinity ------------------------------------------------------------------------


def test_jobs_of_one_demand_share_machines() -> None:
    jobs = [
        job("two", 0, 2, 9),  # machine 0, idle
        job("one", 0, 1, 9),  # machine 1: idle comes before another affinity
        job("one-again", 0, 1, 9),  # machine 1: same affinity
        job("third", 0, 1, 9),  # machine 1: same affinity, the last GPU there
        job("fourth", 0, 1, 9),  # machine 0: another affinity, but room
    ]
    assert leaves(run(gandiva(), [[3, 3]], jobs), jobs) == {
        "two": [(0,)],
        "one": [(1,)],
        "one-again": [(1,)],
        "third": [(1,)],
        "fourth": [(0,)],
    }


def test_the_least_loaded_machine_of_the_affinity_comes_first() -> None:
    jobs = [
        job("a", 0, 1, 9),  # machine 0
        job("b", 0, 1, 9),  # machine 0
        job("c", 0, 1, 9),  # machine 0 is full: machine 1
        job("d", 0, 1, 20),  # machine 1
        job("e", 0, 1, 20),  # machine 1 is full: machine 2
        job("f", 9.5, 1, 1),  # free: 2 (idle), 1 and 1, not 0: the affinity's first machine
    ]
    taken = leaves(run(gandiva(migrate=False), [[2, 2, 2]], jobs), jobs)
    assert (taken["c"], taken["e"], taken["f"]) == ([(1,)], [(2,)], [(1,)])


def test_an_idle_machine_has_no_affinity() -> None:
    jobs = [
        job("two", 0, 2, 9),  # machine 0
        job("one", 0, 1, 5),  # machine 1 has affinity 1 until 5
        job("two-again", 6, 2, 2),  # machine 1, by now idle; machine 0 has one GPU
        job("one-again", 6, 1, 2),  # both have affinity 2 now and one GPU: the first
    ]
    taken = leaves(run(gandiva(), [[3, 3]], jobs), jobs)
    assert taken["two-again"] == [(1,)]
    assert taken["one-again"] == [(0,)]


# -- scatter and migration ---------------------------------------------------------------


@pytest.mark.parametrize(("migrate", "finish"), [(True, 24), (False, 31)])
def test_a_scattered_job_migrates_into_one_machine(migrate: bool, finish: float) -> None:
    jobs = [
        job("a", 0, 2, 10),  # machine 0 until 10
        job("b", 0, 2, 40),  # machine 1
        job("c", 1, 2, 20),  # the last GPU of each; 1-10: 6 of 1.5 s; then 14 of 1 s, or of 1.5
    ]
    rows = run(gandiva(migrate=migrate), [[3, 3]], jobs)
    assert times(rows) == {"a": (0, 10), "b": (0, 40), "c": (1, finish)}
    assert count(rows, "migrations") == ({"c": 1} if migrate else {})


def test_a_job_moves_from_the_network_into_a_rack() -> None:
    jobs = [
        job("a", 0, 1, 40),  # machine 0, rack 0
        job("b", 0, 1, 4),  # machine 1, rack 0
        job("d", 0, 1, 10),  # machine 2, rack 1
        job("c", 1, 2, 9),  # 4-10 on 1 and 3: 3 of 2 s; then on 2 and 3: 6 of 1.5 s
    ]
    rows = run(gandiva(quantum_s=1000), [[1, 1], [1, 1]], jobs)
    assert times(rows)["c"] == (4, 19)
    assert count(rows, "migrations") == {"c": 1}
    assert leaves(rows, jobs)["c"] == [(1, 3), (2, 3)]


def test_a_nearly_empty_machine_is_emptied_into_a_fuller_one() -> None:
    jobs = [
        job("two", 0, 2, 20),  # machine 0
        job("one", 0, 1, 20),  # machine 1: 3 of 4 GPUs free
        job("short", 0, 2, 5),  # machine 0 until 5, when one moves there (2 free, fewer than 3)
    ]
    rows = run(gandiva(), [[4, 4]], jobs)
    assert leaves(rows, jobs)["one"] == [(1,), (0,)]
    assert count(rows, "migrations") == {"one": 1}
    rows = run(gandiva(fragmented_share=0.8), [[4, 4]], jobs)
    assert count(rows, "migrations") == {}


def test_a_free_share_that_is_reached_exactly_counts_in_spite_of_rounding() -> None:
    jobs = [
        job("ten", 0, 10, 20),  # machine 0
        job("short", 0, 10, 5),  # machine 0 until 5: 10 free
        job("nine", 0, 9, 20),  # machine 1: 11 of 20 free, which is 0.55; 0.55 x 20 > 11 in floats
    ]
    assert leaves(run(gandiva(fragmented_share=0.55), [[20, 20]], jobs), jobs)["nine"] == [
        (1,),
        (0,),
    ]


# -- time slices -------------------------------------------------------------------------


def test_two_jobs_take_turns() -> None:
    jobs = [
        job("a", 0, 1, 25),  # 0-10, 20-30, 35-40
        job("b", 0, 1, 15),  # 10-20, 30-35
    ]
    rows = run(gandiva(), [[1]], jobs)
    assert times(rows) == {"a": (0, 40), "b": (10, 35)}
    assert count(rows, "preemptions") == {"a": 2, "b": 1}


def test_slices_of_another_permutation_have_a_phase() -> None:
    draws = Draws(permutation=1)
    phase = draws.phase(10 * S)
    assert 0 < phase < 10 * S
    jobs = [
        job("a", 3, 1, 25 * S, compute_s=1e-9),  # iterations of a tick: none is cut
        job("b", 3, 1, 15 * S, compute_s=1e-9),
    ]
    assert times(run(gandiva(draws), [[1]], jobs))["b"][0] == seconds(3 * S + phase)


def test_slices_do_not_end_while_no_job_waits() -> None:
    rows = run(gandiva(), [[1]], [job("a", 0, 1, 95)])
    assert rows.questions == 2  # arrival and finish


def test_a_gang_gets_its_turn() -> None:
    jobs = [
        job("a", 0, 1, 30),
        job("b", 0, 1, 30),
        job("gang", 1, 2, 10),  # at 10 before both
    ]
    assert times(run(gandiva(), [[2]], jobs)) == {"a": (0, 40), "b": (0, 40), "gang": (10, 20)}


def test_a_slice_is_at_least_one_iteration() -> None:
    jobs = [
        job("a", 0, 1, 2, compute_s=25.0),  # none done at 10 and 20, one at 30; 40-65
        job("b", 1, 1, 10),  # 30-40
    ]
    rows = run(gandiva(), [[1]], jobs)
    assert times(rows) == {"a": (0, 65), "b": (30, 40)}


def test_the_scatter_is_seeded() -> None:
    jobs = [job("a", 0, 5, 9), job("b", 0, 4, 9)]
    cluster = [[1] * 8, [1] * 8]

    def placements(seed: int) -> dict:
        return leaves(run(gandiva(Draws(seed), migrate=False), cluster, jobs), jobs)

    assert placements(1) == placements(1)
    assert len({str(placements(seed)) for seed in range(5)}) > 1
