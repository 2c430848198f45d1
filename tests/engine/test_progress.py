"""Is progress exact? Compared with hand-computed ticks and with exact fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import S, rate

from artist.contract import Rate
from artist.engine.progress import Progress
from artist.units import Tick


def running(iterations: int, speed: Rate, at: Tick = 0) -> Progress:
    progress = Progress(iterations)
    progress.start(at)
    progress.set_rate(speed)
    return progress


def iteration_ticks(iteration_s: float) -> Fraction:
    return Fraction(repr(iteration_s)) * S


# -- finishes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iterations", "iteration_s", "finish"),
    [
        (10, 0.1, S),  # though the float 0.1 is a little more than a tenth
        (36_000, 0.1, 3600 * S),
        (3, 1 / 3, S),
        (10**9, 1e-6, 1000 * S),
        (7, 1e6, 7_000_000 * S),
        (1, 2.5e-10, 1),  # a quarter of a tick takes a whole one
        (1_000_003, 0.0953, 95_300_285_900_000),  # 1,000,003 x 95,300,000 ns
    ],
)
def test_a_finish_is_iterations_times_their_length_rounded_up_once(
    iterations: int, iteration_s: float, finish: Tick
) -> None:
    assert running(iterations, rate(iteration_s)).finish() == finish


def test_a_job_is_complete_at_its_finish_and_not_a_tick_before() -> None:
    progress = running(3, rate(1 / 3))
    progress.settle(S - 1)
    assert not progress.complete
    progress.settle(S)
    assert progress.complete


@pytest.mark.parametrize("iteration_s", [0.1, 1 / 3, 0.7071067811865476, 1e-6, 1e6])
def test_ten_thousand_re_ratings_to_the_same_rate_move_no_finish_by_more_than_one_tick(
    iteration_s: float,
) -> None:
    iterations = 1000
    progress = running(iterations, rate(iteration_s))
    finish = progress.finish()
    for step in range(1, 10_001):
        progress.settle(finish * step // 10_001)
        progress.set_rate(rate(iteration_s))
    assert abs(progress.finish() - finish) <= 1


@pytest.mark.parametrize(
    ("fast", "slow"), [(0.1, 0.3), (1 / 3, math.pi), (1e-6, 1e-5), (1e5, 1e6), (1e-3, 1e6)]
)
def test_alternating_between_two_rates_ten_thousand_times_stays_within_two_ticks(
    fast: float, slow: float
) -> None:
    lengths = (iteration_ticks(fast), iteration_ticks(slow))
    step = math.ceil(lengths[1] / 7)  # never at an iteration's end
    iterations = math.ceil(10_000 * step / lengths[0])
    progress = running(iterations, rate(fast))
    exact = Fraction(0)
    for change in range(1, 10_001):
        exact += step / lengths[(change - 1) % 2]
        progress.settle(change * step)
        progress.set_rate(rate((fast, slow)[change % 2]))
    expected = 10_000 * step + (iterations - exact) * lengths[0]
    assert abs(progress.finish() - expected) <= 2


# -- phase ---------------------------------------------------------------------------


def test_re_rating_keeps_the_fraction_of_the_iteration_in_progress() -> None:
    progress = running(2, rate(10.0))
    progress.settle(5 * S)  # half of the first iteration
    progress.set_rate(rate(2.0))
    assert progress.finish() == 8 * S  # the other half takes 1 s, the second iteration 2 s


def test_stopping_falls_back_to_the_last_whole_iteration_and_says_what_was_lost() -> None:
    progress = running(5, rate(10.0))
    assert progress.settle(24 * S) == 2
    assert progress.stop() == 4 * S
    assert progress.done(100 * S) == 2
    progress.start(100 * S)
    progress.set_rate(rate(10.0))
    assert progress.finish() == 130 * S


def test_lost_work_is_valued_at_the_present_rate() -> None:
    progress = running(5, rate(10.0))
    progress.settle(5 * S)
    progress.set_rate(rate(4.0))
    progress.settle(5 * S)
    assert progress.stop() == 2 * S  # half an iteration


def test_nothing_is_done_before_the_start() -> None:
    progress = running(5, rate(10.0), at=100 * S)
    assert progress.settle(50 * S) == 0
    assert progress.done(109 * S) == 0
    assert progress.finish() == 150 * S


def test_a_hold_keeps_the_phase() -> None:
    progress = running(2, rate(10.0))
    progress.settle(4 * S)
    progress.hold(100 * S)
    assert progress.done(99 * S) == 0
    assert progress.finish() == 116 * S  # 6 s of the first iteration and the second


def test_a_hold_never_ends_an_earlier_one_early() -> None:
    progress = running(1, rate(10.0), at=50 * S)
    progress.hold(20 * S)
    assert progress.finish() == 60 * S


def test_a_start_forgets_a_hold_of_an_earlier_stay() -> None:
    progress = running(1, rate(10.0))
    progress.settle(5 * S)
    progress.hold(1000 * S)
    progress.stop()
    progress.start(20 * S)
    progress.set_rate(rate(10.0))
    assert progress.finish() == 30 * S


# -- boundaries ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "boundary"),
    [
        (0, 10 * S),  # at least one iteration from the anchor
        (10 * S, 10 * S),
        (10 * S + 1, 20 * S),
        (95 * S, 100 * S),
    ],
)
def test_a_boundary_is_the_first_end_of_an_iteration_at_or_after_a_tick(
    at: Tick, boundary: Tick
) -> None:
    assert running(100, rate(10.0)).boundary(at) == boundary


def test_an_end_that_is_rounded_up_to_a_tick_is_a_boundary_at_that_tick() -> None:
    # The third iteration of 1/3 s ends a little before 1 s, which is its tick.
    assert running(100, rate(1 / 3)).boundary(S) == S


def test_a_boundary_while_standing_still_is_the_end_of_the_first_iteration() -> None:
    assert running(100, rate(10.0), at=50 * S).boundary(20 * S) == 60 * S


@given(
    iteration_ns=st.integers(1, 10**12) | st.sampled_from([1, 2, 3, 10**15]),
    tenths=st.integers(0, 9),
    settled=st.integers(0, 10**13),
    ahead=st.integers(0, 10**13),
)
def test_boundaries_are_those_of_exact_fractions(
    iteration_ns: int, tenths: int, settled: int, ahead: int
) -> None:
    # Tenths of a nanosecond make ends fall between ticks.
    length = Fraction(10 * iteration_ns + tenths, 10)
    progress = running(10**18, rate(float(length / S)))
    length = iteration_ticks(float(length / S))
    progress.settle(settled)
    at = settled + ahead
    first = (at - 1) // length + 1  # the first whose end, rounded up, is at or after `at`
    later = settled // length + 1  # and later than the anchor
    assert progress.boundary(at) == math.ceil(max(first, later) * length)


# -- other than the requested number of GPUs ------------------------------------------


@pytest.mark.parametrize(
    ("share", "iterations", "own"),
    [
        (0.5, 10, 20),  # half the GPUs: an iteration is worth half
        (0.5, 11, 22),
        (2.0, 11, 6),  # twice the GPUs: eleven are done in six, not in five and a half
        (1 / 3, 1, 3),
        (2 / 3, 1, 2),  # 1.5 rounded up
        (1 / 3, 10**9, 3 * 10**9),
        (5 / 7, 10**6, 1_400_000),
        (3 / 64, 3, 64),
    ],
)
def test_the_last_of_a_jobs_own_iterations_is_whole(
    share: float, iterations: int, own: int
) -> None:
    progress = running(iterations, rate(1.0, share))
    assert progress.finish() == own * S
    assert progress.settle(own * S) == own
    assert progress.complete
    assert progress.done(own * S) == iterations


@given(st.integers(1, 10**6), st.integers(1, 128), st.integers(1, 128), st.floats(1e-4, 1e4))
def test_a_job_on_p_of_q_gpus_needs_q_over_p_times_its_iterations_rounded_up(
    iterations: int, p: int, q: int, iteration_s: float
) -> None:
    progress = running(iterations, rate(iteration_s, p / q))
    own = -(-iterations * q // p)
    assert progress.finish() == math.ceil(own * iteration_ticks(iteration_s))


def test_iterations_on_all_and_on_a_third_of_the_gpus_add_up() -> None:
    progress = running(10, rate(1.0))
    progress.settle(9 * S)
    progress.set_rate(rate(1.0, 1 / 3))
    assert progress.finish() == 12 * S
    assert [progress.done(at * S) for at in (11, 12)] == [9, 10]


def test_iterations_shorter_than_a_tick_are_not_counted_beyond_the_last() -> None:
    progress = running(15, rate(1e-10))  # 1.5 ticks in all
    assert progress.finish() == 2
    assert progress.settle(2) == 15


# -- until_iteration -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "until", "reached"),
    [
        (1.0, 4, 40 * S),
        (1.0, 3.5, 40 * S),  # at the end of an iteration
        (0.5, 4, 80 * S),
        (1 / 3, 1, 30 * S),
        (1.0, 0, 0),
    ],
)
def test_a_count_of_submitted_iterations_is_reached_at_the_end_of_an_iteration(
    share: float, until: float, reached: Tick
) -> None:
    assert running(100, rate(10.0, share)).reach(until) == reached


# -- everything together -----------------------------------------------------------------


@dataclass
class Exact:
    """The same job with fractions: slow and obviously right."""

    position: Fraction = Fraction(0)
    anchor: Tick = 0
    length: Fraction = Fraction(1)

    def settle(self, now: Tick) -> None:
        self.position += max(0, now - self.anchor) / self.length
        self.anchor = max(self.anchor, now)

    def finish(self, iterations: int) -> Fraction:
        return self.anchor + max(Fraction(0), iterations - self.position) * self.length


lengths_s = st.floats(1e-6, 1e6, allow_subnormal=False)
waits = st.integers(0, 10**16)
steps = st.one_of(
    st.tuples(st.just("rate"), waits, lengths_s),
    st.tuples(st.just("hold"), waits, waits),
    st.tuples(st.just("restart"), waits, waits),
)


@given(lengths_s, st.lists(steps, max_size=30))
def test_any_history_agrees_with_exact_fractions(first: float, history: list) -> None:
    iterations = 10**12
    progress, exact = running(iterations, rate(first)), Exact(length=iteration_ticks(first))
    now = 0
    present = first
    for kind, wait, value in history:
        now += wait
        if exact.finish(iterations) <= now:
            break
        progress.settle(now)
        exact.settle(now)
        if kind == "rate":
            present = value
            progress.set_rate(rate(value))
            exact.length = iteration_ticks(value)
        elif kind == "hold":
            progress.hold(now + value)
            exact.anchor = max(exact.anchor, now + value)
        else:
            lost = (exact.position % 1) * exact.length
            assert abs(progress.stop() - lost) <= 1 + len(history)
            exact.position = Fraction(exact.position // 1)
            progress.start(now + value)
            progress.set_rate(rate(present))
            exact.anchor = now + value
    # Each step may lose 2**-64 of an iteration.
    allowed = 2 + len(history) * exact.length / 2**64
    assert abs(progress.finish() - exact.finish(iterations)) <= allowed
