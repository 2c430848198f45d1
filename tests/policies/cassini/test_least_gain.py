"""For which links do turns pay? The threshold of decision 22 on fewer random links than there."""

from __future__ import annotations

import statistics

import pytest

from artist.network.models.mean import mean
from artist.network.models.patterns import Contention, Flow, InTurn, Member, Pattern, SharedLink
from artist.network.models.phase import phase
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.time_shifts import Solution
from artist.policies.cassini.wrapper import CassiniOptions
from artist.rng import stream


def contention(use: LinkPatterns, solution: Solution, *, in_turn: bool) -> Contention:
    """The jobs of a link, at their time-shifts or without any."""
    members = []
    for circle, shift_s, period_s in zip(
        use.circles, solution.shifts_s, solution.periods_s, strict=True
    ):
        (up,) = circle.arcs
        pattern = Pattern.simple(up.start_s, up.length_s, Flow((0,), 1.0))
        turn = InTurn(0, period_s, 0.05 * period_s) if in_turn else None
        members.append(Member(pattern, shift_s, turn=turn))
    return Contention((SharedLink(1.0, eta=0.976),), tuple(members))


def slowdowns(links: int) -> list[tuple[float, float, float]]:
    """Of random links: what turns gain, and the mean slowdown with turns and at random phases."""
    rng, solver, rows = stream(1, "test_least_gain"), LinkSolver(), []
    for _ in range(links):
        size = int(rng.integers(2, 4))
        periods = rng.uniform(0.1, 0.4, size)
        pairs = zip(periods.tolist(), rng.uniform(0.15, 0.5, size).tolist(), strict=True)
        circles = tuple(Circle.down_then_up(p, p * up, 1.0) for p, up in pairs)
        use = LinkPatterns(1.0, tuple(range(size)), circles)
        if len(solver.phased(use)) == size:
            solution = solver.solve(use)
            turns = phase(contention(use, solution, in_turn=True))
            random = mean(contention(use, solution, in_turn=False))
            both = [statistics.fmean(x.slowdown for x in answer) for answer in (turns, random)]
            rows.append((solver.gain(use), both[0], both[1]))
    return rows


def test_a_gain_is_what_the_score_rises_by_less_what_the_faster_job_waits() -> None:
    def gains(other_period_s: float, least: float) -> bool:
        circles = tuple(Circle.down_then_up(p, p / 2, 1.0) for p in (0.1, other_period_s))
        return LinkSolver().gains(LinkPatterns(1.0, (0, 1), circles), least)

    # Both send half of the time. At random phases they collide a quarter of it; in turns never.
    assert gains(0.1, 0.24)
    assert not gains(0.1, 0.26)
    # A job of 100 ms waits for one of 104: 4 % of its iteration, 2 % on average.
    assert gains(0.104, 0.2)
    assert not gains(0.104, 0.24)


@pytest.mark.slow
def test_turns_pay_most_above_the_least_gain() -> None:
    rows = slowdowns(240)
    never = statistics.fmean(row[2] for row in rows)
    always = statistics.fmean(row[1] for row in rows)
    least = CassiniOptions().least_gain
    chosen = statistics.fmean(row[1] if row[0] >= least else row[2] for row in rows)
    assert chosen < min(never, always)
