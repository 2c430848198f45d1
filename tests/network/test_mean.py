"""`mean` against the closed form of a processor-sharing server, `phase`, and other names."""

from __future__ import annotations

from math import perm
from random import Random

import numpy as np
import pytest
from contentions import LINE, contentions, line_rate, on_one_link, shuffled
from hypothesis import given, settings
from hypothesis import strategies as st

from artist.network.models.mean import CROWD, MOST_TOGETHER, Crowds, SendingJob, mean
from artist.network.models.patterns import Contention, Flow, Member, Pattern, SharedLink, Step
from artist.network.models.phase import fluid, iterations_s
from artist.network.models.sending_flows import SendingFlows
from artist.network.models.simulation import Simulation
from artist.network.models.states import FlowsOfJobs, rates_of_several


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
    assert jobs > MOST_TOGETHER > CROWD
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
    quiet = Member(Pattern((), (Step(1.0, ()),)))
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


def test_states_side_by_side_are_the_states_one_by_one() -> None:
    links = (SharedLink(1.0), SharedLink(2.0, eta=0.5), SharedLink(3.0, fair_queued=True))
    flows = [Flow((0, 1), 1.0), Flow((1, 2), 2.0), Flow((0,), 0.3), Flow((2, 0), 5.0, 2.0)]
    owners = np.array([0, 1, 1, 2])
    up = np.array([[x >> y & 1 for y in range(3)] for x in range(8)], dtype=bool)
    together = rates_in_states(FlowsOfJobs.of(links, flows, owners), up, 0.25)
    for state, row in zip(up, together, strict=True):
        single = rates_in_states(FlowsOfJobs.of(links, flows, owners), state[None, :], 0.25)
        assert single[0].tolist() == row.tolist()
    assert (together[0] == 0).all()


def rates_in_states(these: FlowsOfJobs, up: np.ndarray, weight: float = 1.0) -> np.ndarray:
    return rates_of_several([(these, up)], weight)[0]


def parts(contention: Contention) -> tuple[FlowsOfJobs, np.ndarray]:
    """The flows of a contention, and all states of who is Up."""
    members = contention.members
    flows = [flow for member in members for flow in member.pattern.flows]
    owners = [job for job, member in enumerate(members) for _ in member.pattern.flows]
    up = np.array([[x >> y & 1 for y in range(len(members))] for x in range(1 << len(members))])
    return FlowsOfJobs.of(contention.links, flows, owners), up.astype(bool)


@settings(max_examples=60)
@given(contentions(), st.sampled_from([0.25, 1.0]))
def test_rates_in_a_state_are_those_of_the_event_simulation(
    contention: Contention, weight: float
) -> None:
    these, up = parts(contention)
    simulated = SendingFlows(contention, weight)
    for state, rates in zip(up, rates_in_states(these, up, weight), strict=True):
        sending = np.flatnonzero(state[these.owners])
        expected = simulated.rates(tuple(sending.tolist()), None)
        assert rates[sending].tolist() == pytest.approx(list(expected), rel=1e-7)
        assert rates.sum() == rates[sending].sum()


@pytest.mark.parametrize(("nics", "rate"), [((0, 0), 0.5), ((0, 1), 0.3)])
def test_jobs_out_of_one_nic_do_not_queue_for_each_other(
    nics: tuple[int, int], rate: float
) -> None:
    # Link 2 carries 1, and .6 while jobs queue there. Out of one NIC they come in turn.
    links = (
        SharedLink(1.0, fair_queued=True),
        SharedLink(1.0, fair_queued=True),
        SharedLink(1.0, eta=0.6),
    )
    flows = [Flow((nic, 2), 1.0) for nic in nics]
    both_up = np.array([[True, True]])
    assert rates_in_states(FlowsOfJobs.of(links, flows, [0, 1]), both_up).tolist() == [[rate] * 2]


@settings(max_examples=60)
@given(st.lists(contentions(), min_size=2, max_size=3))
def test_networks_asked_together_change_no_bit_of_each_other(several: list[Contention]) -> None:
    asked = [parts(contention) for contention in several]
    for (these, up), rates in zip(asked, rates_of_several(asked, 0.25), strict=True):
        assert rates.tolist() == rates_in_states(these, up, 0.25).tolist()


def test_jobs_asked_together_get_the_answers_of_one_by_one() -> None:
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
    together = crowds.periods_s(before_s, range(len(jobs)))
    for index in range(len(jobs)):
        single = list(before_s)
        single[index] = together[index]
        assert crowds.periods_s(before_s, [index]) == single


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
