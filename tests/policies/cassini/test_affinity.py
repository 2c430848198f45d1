"""The affinity graph: Algorithm 1 and Theorem 1, loops, and Algorithm 2."""

from __future__ import annotations

import itertools
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import FIG_2, circle

from artist.policies.cassini.affinity import AffinityLink, Loops, cycles, unique_shifts
from artist.policies.cassini.candidates import choose
from artist.policies.cassini.job_circle import Circle
from artist.policies.cassini.link_circle import Periods
from artist.policies.cassini.solver import LinkPatterns, LinkSolver
from artist.policies.cassini.time_shifts import SolverOptions
from artist.units import seconds, ticks

# Two of three are Up at any time if they share a link of 50.
HALF_UP = circle(100, 50, 50)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[AffinityLink], dict[int, int]]:
    """An affinity graph without loops, of any number of parts, with jobs and links in any order.

    Periods are 4 to 24 ticks, so that a test can look at all of a perimeter.
    """
    jobs = draw(st.permutations(range(draw(st.integers(1, 10)))))
    periods = {job: draw(st.sampled_from((4, 6, 8, 12, 24))) for job in jobs}
    links, reached = [], [jobs[0]]
    rest = list(jobs[1:])
    while rest:
        size = draw(st.integers(1, min(3, len(rest))))
        new, rest = rest[:size], rest[size:]
        if draw(st.booleans()) or len(new) == 1:
            new = [draw(st.sampled_from(reached)), *new]
        on_it = draw(st.permutations(new))
        reached += new
        shifts = [draw(st.integers(0, periods[job] - 1)) for job in on_it]
        links.append(AffinityLink(tuple(on_it), tuple(shifts)))
    return draw(st.permutations(links)), periods


@settings(max_examples=300)
@given(trees())
def test_theorem_1_every_link_has_the_demand_that_was_solved(
    graph: tuple[list[AffinityLink], dict[int, int]],
) -> None:
    links, periods = graph
    shifts = unique_shifts(links, periods)
    assert set(shifts) == {job for link in links for job in link.jobs}
    for link in links:
        assert any(
            all(
                (shifts[job] - own - delay) % periods[job] == 0
                for job, own in zip(link.jobs, link.shifts, strict=True)
            )
            for delay in range(lcm(*(periods[job] for job in link.jobs)))
        )


def test_equation_6_as_it_is_written_does_not_hold() -> None:
    # Job 1 gets 0 - 30 + 0 = -30, and by the mod of Algorithm 1, line 23, 30. An iteration less
    # changes no demand, but it changes the difference that eq. 6 compares modulo the perimeter.
    periods = {0: 40, 1: 60}
    shifts = unique_shifts([AffinityLink((0, 1), (30, 0))], periods)
    assert shifts == {0: 0, 1: 30}
    assert (shifts[1] - shifts[0]) % 120 != (0 - 30) % 120
    assert (shifts[1] - shifts[0]) % 60 == (0 - 30) % 60


def test_figure_8_by_hand() -> None:
    # Eqs. 7 to 9: t1 = 0, t2 = -t1^l1 + t2^l1, t3 = -t1^l1 + t2^l1 - t2^l2 + t3^l2.
    links = [AffinityLink((1, 2), (5, 20)), AffinityLink((2, 3), (7, 30))]
    assert unique_shifts(links, {1: 100, 2: 100, 3: 100}) == {1: 0, 2: 15, 3: 38}


def test_the_root_of_each_part_is_its_first_job() -> None:
    links = [AffinityLink((4, 3), (1, 2)), AffinityLink((2, 1), (10, 30))]
    periods = dict.fromkeys(range(5), 100)
    assert unique_shifts(links, periods) == {1: 0, 2: 80, 3: 0, 4: 99}


def test_a_shift_is_less_than_an_iteration_of_its_job() -> None:
    links = [AffinityLink((0, 1), (0, 90)), AffinityLink((1, 2), (10, 90))]
    assert unique_shifts(links, {0: 100, 1: 100, 2: 150})[2] == 20


def test_cycles_are_counted() -> None:
    assert cycles([]) == 0
    assert cycles([(0, 1), (1, 2), (3, 4)]) == 0
    assert cycles([(0, 1), (0, 1)]) == 1  # NIC and uplink
    assert cycles([(0, 1), (1, 2), (2, 0)]) == 1
    assert cycles([(0, 1, 2), (0, 1, 2), (0, 1, 2)]) == 4


@given(st.lists(st.sets(st.integers(0, 6), min_size=2, max_size=4), max_size=8))
def test_cycles_are_edges_minus_vertices_plus_parts(links: list[set[int]]) -> None:
    jobs = set().union(*links)
    parts = {job: job for job in jobs}
    for _ in jobs:
        for link in links:
            least = min(parts[job] for job in link)
            parts |= dict.fromkeys(link, least)
    vertices, edges = len(jobs) + len(links), sum(map(len, links))
    assert cycles([sorted(x) for x in links]) == edges - vertices + len(set(parts.values()))


# Algorithm 2 -----------------------------------------------------------------------------------


def use(*jobs: int, own: Circle = HALF_UP, capacity: float = 50.0) -> LinkPatterns:
    return LinkPatterns(capacity, jobs, (own,) * len(jobs))


def test_without_shared_links_the_first_candidate_scores_1() -> None:
    chosen = choose([[use(0)], [use(1)]], LinkSolver())
    assert (chosen.index, chosen.score, chosen.shifts) == (0, 1.0, {})


def test_the_most_compatible_candidate_wins() -> None:
    # Three on a link want 150 at best half of the time; two interleave.
    chosen = choose([[use(0, 1, 2)], [use(0, 1)], [use(0, 2)]], LinkSolver())
    assert (chosen.index, chosen.score) == (1, 1.0)
    assert chosen.shifts == {0: 0, 1: ticks(0.05)}


def test_of_equal_candidates_the_first_wins() -> None:
    assert choose([[use(0, 1)], [use(0, 2)]], LinkSolver()).index == 0


def test_a_candidate_s_score_is_the_mean_of_its_links() -> None:
    pair, three = choose([[use(0, 1)]], LinkSolver()), choose([[use(2, 3, 4)]], LinkSolver())
    both = choose([[use(0, 1), use(2, 3, 4), use(5)]], LinkSolver())
    assert both.score == pytest.approx((pair.score + three.score) / 2)


def test_ten_candidates_are_scored() -> None:
    candidates = [[use(0, 1, 2)]] * 10 + [[use(0, 1)]]
    assert choose(candidates, LinkSolver()).index == 0


def test_shifts_respect_every_link() -> None:
    # 0 beside 1, 1 beside 2: 0 and 2 are in step.
    chosen = choose([[use(0, 1), use(1, 2)]], LinkSolver())
    assert chosen.shifts == {0: 0, 1: ticks(0.05), 2: 0}


def test_discard_takes_a_candidate_without_loops_even_if_it_scores_less() -> None:
    loop, three = [use(0, 1), use(0, 1)], [use(0, 1, 2)]
    chosen = choose([loop, three], LinkSolver(), Loops.DISCARD)
    assert (chosen.index, chosen.discarded) == (1, 1)


def test_discard_keeps_the_host_s_placement_if_all_have_loops() -> None:
    loop = [use(0, 1), use(0, 1)]
    chosen = choose([loop, loop], LinkSolver(), Loops.DISCARD)
    assert (chosen.index, chosen.shifts, chosen.discarded, chosen.cycles) == (0, {}, 2, 1)
    assert chosen.score == pytest.approx(0.75)  # together a quarter of the time


def test_links_with_the_same_jobs_become_one() -> None:
    # The uplink of 40 is tighter than the NIC of 50. Both score as the shifts have it.
    nic, uplink = use(0, 1), use(0, 1, capacity=40.0)
    chosen = choose([[nic, uplink]], LinkSolver())
    assert (chosen.cycles, chosen.dropped) == (0, ())
    assert chosen.shifts == {0: 0, 1: ticks(0.05)}
    assert chosen.score == pytest.approx((1.0 + 0.75) / 2)  # 10 of 40 too much at any time


def test_the_tightest_of_them_decides() -> None:
    # What fits the roomy link at shift 0 does not fit the tight one.
    roomy, tight = use(0, 1, capacity=100.0), use(0, 1)
    assert choose([[roomy, tight]], LinkSolver()).shifts[1] == ticks(0.05)
    assert choose([[tight, roomy]], LinkSolver()).shifts[1] == ticks(0.05)


def test_a_loop_is_cut_where_it_harms_least() -> None:
    # A triangle of pairs. On the last link jobs send little: it loses least.
    light = circle(100, 50, 30)
    links = [use(0, 1), use(2, 0, own=light), use(1, 2)]
    chosen = choose([links], LinkSolver())
    assert (chosen.cycles, chosen.dropped) == (1, (1,))
    assert chosen.shifts == {0: 0, 1: ticks(0.05), 2: 0}
    # On the link that was dropped both are Up together half of the time: 10 of 50 too much.
    assert chosen.score == pytest.approx((1 + 1 + (1 - 0.1)) / 3)


def test_fewer_loops_come_before_a_higher_score() -> None:
    triangle = [use(0, 1), use(1, 2), use(2, 0)]
    two_triangles = [*triangle, use(1, 3), use(3, 2), *(use(10 + n, 20 + n) for n in range(9))]
    assert choose([two_triangles, triangle], LinkSolver()).index == 1
    assert choose([triangle, two_triangles], LinkSolver()).index == 0


def test_a_job_that_does_not_snap_closes_no_loop() -> None:
    other = circle(1000, 500, 50)
    mixed = LinkPatterns(50.0, (0, 1), (HALF_UP, other))
    chosen = choose([[mixed, mixed]], LinkSolver(), Loops.DISCARD)
    assert (chosen.cycles, chosen.shifts) == (0, {})
    assert chosen.score == pytest.approx(0.75)


def test_with_the_paper_s_lcm_every_job_is_in_the_graph() -> None:
    mixed = LinkPatterns(50.0, (0, 1), (HALF_UP, circle(1000, 500, 50)))
    solver = LinkSolver(SolverOptions(periods=Periods.LCM))
    assert set(choose([[mixed]], solver).shifts) == {0, 1}


def test_a_link_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from artist.policies.cassini import solver as module

    asked = []
    solve = module.solve
    monkeypatch.setattr(module, "solve", lambda *x: asked.append(x) or solve(*x))
    solver = LinkSolver()
    for _ in range(2):
        choose([[use(0, 1)], [use(2, 3)]], solver)
    assert len(asked) == 1


def test_names_do_not_matter() -> None:
    # The same jobs under other numbers, in the same order: the same answer.
    links = [(0, 1), (1, 2), (3, 4)]
    chosen = choose([[use(*jobs) for jobs in links]], LinkSolver())
    renamed = choose([[use(*(7 + 3 * job for job in jobs)) for jobs in links]], LinkSolver())
    assert renamed.shifts == {7 + 3 * job: shift for job, shift in chosen.shifts.items()}


@given(st.permutations(range(4)))
def test_shifts_interleave_pairs_in_a_row(order: list[int]) -> None:
    # Fig. 2's job four times, each beside the next. Every pair must be apart by an Up phase.
    links = [LinkPatterns(50.0, tuple(sorted(pair)), FIG_2) for pair in itertools.pairwise(order)]
    shifts = choose([links], LinkSolver()).shifts
    for one, two in itertools.pairwise(order):
        apart_ms = 1e3 * seconds((shifts[one] - shifts[two]) % ticks(0.348))
        assert 117 <= apart_ms <= 231
