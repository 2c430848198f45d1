"""Which job is held until when, given time-shifts? Worked out by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from artist.cluster.placement import Placement
from artist.contract import Hold, LinkPattern, Turn, UpPhase
from artist.policies.cassini.candidates import choose
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.jobs_on_links import JobsOnLinks
from artist.policies.cassini.pace import groups
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.turns import HeldJob, circle_rows, holds, turns
from artist.rng import stream
from artist.units import seconds

ON = Placement.of({0: 1})


def test_a_shift_is_a_later_start() -> None:
    # Alone, job 4 would start its next iteration at 130 and job 7 at 110. Job 7 is to start 20
    # after job 4, every 50. If 4 does not wait, 7 waits for 40, until 150. If 7 does not, 4 is to
    # start at 90 or 50 later, and waits for 10.
    jobs = {4: HeldJob(100, 30, 1), 7: HeldJob(110, 0, 1)}
    aligned = turns(3, jobs, {4: 0, 7: 20}, {4: 50, 7: 50})
    assert aligned == {
        4: (110, Turn(3, 140, 50, None)),
        7: (110, Turn(3, 110, 50, None)),
    }
    # Job 4 with ten GPUs is worth more than 7: now 7 waits.
    jobs[4] = HeldJob(100, 30, 10)
    aligned = turns(3, jobs, {4: 0, 7: 20}, {4: 50, 7: 50})
    assert {handle: until for handle, (until, _) in aligned.items()} == {4: 100, 7: 150}


def test_a_hold_carries_a_turn_even_where_nobody_waits() -> None:
    aligned = {2: (90, Turn(1, 90, 50, None)), 1: (140, Turn(1, 140, 50, None))}
    assert holds(aligned, {1: 2, 2: None}, now=90) == [
        Hold(1, 140, "time-shift", Turn(1, 140, 50, 2)),
        Hold(2, 91, "time-shift", Turn(1, 90, 50, None)),
    ]


def test_a_group_goes_at_the_pace_of_its_slowest_in_the_ratios_of_every_link() -> None:
    # Job 1 is with 0 on a link and with 2 on another. Periods of 100, 102 and 204 ms snap to 1:1
    # and to 1:2, whatever they are in truth. Nobody is asked to be faster than alone.
    solver = LinkSolver()
    circles = [Circle.down_then_up(period_s, 0.02, 1.0) for period_s in (0.100, 0.102, 0.204)]
    first = LinkPatterns(1.0, (0, 1), (circles[0], circles[1]))
    second = LinkPatterns(1.0, (1, 2), (circles[1], circles[2]))
    alone = LinkPatterns(1.0, (5, 6), (circles[0], circles[0]))
    one, other = groups([first, alone, second], solver)
    assert one.periods_s == pytest.approx({0: 0.102, 1: 0.102, 2: 0.204})
    assert other.periods_s == {5: 0.100, 6: 0.100}
    assert one.uses == (first, second)


def test_a_shift_is_the_same_part_of_a_turn_at_the_pace_of_the_slowest() -> None:
    # On the circle both take 102 ms, in turn 104. Job 1 has the link from the middle on.
    solver = LinkSolver()
    circles = tuple(Circle.down_then_up(x, x / 2, 1.0) for x in (0.100, 0.104))
    use = LinkPatterns(1.0, (0, 1), circles)
    assert solver.solve(use).periods_s == pytest.approx((0.10196, 0.10196), rel=1e-4)
    chosen = choose([[use]], solver)
    assert {x: seconds(y) for x, y in chosen.shifts.items()} == pytest.approx({0: 0.0, 1: 0.052})
    # Nothing is left of that if shifts are taken modulo the iterations of 100 and 104 ms.
    (group,) = groups([use], solver)
    (one, other) = circle_rows(group, solver, chosen.shifts, {0: "a", 1: "b"}, str)
    assert (one["on_circle_s"], other["on_circle_s"]) == pytest.approx((0.104, 0.104))
    assert one["turn_s"] == pytest.approx(0.104)


def test_links_of_unequal_jobs_get_the_scores_that_were_solved() -> None:
    # Chains of four jobs, two on a link. Each link has a circle of its own length.
    rng, solver = stream(0, "test_holds"), LinkSolver()
    for _ in range(30):
        circles = [Circle.down_then_up(x, x / 2, 1.0) for x in rng.uniform(0.29, 0.31, 4)]
        pairs = [tuple(sorted(x)) for x in pairwise(rng.permutation(4).tolist())]
        uses = [LinkPatterns(1.0, x, (circles[x[0]], circles[x[1]])) for x in pairs]
        chosen = choose([uses], solver)
        (group,) = groups([uses[link] for link in chosen.links], solver)
        parts = {x: seconds(y) / group.periods_s[x] for x, y in chosen.shifts.items()}
        for use in uses:
            assert solver.solve(use).score == 1.0
            assert solver.score_at(use, parts) == pytest.approx(1.0, abs=1e-6)


def pattern(rate: float, *uplinks: tuple[int, int]) -> LinkPattern:
    return LinkPattern(1.0, dict.fromkeys(uplinks, UpPhase(0.4, rate, rate / 2)))


def test_only_links_that_jobs_could_fill_join_them() -> None:
    jobs = JobsOnLinks()
    jobs.put(1, ON, pattern(6.0, (1, 0), (1, 1)))
    jobs.put(2, ON, pattern(6.0, (1, 1), (1, 2)))
    jobs.put(3, ON, pattern(4.0, (1, 2), (1, 3)))  # 10 of 10 with job 2: not more than there is
    jobs.put(4, ON, pattern(9.0, (1, 3)))
    assert jobs.joined([(1, 0)], lambda _: 10.0) == [(1, 1)]
    assert jobs.joined([(1, 2)], lambda _: 10.0) == [(1, 1), (1, 3)]  # both jobs there count
    jobs.remove(2)
    assert jobs.joined([(1, 0), (1, 1)], lambda _: 10.0) == []
