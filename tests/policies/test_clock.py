"""When does a periodic clock of a policy strike?"""

from __future__ import annotations

import pytest
from support import cluster, job, question, simulator

from artist.contract import ClusterView
from artist.policies.shared.clock import PeriodClock
from artist.rng import Draws


def view(arrival_s: float) -> ClusterView:
    return question(simulator(cluster([1]), [job("a", arrival_s=arrival_s)]))


@pytest.mark.parametrize(
    ("phase", "now", "last", "at_or_after", "after"),
    [
        # The first arrival is at 7, the period is 10.
        (0, 7, 7, 7, 17),
        (0, 8, 7, 17, 17),
        (0, 17, 17, 17, 27),
        (4, 7, 1, 11, 11),  # the last one before the clock began is a whole period before it
        (4, 11, 11, 11, 21),
        (4, 12, 11, 21, 21),
    ],
)
def test_strikes_are_whole_periods_after_the_first_arrival_and_the_phase(
    phase: int, now: int, last: int, at_or_after: int, after: int
) -> None:
    clock = PeriodClock(10, phase)
    clock.asked(view(7e-9))
    clock.asked(view(9e-9))  # a later arrival changes nothing
    assert (clock.last(now), clock.at_or_after(now), clock.after(now)) == (last, at_or_after, after)


def test_the_natural_order_has_no_phase() -> None:
    assert {Draws(seed).phase(3600) for seed in range(20)} == {0}


def test_phases_are_uniform_over_the_period() -> None:
    phases = [
        Draws(seed, permutation).phase(4) for seed in range(20) for permutation in range(1, 51)
    ]
    assert [200 < phases.count(phase) < 300 for phase in range(4)] == [True] * 4


def test_a_phase_depends_on_permutation_and_seed_and_on_nothing_else() -> None:
    phases = {(s, p): Draws(s, p).phase(10**12) for s in range(3) for p in range(1, 4)}
    assert len(set(phases.values())) == 9
    assert Draws(2, 3).phase(10**12) == phases[2, 3]
