"""Circles, unified circles and scores: the paper's figures by hand, and eqs. 1 to 4 by force."""

from __future__ import annotations

import itertools
import math
import statistics
from math import lcm

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import FIG_2, FIG_5, LINK_GBPS, TABLE_2, circle

from artist.errors import ConfigError
from artist.policies.cassini.job_circle import Arc, Circle
from artist.policies.cassini.link_circle import Choice, Periods, snapped_ratio, unify
from artist.policies.cassini.score import expected_score, link_circle
from artist.policies.cassini.time_shifts import SolverOptions, descent, exhaustive, score_at, solve
from artist.rng import stream

CENTRE = SolverOptions(choice=Choice.CENTRE)


def in_ms(times_s: tuple[float, ...] | None) -> list[float]:
    return [round(1e3 * time_s, 2) for time_s in times_s or ()]


@st.composite
def circles(draw: st.DrawFn, periods_ms: tuple[int, ...] = (40, 60, 80, 120)) -> Circle:
    """One or two Up phases on whole milliseconds."""
    period_ms = draw(st.sampled_from(periods_ms))
    cuts = draw(st.sets(st.integers(0, period_ms), min_size=2, max_size=4).filter(_even))
    ends = sorted(cuts)
    arcs = [
        Arc(start / 1e3, (end - start) / 1e3, draw(st.sampled_from((10.0, 25.0, 40.0, 50.0))))
        for start, end in zip(ends[::2], ends[1::2], strict=True)
    ]
    return Circle(period_ms / 1e3, tuple(arcs))


def _even(cuts: set[int]) -> bool:
    return len(cuts) % 2 == 0


# Circles ---------------------------------------------------------------------------------------


def test_figure_3_down_is_an_arc_of_200_degrees() -> None:
    vgg16 = circle(255, 255 - 141, 40)
    assert vgg16.arcs[0].start_s / vgg16.period_s * 360 == pytest.approx(199, abs=0.1)


def test_a_bin_that_an_arc_covers_partly_has_part_of_its_demand() -> None:
    # Four bins of 10 ms. Up from 15 ms on: half of the second bin.
    assert circle(40, 25, 8).demand_per_bin(4).tolist() == pytest.approx([0, 4, 8, 8])


@given(circles(), st.integers(1, 100))
def test_bins_lose_no_byte(one: Circle, bins: int) -> None:
    sent = sum(arc.demand * arc.length_s for arc in one.arcs)
    assert one.demand_per_bin(bins).mean() == pytest.approx(sent / one.period_s)


@given(circles(), st.integers(-200, 200))
def test_a_delay_turns_the_bins(one: Circle, by: int) -> None:
    bins = round(one.period_s * 1e3)
    delayed = one.delayed(by / 1e3).demand_per_bin(bins)
    assert delayed == pytest.approx(np.roll(one.demand_per_bin(bins), by), abs=1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Circle(0.0), "period 0 s"),
        (lambda: Circle(math.nan), "period nan s"),
        (lambda: Circle(1.0, (Arc(0.5, 0.6, 1.0),)), "ends at 1.1 s"),
        (lambda: Circle(1.0, (Arc(0.5, 0.2, 1.0), Arc(0.6, 0.1, 1.0))), "do not overlap"),
        (lambda: Circle(1.0, (Arc(-0.5, 0.2, 1.0),)), "start at 0"),
        (lambda: Circle(1.0, (Arc(0.5, 0.2, -1.0),)), "demand -1"),
        (lambda: circle(100, 101, 1), "expected 0 up to the period"),
        (lambda: solve([], 50.0), "without jobs"),
        (lambda: solve(FIG_5, 0.0), "capacity 0"),
        (lambda: unify([1.0], angle_deg=7), "angle 7 degrees"),
    ],
)
def test_a_pattern_that_is_not_a_circle_is_refused(make, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=words):
        make()


# Unified circles -------------------------------------------------------------------------------


def test_figure_5_has_a_perimeter_of_120_ms_and_three_and_two_turns() -> None:
    link = link_circle(FIG_5, LINK_GBPS)
    assert link.perimeter.period_s == pytest.approx(0.120)
    assert [link.perimeter.bins // n for n in link.perimeter.rotations] == [3, 2]


def test_there_are_72_angles_in_the_shortest_iteration() -> None:
    assert unify([0.060, 0.040, 0.120]).rotations == (108, 72, 216)


def test_angles_are_finer_where_72_do_not_divide() -> None:
    # 7/5: fifths of the shortest iteration are whole angles.
    assert unify([0.100, 0.140]).rotations == (75, 105)


def test_ratios_snap_to_terms_up_to_8() -> None:
    assert snapped_ratio(1.01) == (1, 1)
    assert snapped_ratio(1.49) == (3, 2)
    assert snapped_ratio(0.125) == (1, 8)
    assert snapped_ratio(9.0) == (8, 1)


def test_both_periods_bear_half_of_the_error() -> None:
    periods_s = unify([0.100, 0.104]).periods_s
    assert periods_s[0] == periods_s[1]
    assert periods_s[0] / 0.100 - 1 == pytest.approx(1 - periods_s[0] / 0.104)


def test_what_snapping_costs() -> None:
    draws = stream(0, "test").uniform(0.1, 0.4, (2_000, 2)).tolist()
    made = [unify(periods_s) for periods_s in draws]
    assert all(len(one.jobs) == 2 for one in made)
    errors = [abs(one.periods_s[0] / own[0] - 1) for one, own in zip(made, draws, strict=True)]
    assert statistics.median(errors) == pytest.approx(0.009, abs=0.001)
    assert statistics.quantiles(errors, n=20)[-1] == pytest.approx(0.031, abs=0.002)
    assert max(errors) < 0.04


def test_many_jobs_snap_to_smaller_terms() -> None:
    draws = stream(0, "test").uniform(0.1, 0.4, (50, 8)).tolist()
    made = [unify(periods_s) for periods_s in draws]
    assert max(one.bins for one in made) <= 24 * 72
    assert statistics.mean(len(one.jobs) for one in made) > 5
    assert unify([0.1, 0.2, 0.4, 0.8]).jobs == (0, 1, 2, 3)


def test_the_lcm_of_measured_times_is_absurd() -> None:
    draws = stream(0, "test").integers(100, 401, (4_000, 3)).tolist()
    assert statistics.median(lcm(a, b) / 1e3 for a, b, _ in draws) == pytest.approx(38, rel=0.1)
    assert statistics.median(lcm(*abc) / 1e3 for abc in draws) == pytest.approx(3856, rel=0.15)


def test_the_paper_s_lcm_stays_selectable() -> None:
    assert unify([0.255, 0.300], Periods.LCM).period_s == pytest.approx(5.1)
    assert unify([0.255, 0.300]).period_s == pytest.approx(7 * 0.255, rel=0.005)
    with pytest.raises(ConfigError, match="snap the periods"):
        unify([0.257, 0.311, 0.401], Periods.LCM)


def test_a_job_that_does_not_snap_is_off_the_circle() -> None:
    # Around 8 to 1, each is off by 4.8 % and by 5.3 %.
    assert unify([0.020, 0.176]).jobs == (0, 1)
    assert unify([0.020, 0.178]).jobs == (0,)


def test_most_jobs_are_on_the_circle() -> None:
    assert unify([0.020, 0.200, 0.400]).jobs == (1, 2)


# Scores ----------------------------------------------------------------------------------------


def test_equations_1_and_2_by_hand() -> None:
    # Up for half of the time each, at 30 and 40 of 50. In step: 20 too much for half of the time.
    both = [circle(72, 36, 30), circle(72, 36, 40)]
    link = link_circle(both, 50.0)
    assert link.score((0, 0)) == pytest.approx(1 - 20 / 50 / 2)
    assert link.score((0, 36)) == 1.0
    # A quarter of a turn: half as much.
    assert link.score((0, 18)) == pytest.approx(1 - 20 / 50 / 4)


def test_a_score_may_be_negative() -> None:
    assert solve([circle(100, 100, 50)] * 4, 50.0).score == pytest.approx(-2.0)


def test_one_job_alone_scores_1_if_the_link_has_room() -> None:
    assert solve([circle(100, 50, 50)], 50.0).score == 1.0


@given(st.lists(circles(), min_size=1, max_size=3))
def test_the_expected_score_is_the_mean_over_phases(jobs: list[Circle]) -> None:
    # Whole milliseconds: the mean over whole bins is exact.
    bins = [round(job.period_s * 1e3) for job in jobs]
    demands = np.zeros(1)
    for job, own in zip(jobs, bins, strict=True):
        demands = np.add.outer(demands, job.demand_per_bin(own)).ravel()
    excess = np.maximum(demands - 50.0, 0.0).mean() / 50.0
    assert expected_score(jobs, 50.0) == pytest.approx(1 - excess)


def test_a_job_off_the_circle_has_random_phases() -> None:
    pair = [circle(100, 50, 40), circle(1000, 500, 40)]
    alone = solve(pair, 50.0)
    assert alone.score == pytest.approx(expected_score(pair, 50.0))
    assert alone.plateaus_s[1] is None
    # Beside two that interleave, the third meets one of them at every angle.
    three = [circle(100, 50, 40), circle(100, 50, 40), circle(1000, 500, 40)]
    assert solve(three, 50.0).score == pytest.approx(1 - 30 / 50 / 2)


# The search ------------------------------------------------------------------------------------


def by_force(jobs: list[Circle]) -> tuple[float, tuple[int, ...]]:
    """The best score over all of eq. 4's rotations, first job at 0, and its first rotations."""
    link = link_circle(jobs, 50.0, angle_deg=30)
    ranges = [range(1), *map(range, link.perimeter.rotations[1:])]
    every = {by: link.score(by) for by in itertools.product(*ranges)}
    best = max(every.values())
    return best, next(by for by, score in every.items() if score >= best - 1e-9)


@given(st.lists(circles(), min_size=1, max_size=3))
def test_the_search_finds_what_force_finds(jobs: list[Circle]) -> None:
    link = link_circle(jobs, 50.0, angle_deg=30)
    score, first = by_force(jobs)
    assert exhaustive(link) == first
    assert link.score(first) == pytest.approx(score)


@given(circles(), circles(), st.data())
def test_no_turn_of_all_jobs_is_better(one: Circle, two: Circle, data: st.DataObject) -> None:
    # The first job is held at 0 without loss.
    link = link_circle([one, two], 50.0)
    turned = [data.draw(st.integers(0, n - 1)) for n in link.perimeter.rotations]
    assert link.score(turned) <= link.score(exhaustive(link)) + 1e-9


@pytest.mark.slow
@given(st.lists(circles((40, 80)), min_size=4, max_size=4), st.integers(0, 3))
def test_descent_comes_near_to_force_with_four_jobs(jobs: list[Circle], seed: int) -> None:
    link = link_circle(jobs, 50.0, angle_deg=45)
    best = link.score(exhaustive(link))
    assert best - 0.02 <= link.score(descent(link, seed)) <= best + 1e-9


def test_descent_finds_the_optimum_of_most_links() -> None:
    rng = stream(0, "test")
    losses = []
    for _ in range(200):
        jobs = [circle(100, u, d) for u, d in rng.uniform((10, 10), (70, 50), (4, 2))]
        link = link_circle(jobs, 50.0, angle_deg=20)
        losses.append(link.score(exhaustive(link)) - link.score(descent(link)))
    assert max(losses) < 0.0084
    assert sum(loss > 1e-6 for loss in losses) <= 16


def test_descent_is_the_same_for_the_same_seed() -> None:
    jobs = [circle(100, 20 + 5 * n, 30) for n in range(5)]
    link = link_circle(jobs, 50.0)
    assert descent(link, 3) == descent(link, 3)


# The paper's figures and Table 2 ---------------------------------------------------------------


def test_figure_5_is_fully_compatible_after_30_degrees() -> None:
    answer = solve(FIG_5, LINK_GBPS)
    assert answer.score == 1.0
    assert in_ms(answer.shifts_s) == [0, 10]
    assert answer.shifts_s[1] / answer.period_s * 360 == pytest.approx(30)


def test_figure_2_is_fully_compatible_after_120_ms() -> None:
    answer = solve(FIG_2, LINK_GBPS)
    assert answer.score == 1.0
    assert in_ms(answer.shifts_s) == [0, 120.83]


@pytest.mark.parametrize("number", TABLE_2)
def test_table_2_first_shifts(number: int) -> None:
    answer = solve(TABLE_2[number].circles, LINK_GBPS)
    assert in_ms(answer.shifts_s) == pytest.approx(TABLE_2[number].first_ms, abs=0.01)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_table_2_scores_and_the_paper_s_shifts(number: int) -> None:
    row = TABLE_2[number]
    best = solve(row.circles, LINK_GBPS).score
    there = score_at(row.circles, LINK_GBPS, [shift_ms / 1e3 for shift_ms in row.shifts_ms])
    assert best == pytest.approx(row.score, abs=0.1)
    # Figures of two digits, as the table's.
    assert round(best, 2) - round(there, 2) <= 0.0301


def test_snapshot_5_is_more_compatible_than_the_paper_says() -> None:
    row = TABLE_2[5]
    assert solve(row.circles, LINK_GBPS).score == pytest.approx(0.73, abs=0.01)
    assert score_at(row.circles, LINK_GBPS, (0, 0.042, 0.191)) == pytest.approx(0.66, abs=0.01)


def test_the_optimum_is_a_plateau() -> None:
    # Two whole Up phases fit from 148 to 162 ms; half an angle of overlap is below the capacity.
    answer = solve(TABLE_2[1].circles, LINK_GBPS)
    assert in_ms(answer.plateaus_s[1]) == [150, 162.5]
    assert in_ms(solve(TABLE_2[4].circles, LINK_GBPS).plateaus_s[1]) == [66, 150]


def test_a_plateau_may_begin_an_iteration_earlier() -> None:
    # Up for a tenth each, from 90 and from 0 ms: apart from the start, and until 80 ms later.
    answer = solve([circle(100, 10, 50), Circle(0.1, (Arc(0.0, 0.01, 50.0),))], 50.0)
    low, high = in_ms(answer.plateaus_s[1])
    assert answer.shifts_s == (0.0, 0.0)
    assert -1 <= low <= 0
    assert 79 <= high <= 80


def test_centre_is_the_middle_of_the_plateau() -> None:
    answer = solve(TABLE_2[4].circles, LINK_GBPS, CENTRE)
    assert in_ms(answer.shifts_s) == [0, 108]
    assert answer.score == pytest.approx(solve(TABLE_2[4].circles, LINK_GBPS).score)


def test_where_every_shift_is_as_good_nobody_moves() -> None:
    assert solve([circle(100, 50, 10)] * 2, 50.0, CENTRE).shifts_s == (0.0, 0.0)


@pytest.mark.parametrize("jobs", [FIG_2, *(TABLE_2[number].circles for number in (1, 3, 4))])
def test_figure_18_five_degrees_finds_the_shifts_of_one(jobs: tuple[Circle, ...]) -> None:
    coarse = solve(jobs, LINK_GBPS)
    fine = solve(jobs, LINK_GBPS, SolverOptions(angle_deg=1))
    assert abs(coarse.shifts_s[1] - fine.shifts_s[1]) <= jobs[0].period_s / 72 + 1e-9
