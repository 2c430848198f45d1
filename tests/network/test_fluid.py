"""Does the event simulation keep closed forms and laws, and does the fluid keep offsets?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from contentions import LINE, contentions, line_rate, on_one_link
from hypothesis import given

from artist.network.models.patterns import (
    Contention,
    Flow,
    Member,
    Pattern,
    PatternStep,
    SharedLink,
)
from artist.network.models.phase import fluid
from artist.network.models.sending_flows import SendingFlows
from artist.network.models.simulation import Simulation, alone_s

TICK_S = 1e-9


@pytest.mark.parametrize(
    ("down_s", "up_s", "offset_s"),
    [(0.03, 0.03, 0.0), (0.03, 0.03, 0.01), (0.042, 0.018, 0.0175), (0.018, 0.042, 0.005)],
)
def test_two_equal_jobs_that_overlap_take_down_and_twice_up_less_the_offset(
    down_s: float, up_s: float, offset_s: float
) -> None:
    pattern = line_rate(down_s, up_s)
    both = on_one_link(Member(pattern), Member(pattern, offset_s))
    for slowed in fluid(both):
        assert slowed.iteration_s == pytest.approx(down_s + 2 * up_s - offset_s, abs=TICK_S)
        assert slowed.alone_s == pytest.approx(down_s + up_s, abs=TICK_S)


def test_the_offset_of_equal_jobs_stays_for_ever() -> None:
    pattern = line_rate(0.03, 0.03)
    simulation = Simulation(on_one_link(Member(pattern), Member(pattern, 0.01)))
    simulation.run(lambda now: now.jobs[1].iterations == 500)
    one, other = simulation.jobs
    for early, late in zip(one.ends_s[1:], other.ends_s[1:], strict=False):
        assert late - early == pytest.approx(0.01, abs=TICK_S)


def test_jobs_that_never_meet_lose_nothing() -> None:
    pattern = line_rate(0.05, 0.01)
    slowed = fluid(on_one_link(Member(pattern), Member(pattern, 0.03)))
    assert [x.slowdown for x in slowed] == pytest.approx([1.0, 1.0], abs=1e-12)


def test_a_shared_link_of_efficiency_eta_is_slower_only_while_it_is_shared() -> None:
    # Both Up for 2u / eta if they start together; alone the link runs at its full rate.
    pattern = line_rate(0.03, 0.03)
    slowed = fluid(on_one_link(Member(pattern), Member(pattern), eta=0.8))
    assert slowed[0].iteration_s == pytest.approx(0.03 + 2 * 0.03 / 0.8, abs=TICK_S)
    assert slowed[0].alone_s == pytest.approx(0.06, abs=TICK_S)


def test_an_iteration_ends_with_its_slowest_flow_and_steps_follow_each_other() -> None:
    flows = (Flow((0,), LINE), Flow((1,), LINE / 2))
    pattern = Pattern(
        flows, (PatternStep(0.1, (0.1 * LINE, 0.1 * LINE)), PatternStep(0.3, (0.1 * LINE, 0.0)))
    )
    contention = Contention((SharedLink(LINE), SharedLink(LINE)), (Member(pattern),))
    assert alone_s(contention, 0) == pytest.approx(0.1 + 0.2 + 0.3 + 0.1, abs=TICK_S)


@pytest.mark.parametrize(
    ("member", "ends_s"),
    [
        # Its Up phase starts at .03 of its isolated time. After .04 a third of its volume is left.
        (Member(line_rate(0.03, 0.015), -0.04), [-0.04, 0.005, 0.05]),
        (Member(line_rate(0.03, 0.015), 0.1), [0.1, 0.145]),
        (Member(line_rate(0.03, 0.01), 0.0, (1.0, 2.0)), [0.0, 0.04, 0.11, 0.15, 0.22]),
    ],
    ids=["in the middle of an iteration", "before its offset", "with stretched Down times"],
)
def test_a_job_goes_on_from_where_it_is(member: Member, ends_s: list[float]) -> None:
    simulation = Simulation(on_one_link(member))
    simulation.run(lambda now: now.jobs[0].iterations == len(ends_s) - 1)
    assert simulation.jobs[0].ends_s == pytest.approx(ends_s, abs=TICK_S)


@given(contentions())
def test_no_iteration_is_faster_than_in_isolation(contention: Contention) -> None:
    for slowed in fluid(contention):
        assert slowed.slowdown >= 1 - 1e-9


@given(contentions())
def test_every_byte_is_sent_and_no_link_carries_more_than_it_can(contention: Contention) -> None:
    simulation = Simulation(contention)
    simulation.run(lambda now: all(job.iterations >= 5 for job in now.jobs))
    sent = [0.0] * len(contention.links)
    for job in simulation.jobs:
        if job.member.offset_s < 0:
            return  # the first iteration began before the simulation
        for index, flow in enumerate(job.pattern.flows):
            volume = sum(step.volumes_bytes[index] for step in job.pattern.steps)
            for link in flow.links:
                sent[link] += volume * job.iterations
    for link, bytes_ in zip(contention.links, sent, strict=True):
        assert bytes_ <= link.capacity_bytes_per_s * simulation.now_s * (1 + 1e-9)


@given(contentions())
def test_time_never_goes_back(contention: Contention) -> None:
    simulation = Simulation(contention)
    for _ in range(50):
        before_s = simulation.now_s
        simulation.next_event()
        assert simulation.now_s >= before_s
    for job in simulation.jobs:
        assert all(start < end for start, end in pairwise(job.ends_s))


def test_a_flow_held_by_two_full_links_with_different_competitors_gets_its_smaller_weight() -> None:
    # A chain: job 1 shares link 0 with job 0, and link 1 with job 2.
    links = (SharedLink(1.0), SharedLink(1.0))
    chain = [(0,), (0, 1), (1,)]
    members = tuple(Member(Pattern.simple(1.0, 1.0, Flow(path, 1.0))) for path in chain)
    flows = SendingFlows(Contention(links, members), 0.25)
    assert flows.rates((0, 1, 2), None) == pytest.approx([0.8, 0.2, 0.8])
    # With one neighbour silent only one of its links is full.
    assert flows.rates((0, 1), None) == pytest.approx([0.5, 0.5])
    # The same two jobs meet on both links: one bottleneck, though two links are full.
    pair = tuple(Member(Pattern.simple(1.0, 1.0, Flow((0, 1), 1.0))) for _ in range(2))
    assert SendingFlows(Contention(links, pair), 0.25).rates((0, 1), None) == pytest.approx(
        [0.5] * 2
    )
