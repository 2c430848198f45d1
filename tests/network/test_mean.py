"""Does `mean` agree with a processor-sharing server and `phase`, whatever the names?"""

from __future__ import annotations

from dataclasses import replace
from math import perm
from random import Random

import numpy as np
import pytest
from contentions import LINE, contentions, line_rate, on_one_link, shuffled
from hypothesis import given, settings
from hypothesis import strategies as st

from artist.network.models.mean import (
    MOST_TOGETHER,
    Chain,
    Crowds,
    SendingJob,
    Steps,
    lone_period_s,
    mean,
    sending_job,
)
from artist.network.models.patterns import (
    Contention,
    Flow,
    Member,
    Pattern,
    PatternStep,
    SharedLink,
)
from artist.network.models.phase import fluid, iterations_s
from artist.network.models.sending_flows import SendingFlows
from artist.network.models.simulation import Simulation
from artist.network.models.speeds import Floats, FlowsOnLinks, Sharers, speeds_of_several, states


def closed_network_s(jobs: int, down_s: float, up_s: float) -> float:
    """An iteration of one of several equal jobs at a processor-sharing server.

    Baskett et al. 1975: P(k are Up) is proportional to jobs! / (jobs - k)! x (up / down)^k.
    """
    chances = [perm(jobs, up) * (up_s / down_s) ** up for up in range(jobs + 1)]
    return jobs * up_s / (1 - chances[0] / sum(chances))


@pytest.mark.parametrize("jobs", range(1, MOST_TOGETHER + 1))
@pytest.mark.parametrize("up_s", [0.1, 0.5, 0.9])
def test_few_equal_jobs_are_a_closed_network(jobs: int, up_s: float) -> None:
    member = Member(line_rate(1 - up_s, up_s))
    slowed = mean(on_one_link(*[member] * jobs))
    expected = closed_network_s(jobs, 1 - up_s, up_s)
    assert [x.iteration_s for x in slowed] == pytest.approx([expected] * jobs, rel=1e-9)


@pytest.mark.parametrize(("jobs", "up_s"), [(8, 0.3), (12, 0.05), (12, 0.1), (24, 0.05), (16, 0.3)])
def test_many_equal_jobs_come_close_to_it(jobs: int, up_s: float) -> None:
    assert jobs > MOST_TOGETHER
    slowed = mean(on_one_link(*[Member(line_rate(1 - up_s, up_s))] * jobs))
    assert slowed[0].iteration_s == pytest.approx(closed_network_s(jobs, 1 - up_s, up_s), rel=0.04)


def test_two_equal_jobs_at_all_offsets_take_as_long_on_average() -> None:
    # Offsets delta in [0, period) are equally likely where both are alone, so where they overlap
    # an offset lasts as long as its iteration: T(delta) = d + 2u - |delta|.
    pattern = line_rate(0.7, 0.3)
    offsets = (np.arange(200) + 0.5) / 200
    slowed = [fluid(on_one_link(Member(pattern), Member(pattern, x)))[0] for x in offsets]
    sampled = float(np.mean([x.iteration_s for x in slowed]))
    assert mean(on_one_link(Member(pattern), Member(pattern)))[0].iteration_s == pytest.approx(
        sampled, rel=0.01
    )


def test_a_job_that_always_sends_leaves_the_others_the_rest() -> None:
    steady = Member(Pattern.simple(0.0, 0.25 * LINE, Flow((0,), LINE / 4)))
    slowed = mean(on_one_link(steady, Member(line_rate(0.5, 0.5))))
    # The second job has .75 of the link whenever it is Up; the first is never held back.
    assert slowed[1].iteration_s == pytest.approx(0.5 + 0.5 / 0.75)
    assert slowed[0].slowdown == pytest.approx(1.0)


def test_offsets_and_jobs_without_traffic_do_not_matter() -> None:
    quiet = Member(Pattern((), (PatternStep(1.0, ()),)))
    pair = [Member(line_rate(0.5, 0.5)), Member(line_rate(0.5, 0.5), 0.3)]
    moved = [Member(line_rate(0.5, 0.5), 0.7), Member(line_rate(0.5, 0.5))]
    assert mean(on_one_link(*pair, quiet))[:2] == mean(on_one_link(*moved))
    assert mean(on_one_link(quiet))[0].slowdown == 1.0


@settings(max_examples=60)
@given(contentions(), st.randoms(use_true_random=False))
def test_names_change_no_bit(contention: Contention, random: Random) -> None:
    slowed = mean(contention)
    other, jobs = shuffled(contention, random)
    assert mean(other) == tuple(slowed[job] for job in jobs)


@given(contentions())
def test_no_job_gains_from_sharing(contention: Contention) -> None:
    assert all(slowed.slowdown >= 1 for slowed in mean(contention))


@st.composite
def on_a_link(draw: st.DrawFn) -> Contention:
    """A few jobs, each with one flow over the only link."""

    def member() -> Member:
        share, volume = draw(st.floats(0.05, 1.0)), draw(st.floats(1e-3, 2.0))
        flow = Flow((0,), share * LINE, draw(st.sampled_from([0.1, 1.0, 2.5, 8.0])))
        return Member(Pattern.simple(draw(st.floats(0.0, 3.0)), volume * LINE, flow))

    jobs = draw(st.integers(2, MOST_TOGETHER))
    return on_one_link(*[member() for _ in range(jobs)], eta=draw(st.sampled_from([0.9, 1.0])))


@settings(deadline=None)
@given(on_a_link())
def test_another_job_on_a_link_speeds_no_job_up(contention: Contention) -> None:
    # On one link the max-min rate of a job never rises with who else is Up. So the chain is
    # attractive (Liggett, Interacting Particle Systems, 1985, chapter III): more jobs, more Up.
    fewer = mean(replace(contention, members=contention.members[:-1]))
    for before, after in zip(fewer, mean(contention), strict=False):
        assert after.iteration_s >= before.iteration_s * (1 - 1e-9)


def test_a_seventh_job_that_hardly_sends_hardly_moves_the_others() -> None:
    # Six have the chain of all, seven have crowds of six.
    random, moved = Random(5), []
    tiny = Member(line_rate(0.999, 0.001))

    def member() -> Member:
        period_s, up = random.uniform(0.3, 3.0), random.uniform(0.05, 0.6)
        flow = Flow((0,), random.choice([0.25, 0.5, 1.0]) * LINE, random.choice([1.0, 2.0, 4.0]))
        volume = period_s * up * flow.cap_bytes_per_s
        return Member(Pattern.simple(period_s * (1 - up), volume, flow))

    for _ in range(60):
        members = [member() for _ in range(MOST_TOGETHER)]
        before, after = mean(on_one_link(*members)), mean(on_one_link(*members, tiny))
        pairs = zip(before, after, strict=False)
        moved += [y.iteration_s / x.iteration_s - 1 for x, y in pairs]
    assert min(moved) > -1e-9
    assert max(moved) < 0.002


def sharing(contention: Contention) -> Sharers:
    """All jobs of a contention, nobody around them."""
    flows = [member.pattern.flows for member in contention.members]
    return FlowsOnLinks(contention.links, flows).sharers(range(len(flows)))


def speeds(contention: Contention, weight: float = 1.0) -> Floats:
    return speeds_of_several([sharing(contention)], weight)[0]


def one_flow_each(contention: Contention) -> Contention:
    """Each job with its first flow only."""
    members = [
        Member(Pattern.simple(1.0, LINE, member.pattern.flows[0])) for member in contention.members
    ]
    return Contention(contention.links, tuple(members))


@settings(max_examples=60)
@given(contentions().map(one_flow_each), st.sampled_from([0.25, 1.0]))
def test_jobs_of_one_flow_are_as_fast_as_in_the_event_simulation(
    contention: Contention, weight: float
) -> None:
    simulated = SendingFlows(contention, weight)
    caps = np.array([member.pattern.flows[0].cap_bytes_per_s for member in contention.members])
    for state, of_jobs in zip(states(len(caps)), speeds(contention, weight), strict=True):
        sending = np.flatnonzero(state)
        expected = simulated.rates(tuple(sending.tolist()), None)
        assert (of_jobs * caps)[sending].tolist() == pytest.approx(list(expected), rel=1e-7)
        assert (of_jobs[~state] == 0).all()


@settings(max_examples=60)
@given(contentions(), st.sampled_from([0.25, 1.0]))
def test_jobs_of_several_flows_fill_no_link_beyond_its_capacity(
    contention: Contention, weight: float
) -> None:
    demands = np.zeros((len(contention.members), len(contention.links)))
    for job, member in enumerate(contention.members):
        for flow in member.pattern.flows:
            demands[job, list(flow.links)] += flow.cap_bytes_per_s
    capacities = np.array([link.capacity_bytes_per_s for link in contention.links])
    assert (speeds(contention, weight) @ demands <= capacities * (1 + 1e-9)).all()


def test_a_job_leaves_to_others_what_its_slower_flow_does_not_need() -> None:
    # Job 0 has a quarter of link 0, beside three others, so it needs no more of link 1; job 4 is
    # alone with it there. If flows had rates of their own, job 4 would have half.
    long = Pattern.simple(1.0, LINE, Flow((0,), LINE), Flow((1,), LINE))
    short, other = line_rate(1.0, 1.0), Pattern.simple(1.0, LINE, Flow((1,), LINE))
    members = tuple(Member(x) for x in (long, short, short, short, other))
    all_up = speeds(Contention((SharedLink(LINE),) * 2, members))[-1]
    assert all_up.tolist() == pytest.approx([0.25, 0.25, 0.25, 0.25, 0.75])


def test_one_of_two_flows_that_two_links_hold_back_counts_as_half() -> None:
    # Job 1 meets job 0 on link 0 and job 2 on link 1, with one flow of two; the other one has a
    # link of its own. Its weight is the root of .25, and w / (1 + w) of a link is a third.
    middle = Pattern.simple(1.0, LINE, Flow((0, 1), LINE), Flow((2,), LINE))
    ends = [Pattern.simple(1.0, LINE, Flow((link,), LINE)) for link in (0, 1)]
    members = tuple(Member(x) for x in (ends[0], middle, ends[1]))
    all_up = speeds(Contention((SharedLink(LINE),) * 3, members), 0.25)[-1]
    assert all_up.tolist() == pytest.approx([2 / 3, 1 / 3, 2 / 3])


@pytest.mark.parametrize(("nics", "speed"), [((0, 0), 0.5), ((0, 1), 0.3)])
def test_jobs_out_of_one_nic_do_not_queue_for_each_other(
    nics: tuple[int, int], speed: float
) -> None:
    # Link 2 carries 1, and .6 while jobs queue there. Out of one NIC they come in turn.
    links = (
        SharedLink(1.0, fair_queued=True),
        SharedLink(1.0, fair_queued=True),
        SharedLink(1.0, eta=0.6),
    )
    members = tuple(Member(Pattern.simple(1.0, 1.0, Flow((nic, 2), 1.0))) for nic in nics)
    assert speeds(Contention(links, members))[-1].tolist() == [speed] * 2


@settings(max_examples=60)
@given(st.lists(contentions(), min_size=2, max_size=3))
def test_chains_solved_together_change_no_bit_of_each_other(several: list[Contention]) -> None:
    asked = [sharing(contention) for contention in several]
    for contention, together in zip(several, speeds_of_several(asked, 0.25), strict=True):
        assert together.tolist() == speeds(contention, 0.25).tolist()


def test_crowds_solved_together_equal_crowds_solved_one_by_one() -> None:
    """Crowds of all sizes, on a line of links; the fifth job and the sixth are alone."""
    random = np.random.default_rng(5)
    links = tuple(SharedLink(x, eta=0.9) for x in random.uniform(0.5, 1.5, 12).tolist())
    paths = [[0, 1], [1, 2], [2, 3], [3], [5], [6], [8, 9], [9, 10], *[[10, 11]] * 6]
    jobs = [
        SendingJob(*random.uniform(0.1, 1.0, 2).tolist(), (Flow(tuple(path), 0.8), Flow((), 0.1)))
        for path in paths
    ]
    crowds = Crowds(links, jobs)
    before_s = [1.1 * job.alone_s for job in jobs]
    together = crowds.periods_s(jobs, before_s, range(len(jobs)))
    for index, period_s in enumerate(together):
        assert crowds.periods_s(jobs, before_s, [index]) == [period_s]


def test_a_step_that_went_too_far_is_followed_by_half_of_one() -> None:
    steps = Steps()
    assert steps.next(0, 1.0, 4.0) == 4.0
    assert steps.next(0, 4.0, 1.0) == pytest.approx(2.0)
    assert steps.next(0, 2.0, 1.0) == 1.0
    assert steps.next(1, 4.0, 1.0) == 1.0


# The P95 of an earlier prototype, which took phases for independent.
@pytest.mark.parametrize(("jobs", "p95"), [(2, 0.029), (3, 0.040), (4, 0.040)])
def test_unequal_jobs_whose_computation_jitters_take_as_long(jobs: int, p95: float) -> None:
    random = np.random.default_rng(jobs)
    errors = []
    for _ in range(6):
        members = []
        for _ in range(jobs):
            period_s, up = random.uniform(0.5, 2.0), random.uniform(0.1, 0.5)
            factors = tuple(np.exp(random.normal(0.0, 0.05, 5000)).tolist())
            pattern = line_rate(period_s * (1 - up), period_s * up)
            members.append(Member(pattern, 0.0, factors))
        contention = on_one_link(*members)
        simulation = Simulation(contention)
        simulation.run(lambda now: min(job.iterations for job in now.jobs) >= 1000)
        for job, slowed in zip(simulation.jobs, mean(contention), strict=True):
            errors.append(slowed.iteration_s / float(np.mean(iterations_s(job, 20))) - 1)
    assert abs(np.mean(errors)) < 0.005
    assert np.quantile(np.abs(errors), 0.95) < p95


@given(contentions())
def test_a_lone_job_has_the_iteration_of_its_chain_to_the_bit(contention: Contention) -> None:
    for index in range(len(contention.members)):
        job = sending_job(contention, index)
        # Half of what its links carry in isolation, so that some of them hold it back.
        links = tuple(
            replace(link, capacity_bytes_per_s=link.capacity_bytes_per_s / 2)
            for link in contention.links
        )
        chain = Chain(links, [job])
        assert [lone_period_s(links, job)] == chain.periods_s([job])


def test_two_jobs_have_the_iterations_of_their_crowd_to_the_bit() -> None:
    # A chain of two is worked out in plain numbers, a crowd of two in arrays.
    random, held = Random(0), 0
    for _ in range(300):
        links = tuple(
            SharedLink(random.choice([1.0, random.uniform(0.3, 3)]), random.random() < 0.4, eta)
            for eta in random.choices([1.0, 0.976], k=random.randint(1, 6))
        )
        jobs = [sending_at_random(random, len(links)) for _ in range(2)]
        jobs[1] = replace(jobs[1], flows=(*jobs[1].flows, replace(jobs[0].flows[0], weight=3.0)))
        alone_s = [job.alone_s for job in jobs]
        periods_s = Chain(links, jobs).periods_s(jobs)
        held += periods_s > alone_s
        assert periods_s == Crowds(links, jobs).periods_s(jobs, alone_s, (0, 1))
    assert held > 150


def sending_at_random(random: Random, links: int) -> SendingJob:
    flows = tuple(
        Flow(
            tuple(random.sample(range(links), random.randint(1, min(4, links)))),
            random.choice([0.5, 1.0, random.uniform(0.1, 2)]),
            random.choice([1.0, 2.0, 3.5]),
        )
        for _ in range(random.randint(1, 4))
    )
    return SendingJob(random.choice([0.0, random.uniform(0.1, 3)]), random.uniform(0.1, 2), flows)
