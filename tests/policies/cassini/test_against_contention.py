"""Do time-shifts mean the same to the model of contention? A shift delays a job, and saves time."""

from __future__ import annotations

import pytest
from snapshots import FIG_2, FIG_5, LINK_GBPS, TABLE_2, circle

from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink
from artist.network.models.phase import fluid
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.time_shifts import solve

GBIT = 1e9 / 8


def slowdowns(circles: tuple[Circle, ...], shifts_s: tuple[float, ...]) -> list[float]:
    """Iterations on the shared link over those alone, as a fluid shares the link."""
    members = []
    for job, shift_s in zip(circles, shifts_s, strict=True):
        (up,) = job.arcs
        flow = Flow((0,), up.demand * GBIT)
        pattern = Pattern.simple(up.start_s, up.length_s * up.demand * GBIT, flow)
        members.append(Member(pattern, offset_s=shift_s))
    link = SharedLink(LINK_GBPS * GBIT)
    return [slowed.slowdown for slowed in fluid(Contention((link,), tuple(members)))]


@pytest.mark.parametrize("circles", [FIG_2, TABLE_2[1].circles])
def test_jobs_that_score_1_do_not_slow_each_other(circles: tuple[Circle, ...]) -> None:
    shifts_s = solve(circles, LINK_GBPS).shifts_s
    # An angle that is partly Up may overlap by half of it.
    assert max(slowdowns(circles, shifts_s)) < 1.003
    # In step they slide apart, so that less is left than the first overlap.
    assert max(slowdowns(circles, (0.0,) * len(circles))) > 1.08


def test_periods_of_2_to_3() -> None:
    assert max(slowdowns(FIG_5, solve(FIG_5, LINK_GBPS).shifts_s)) == pytest.approx(1.0)
    assert max(slowdowns(FIG_5, (0.0, 0.0))) > 1.02


def test_a_shift_delays() -> None:
    # Up from 40 and from 80 ms on. 20 to 40 ms later, the second is Up while the first is Down.
    # As much earlier, it is in the middle of the first one's Up phase.
    circles = (circle(100, 60, 40), circle(100, 20, 40))
    shifts_s = solve(circles, LINK_GBPS).shifts_s
    assert 0.020 <= shifts_s[1] <= 0.040
    assert max(slowdowns(circles, shifts_s)) < 1.003
    assert max(slowdowns(circles, (shifts_s[1], 0.0))) > 1.02
