"""Does the auto-tuner compute what Algorithm 2 of the Dally paper says?"""

from __future__ import annotations

import math
from collections import deque

from hypothesis import given
from hypothesis import strategies as st
from support import interpreted

from artist.cluster.tree import regular
from artist.policies.dally import timers
from artist.policies.dally.timers import AutoTuner
from artist.units import ticks

TREE = regular(racks=2, machines_per_rack=2, gpus_per_machine=4)
MACHINE, RACK = TREE.machine, TREE.machine + 1


def tuner(history_s: float = 1000.0) -> AutoTuner:
    return AutoTuner(ticks(history_s), 2.0)


def test_without_history_there_is_no_tuned_timer() -> None:
    assert tuner().timer(MACHINE, 4, ticks(5)) is None


def test_one_wait_is_the_timer_because_its_deviation_is_zero() -> None:
    tuned = tuner()
    tuned.record(TREE, MACHINE, 4, ticks(30), ticks(100))
    assert tuned.timer(MACHINE, 4, ticks(100)) == ticks(30)


def test_timer_is_mean_plus_two_sample_deviations() -> None:
    tuned = tuner()
    for waited in (10, 20, 30):  # mean 20, sample deviation 10
        tuned.record(TREE, MACHINE, 4, ticks(waited), ticks(100))
    assert tuned.timer(MACHINE, 4, ticks(100)) == ticks(40)


def test_levels_and_demands_have_lists_of_their_own() -> None:
    tuned = tuner()
    tuned.record(TREE, MACHINE, 4, ticks(10), ticks(0))
    assert tuned.timer(RACK, 4, ticks(0)) is None
    assert tuned.timer(MACHINE, 2, ticks(0)) is None


def test_entries_leave_the_window_by_their_age() -> None:
    tuned = tuner(history_s=50)
    tuned.record(TREE, RACK, 4, ticks(10), ticks(0))
    tuned.record(TREE, RACK, 4, ticks(30), ticks(40))
    assert tuned.timer(RACK, 4, ticks(50)) == round(20e9 + 2 * 200**0.5 * 1e9)
    assert tuned.timer(RACK, 4, ticks(51)) == ticks(30)
    assert tuned.timer(RACK, 4, ticks(91)) is None


def test_waits_left_out_by_length_never_grow_old() -> None:
    tuned = AutoTuner(ticks(50), 2.0, by_length=True)
    tuned.record(TREE, RACK, 4, ticks(50), ticks(0))
    tuned.record(TREE, RACK, 4, ticks(51), ticks(0))
    assert tuned.timer(RACK, 4, ticks(1000)) == ticks(50)


def test_each_record_leaves_a_row_with_the_new_timer() -> None:
    tuned = tuner()
    tuned.record(TREE, RACK, 4, ticks(10), ticks(7))
    assert list(tuned.records) == [
        {"time_s": 7, "level": "rack", "gpus": 4, "waited_s": 10, "samples": 1, "timer_s": 10}
    ]


@given(
    waits=st.lists(st.integers(0, 10**15), min_size=2, max_size=40),
    equal=st.booleans(),
    population=st.booleans(),
)
def test_the_timer_from_sums_is_the_one_from_the_list(waits, equal, population) -> None:
    waits = [waits[0]] * len(waits) if equal else waits
    tuned = AutoTuner(ticks(1e9), 2.0, population=population)
    for waited in waits:
        tuned.record(TREE, MACHINE, 4, waited, 0)
    mean = sum(waits) / len(waits)
    squares = math.fsum((waited - mean) ** 2 for waited in waits)
    divisor = len(waits) - (not population)
    from_list = mean + 2.0 * math.sqrt(squares / divisor)
    timer = tuned.timer(MACHINE, 4, 0)
    assert timer is not None
    assert abs(timer - from_list) <= 0.5 + 2**-50 * from_list  # the nearest tick, but for rounding


@interpreted
def test_a_timer_of_long_waits_does_not_go_through_all_of_them(monkeypatch) -> None:
    class Unread(deque):
        def __iter__(self):
            raise AssertionError("went through the waits")

    monkeypatch.setattr(timers, "deque", Unread)
    tuned = tuner(history_s=1e9)
    for weeks in (2, 4, 6):  # a float cannot tell all ticks of such times apart
        tuned.record(TREE, MACHINE, 4, weeks * ticks(604_800), 0)
    assert tuned.timer(MACHINE, 4, 0) == 8 * ticks(604_800)
