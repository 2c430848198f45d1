"""Does the page about CASSINI say what its runs say, and do the runs still say it?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from artist.results.statistics.compare_values import ComparedValues, compare_values
from studies.cassini.study import (
    arithmetic,
    joint,
    judging,
    links,
    observations,
    plan,
    simulated,
    workloads,
)
from studies.cassini.study.drift import JITTER, corrections_per_minute, is_off


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 41, 333])
def test_the_links_still_give_their_rows(number: int) -> None:
    place = list(links.places())[number]
    assert links.row_of(*place) == links.LINKS.read()[number]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_components_still_give_their_rows(number: int) -> None:
    assert joint.row_of(number) == joint.JOINT.read()[number]


def test_no_run_is_refused_and_only_common_multiples_are_snapped() -> None:
    rows = observations.ROWS.read()
    assert all(row["mean_s"] for row in rows)
    assert {row["setting"] for row in rows if float(row["snapped"] or 0) > 0} == {plan.LCM}


def test_divided_jobs_have_pairs_of_gpus() -> None:
    jobs = workloads.jobs_of(workloads.DIVIDED, "dynamic", 10, 24, 3, 0.9)
    assert all(job.gpus % 2 == 0 for job in jobs)
    assert {job.model.partition("@")[0] for job in jobs} <= {"gpt1", "gpt2", "gpt3-xl"}


def test_a_quantile_counts_iterations_not_intervals() -> None:
    quantile = observations.quantile
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([1.0, 97.0, 2.0])
    assert [quantile(values, weights, x) for x in (50, 97, 98, 99, 100)] == [1, 1, 2, 2, 3]


def test_matched_jobs_take_300_ms_and_send_for_less_than_three_fifths() -> None:
    from artist.network.demand.curves import down_and_up
    from artist.run import open_backend
    from artist.units import GIB
    from artist.workload.models import workload

    backend = open_backend("analytical")
    for model in workloads.MATCHED_MODELS:
        for workers in (4, 12):
            alone = down_and_up(workload(model), workers, 50e9 / 8 / GIB, backend)
            assert alone.iteration_s == pytest.approx(0.300, rel=0.06)
            assert alone.up_s < 0.6 * alone.iteration_s


def test_matched_jobs_keep_workers_and_iterations() -> None:
    ours, theirs = (
        workloads.jobs_of(kind, "poisson", 6, 24, 3, 0.9)
        for kind in (workloads.MATCHED, workloads.CATALOGUE)
    )
    assert [(x.gpus, x.iterations) for x in ours] == [(x.gpus, x.iterations) for x in theirs]
    assert ours == workloads.jobs_of(workloads.MATCHED, "poisson", 6, 24, 3, 0.9)

    def load(jobs: object) -> float:
        return sum(x.gpus * x.iterations * x.compute_s for x in jobs) / jobs[-1].arrival_s

    assert load(ours) == pytest.approx(load(theirs))


def test_odd_jobs_span_racks_of_two() -> None:
    odd, matched = (
        workloads.jobs_of(kind, "dynamic", 30, 24, 3, 0.9)
        for kind in (workloads.ODD, workloads.MATCHED)
    )
    assert {job.gpus for job in odd} == {3, 5, 7}
    assert [(x.model, x.iterations) for x in odd] == [(x.model, x.iterations) for x in matched]


def test_no_gain_of_a_stretch_is_above_its_ceiling() -> None:
    one = judging.Judged(observations.ROWS.read())
    for cell in plan.THEMIS_CELLS:
        gain = one.themis[(*cell, "stretch_mean")].ratio
        assert gain <= one.ceiling(cell, "themis", "stretch_mean") * (1 + 1e-9)
    for number in links.SNAPSHOTS:
        gain = judging.judged_links(links.LINKS.read())[number, links.FIRST, links.JITTER].ratio
        # Jitter makes some samples shorter than in isolation.
        assert gain <= 1.01 * judging.ceiling_of_links(links.LINKS.read(), number, links.FIRST)


def test_a_ring_waits_for_its_later_direction() -> None:
    circles = links.SNAPSHOTS[1]
    one, both = (
        simulated.simulated(
            circles, [(0,), (0,)], (0.0, 0.0), aligned=False, jitter=0.0, iterations=64, seed=0,
            directions=directions,
        ).stretch
        for directions in (1, simulated.BOTH)
    )  # fmt: skip
    assert both > one + 0.05


def of_gain(gain: float) -> ComparedValues:
    """Six replicates with a mean gain of about this much."""
    base = (100.0, 110.0, 95.0, 103.0, 99.0, 101.0)
    return compare_values(base, tuple(x * gain * f for x, f in zip(base, _NOISE, strict=True)))


_NOISE = (1.01, 0.99, 1.0, 1.005, 0.995, 1.0)


@pytest.mark.parametrize(
    ("gain", "verdict"),
    [
        (1.3, "holds"),
        (1.105, "smaller"),  # the interval reaches below 1.1
        (1.05, "smaller"),
        (1.005, "no difference"),
        (0.8, "**opposite**"),
    ],
)
def test_verdicts_on_gains(gain: float, verdict: str) -> None:
    assert judging.verdict(of_gain(gain), 1.1) == verdict


def test_an_undecided_gain_is_noise() -> None:
    undecided = replace(of_gain(1.3), verdict="undecided")
    assert judging.verdict(undecided, 1.1) == "noise"


def test_a_component_is_joined_and_recurs() -> None:
    for number in range(joint.CASES):
        one = joint.case(number)
        assert one == joint.case(number)
        reached = {0}
        for _ in one.circles:
            reached |= {job for pair in one.pairs if reached & set(pair) for job in pair}
        assert reached == set(range(len(one.circles)))


def test_jobs_that_take_turns_lose_nothing_where_the_score_is_1_without_jitter() -> None:
    circles = links.SNAPSHOTS[1]
    shifts_s = arithmetic.solved(circles).shifts_s
    done = simulated.simulated(
        circles, [(0,), (0,)], shifts_s, aligned=True, jitter=0.0, iterations=32, seed=0
    )
    assert done.stretch == pytest.approx(1.0, abs=0.005)
    assert done.corrections_per_min == 0


# -- how often time-shifts are set again, against CASSINI's Fig. 17 ----------------------


def test_five_percent_of_the_ideal_iteration_is_too_far() -> None:
    assert not is_off(5, 100)
    assert is_off(6, 100)
    assert is_off(-6, 100)


@pytest.mark.parametrize(("period_s", "per_minute"), [(0.255, 2.0), (0.300, 1.7), (0.336, 1.6)])
def test_figure_17_under_two_corrections_a_minute_at_half_a_percent(
    period_s: float, per_minute: float
) -> None:
    assert JITTER == 0.005
    assert corrections_per_minute(period_s) == pytest.approx(per_minute, abs=0.1)


def test_more_jitter_means_more_than_two_a_minute() -> None:
    assert corrections_per_minute(0.300, 0.006) > 2.2


def test_corrections_grow_with_the_square_of_jitter() -> None:
    once, twice = (corrections_per_minute(0.3, x, hours=100) for x in (0.0025, 0.005))
    assert twice / once == pytest.approx(4, rel=0.15)


def test_without_jitter_there_are_none() -> None:
    assert corrections_per_minute(0.3, 0.0) == 0.0
