"""`mean`: what an iteration takes for jobs that share links at random phases.

A job is Down for `down` and then Up until its flows are done. Which jobs are Up is a Markov chain:

    job i goes Up at the rate   1 / down_i
    and Down at the rate        speed_i(who is Up) / busy_i,   busy_i the isolated Up time

    iteration_i = busy_i / sum over states in which i is Up of P(state) x speed_i(state)

`speed` is what max-min sharing leaves of the job's isolated rate. For equal jobs on one link this
is the closed network with a processor-sharing server. There only the means of Down and Up times
count, not their distributions (Baskett, Chandy, Muntz and Palacios 1975), so periodic jobs that
have lost their phases are met exactly. Phases are not: equal jobs that run in step take longer.

Above `MOST_TOGETHER` jobs the chain is too large. Then each job has a chain of its own, with the
neighbours that weigh most on its links. Each job around them sends all the time at its expected
rate, volume / period, since the sum of many varies little. The periods come from the chains, so
this is a fixed point.

A job's Up phases count as one. Its flows demand what lets all end together in isolation. So each
link carries the right number of bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from artist.network.models.canonical import by_component, canonical
from artist.network.models.pair import chances_of_two, speeds_of_two
from artist.network.models.patterns import Contention, Flow, SharedLink, Slowed
from artist.network.models.sending_flows import TWO_BOTTLENECK_WEIGHT
from artist.network.models.simulation import alone_s
from artist.network.models.speeds import Floats, JobsOnLinks, speeds_of_several, states

# 64 states: 2 ms. Of seven and eight jobs at random, crowds of six come within .3 to 2.9 % of the
# chain of all (root mean square). Crowds of four take half the time, and err by 1.3 to 4.6 %.
MOST_TOGETHER = 6

# Chains that are answered together. More save little, and cost memory.
SIDE_BY_SIDE = 32

# A step of an iteration by a hundredth is below the model's error, and the next would be smaller.
CONVERGED = 3e-3
MOST_ROUNDS = 20

# A job that computes nothing between two Up phases; against it any Up phase is long.
NO_DOWN = 1e-9


@dataclass(frozen=True, slots=True)
class SendingJob:
    """A job as `mean` sees it: `flows` send during one Up phase, of `busy_s` in isolation."""

    down_s: float
    busy_s: float
    flows: tuple[Flow, ...]

    @property
    def alone_s(self) -> float:
        """An iteration in isolation."""
        return self.down_s + self.busy_s


def mean(
    contention: Contention, two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT
) -> tuple[Slowed, ...]:
    """Iterations of the jobs of a contention, whatever their offsets."""
    return by_component(
        _without_phases(contention), lambda part: _of_component(part, two_bottleneck_weight)
    )


def _of_component(contention: Contention, two_bottleneck_weight: float) -> tuple[Slowed, ...]:
    if len(contention.members) == 1:
        alone = alone_s(contention, 0)
        return (Slowed(alone, alone),)
    form = canonical(contention)
    jobs = [sending_job(form.contention, index) for index in range(len(form.order))]
    links = form.contention.links
    if len(jobs) <= MOST_TOGETHER:
        periods_s = Chain(links, jobs, two_bottleneck_weight).periods_s(jobs)
    else:
        periods_s = _each_among_others(links, jobs, two_bottleneck_weight)
    return form.in_place(
        [
            Slowed(max(period_s, job.alone_s), job.alone_s)
            for period_s, job in zip(periods_s, jobs, strict=True)
        ]
    )


def _without_phases(contention: Contention) -> Contention:
    members = tuple(replace(member, offset_s=0.0, down_factors=()) for member in contention.members)
    return Contention(contention.links, members)


def sending_job(contention: Contention, index: int) -> SendingJob:
    """A job of a contention as `mean` sees it; it sends as long as in isolation there."""
    pattern = contention.members[index].pattern
    down_s = pattern.down_s
    busy_s = max(alone_s(contention, index) - down_s, 0.0)
    volumes = [
        sum(volumes) for volumes in zip(*(x.volumes_bytes for x in pattern.steps), strict=True)
    ]
    flows = tuple(
        replace(flow, cap_bytes_per_s=volume / busy_s)
        for flow, volume in zip(pattern.flows, volumes, strict=True)
        if volume
    )
    return SendingJob(down_s, busy_s, flows)


def _up_rate(job: SendingJob) -> float:
    return 1.0 / max(job.down_s, NO_DOWN * job.busy_s)


def _chances(every: Sequence[Sequence[SendingJob]], speeds: Sequence[Floats]) -> Floats:
    """The stationary probability of each state of chains of equally many jobs: (chains, states)."""
    count = len(every[0])
    here = np.arange(1 << count)
    states_ = states(count)
    rates = np.zeros((len(every), len(here), len(here)))
    for chain, (jobs, of_chain) in enumerate(zip(every, speeds, strict=True)):
        for index, job in enumerate(jobs):
            there = here ^ (1 << (count - 1 - index))
            up = _up_rate(job)
            down = of_chain[:, index] / job.busy_s
            rates[chain, here, there] = np.where(states_[:, index], down, up)
    return _stationary(rates)


def _stationary(rates: Floats) -> Floats:
    """The stationary probabilities of Markov chains, from their rates (chain, from, to).

    States are taken out one by one (Grassmann, Taksar and Heyman 1985). Nothing is subtracted, so
    nothing cancels; and the order of the operations does not depend on a library or a machine, nor
    on how many chains there are. Overwrites the rates.
    """
    for last in range(rates.shape[1] - 1, 0, -1):
        rates[:, :last, last] /= rates[:, last, :last].sum(axis=1)[:, None]
        rates[:, :last, :last] += rates[:, :last, last, None] * rates[:, last, None, :last]
    chances = np.ones(rates.shape[:2])
    for state in range(1, rates.shape[1]):
        chances[:, state] = (chances[:, :state] * rates[:, :state, state]).sum(axis=1)
    chances /= chances.sum(axis=1)[:, None]
    return chances


class Chain:
    """The chain of few jobs.

    Their speeds depend on nothing but flows, so one `Chain` serves any times. Speeds cost four
    fifths of an answer. Two jobs, half of all questions, are worked out in plain numbers (`pair`).
    """

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        if len(jobs) == 2:
            self._of_two = speeds_of_two(links, jobs[0].flows, jobs[1].flows)
            return
        sharers = JobsOnLinks(links, [job.flows for job in jobs]).sharers(range(len(jobs)))
        self._speeds = speeds_of_several([sharers], two_bottleneck_weight)

    def periods_s(self, jobs: Sequence[SendingJob]) -> list[float]:
        """Iterations in seconds of jobs with the flows of these, and any Down and Up times."""
        if len(jobs) == 2:
            return self._periods_of_two_s(*jobs)
        return [float(x) for x in _periods_s([jobs], self._speeds)[0]]

    def _periods_of_two_s(self, one: SendingJob, other: SendingJob) -> list[float]:
        alone, both = self._of_two
        busy_s = one.busy_s, other.busy_s
        first, second, together = chances_of_two(
            (_up_rate(one), _up_rate(other)),
            (alone[0] / busy_s[0], alone[1] / busy_s[1]),
            (both[0] / busy_s[0], both[1] / busy_s[1]),
        )
        sends = first * alone[0] + together * both[0], second * alone[1] + together * both[1]
        return [busy_s[0] / sends[0], busy_s[1] / sends[1]]


def lone_period_s(links: Sequence[SharedLink], job: SendingJob) -> float:
    """An iteration of one job that is joined to no other: that of its `Chain`, to the bit."""
    demands, connections = [0.0] * len(links), [0.0] * len(links)
    for flow in job.flows:
        for at in flow.links:
            demands[at] += flow.cap_bytes_per_s
            connections[at] += flow.weight
    capacities = [link.capacity_bytes_per_s for link in links]
    speed, crossed = 1.0, list(zip(capacities, demands, connections, strict=True))
    if any(demand > capacity for capacity, demand, _ in crossed):
        speed = min(1.0, *[capacity / x * (x / demand) for capacity, demand, x in crossed if x])
    up = _up_rate(job) / (speed / job.busy_s)
    return job.busy_s / (up / (1.0 + up) * speed)


def _periods_s(every: Sequence[Sequence[SendingJob]], speeds: Sequence[Floats]) -> list[Floats]:
    """Iterations of the jobs of several chains that know nothing of each other."""
    periods: list[Floats] = [np.empty(0)] * len(every)
    for count in {len(jobs) for jobs in every}:
        alike = [index for index, jobs in enumerate(every) if len(jobs) == count]
        chances = _chances([every[x] for x in alike], [speeds[x] for x in alike])
        for index, of_states in zip(alike, chances, strict=True):
            sends = (of_states[:, None] * speeds[index]).sum(axis=0)
            periods[index] = np.array([job.busy_s for job in every[index]]) / sends
    return periods


def _each_among_others(
    links: tuple[SharedLink, ...], jobs: Sequence[SendingJob], two_bottleneck_weight: float
) -> list[float]:
    """Iterations of many jobs, each from the chain of its crowd."""
    crowds, steps = Crowds(links, jobs, two_bottleneck_weight), Steps()
    periods_s = [job.alone_s for job in jobs]
    for _ in range(MOST_ROUNDS):
        before_s = periods_s
        after_s = crowds.periods_s(jobs, before_s, range(len(jobs)))
        periods_s = [steps.next(*x) for x in zip(range(len(jobs)), before_s, after_s, strict=True)]
        if np.allclose(after_s, before_s, rtol=CONVERGED, atol=0):
            break
    return periods_s


class Steps:
    """Steps of jobs towards the fixed point.

    Longer iterations of the others make this one shorter, so whole steps may swing. Where the last
    one went too far, half the part of the way is taken, else twice the part.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}
        """By job: its last step, and the part of the way that it was."""

    def next(self, job: int, before_s: float, after_s: float) -> float:
        """An iteration on the way from `before_s` to `after_s`."""
        way = math.log(after_s / before_s)
        last, part = self._last.get(job, (way, 1.0))
        part = part / 2 if way * last < 0 else min(2 * part, 1.0)
        self._last[job] = way, part
        return after_s if part == 1 else before_s * math.exp(part * way)


class Crowds:
    """Many jobs. A job's iteration depends on those near it, and on how often they send."""

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        self._two_bottleneck_weight = two_bottleneck_weight
        self._on_links = JobsOnLinks(links, [job.flows for job in jobs])

    def periods_s(
        self, jobs: Sequence[SendingJob], before_s: Sequence[float], indices: Iterable[int]
    ) -> list[float]:
        """New iterations of some of the jobs, in their order, from earlier iterations of all.

        The jobs may have other Down times than those of the constructor.
        """
        sends = np.array([job.busy_s for job in jobs]) / np.array(before_s)
        asked = list(indices)
        crowd_of = {index: self._crowd(index, sends) for index in asked}
        # Jobs that are near each other have one chain.
        crowds = list(dict.fromkeys(crowd_of.values()))
        found: dict[tuple[int, ...], Floats] = {}
        for first in range(0, len(crowds), SIDE_BY_SIDE):
            batch = crowds[first : first + SIDE_BY_SIDE]
            sharers = [self._on_links.sharers(crowd, sends) for crowd in batch]
            speeds = speeds_of_several(sharers, self._two_bottleneck_weight)
            every = [[jobs[job] for job in crowd] for crowd in batch]
            found.update(zip(batch, _periods_s(every, speeds), strict=True))
        return [float(found[x][x.index(index)]) for index, x in crowd_of.items()]

    def _crowd(self, index: int, sends: Floats) -> tuple[int, ...]:
        """The job, and those that share its links, or the links of these, and weigh most there.

        Ascending. `sends` holds each job's mean rate over its isolated rate while Up.
        """
        demands = self._on_links.demands
        crowd = [index]
        while len(crowd) < MOST_TOGETHER:
            links = demands[crowd].any(axis=0)
            weights = demands[:, links].sum(axis=1) * sends
            weights[crowd] = 0.0
            around = np.argsort(-weights, kind="stable")[: MOST_TOGETHER - len(crowd)]
            around = around[weights[around] > 0]
            if not len(around):
                break
            crowd += around.tolist()
        return tuple(sorted(crowd))
