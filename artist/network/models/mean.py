"""`mean`: how long iterations take for jobs that share links at random phases.

A job is Down for `down` and then Up until its flows are done. Which jobs are Up is a Markov chain:

    job i goes Up at the rate   1 / down_i
    and Down at the rate        speed_i(who is Up) / busy_i,   busy_i the isolated Up time

    iteration_i = busy_i / sum over states in which i is Up of P(state) x speed_i(state)

`speed` is the share of its isolated rate that max-min sharing leaves a job. For equal jobs on one
link this is the closed network with a processor-sharing server. Only the means of Down and Up times
count there, not their distributions (Baskett, Chandy, Muntz and Palacios 1975). So the model is
exact there for periodic jobs at random phases, but not for jobs in step, which take longer.

With more than `MOST_TOGETHER` jobs the chain is too large. Each job then has a chain of its own,
with the neighbours that load its links most (its crowd). Every job outside the crowd sends all the
time at its expected rate, volume / period, since the sum of many varies little. The periods come
from the chains, so the answer is a fixed point.

All Up phases of a job count as one. Its flows demand rates at which all of them end together in
isolation, so each link carries the right number of bytes.
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
from artist.network.models.speeds import Floats, FlowsOnLinks, speeds_of_several, states

# Six jobs have 64 states and take 2 ms. For seven and eight random jobs, crowds of six differ from
# one chain of all by .3 to 2.9 % (root mean square). Crowds of four take half the time, and differ
# by 1.3 to 4.6 %.
MOST_TOGETHER = 6

# Chains that are answered together. More would save little time and cost memory.
SIDE_BY_SIDE = 32

# Rounds end when no iteration would change by more than this part: the model errs by more.
CONVERGED = 3e-3
MOST_ROUNDS = 20

# The least Down time, as a part of the Up time, so that rates stay finite without any Down time.
NO_DOWN = 1e-9


@dataclass(frozen=True, slots=True)
class SendingJob:
    """A job as `mean` sees it: all `flows` send in one Up phase, of `busy_s` in isolation."""

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
    """Iterations of the jobs of a contention. Offsets do not matter."""
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
    """A job of a contention as `mean` sees it, with its isolated Up time on these links."""
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
    """The stationary probabilities of chains of equally many jobs: shape (chains, states)."""
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

    States are eliminated one by one (Grassmann, Taksar and Heyman 1985). No step subtracts, so no
    digits cancel. The order of operations depends neither on a library or machine nor on the number
    of chains. Overwrites the rates.
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
    """The Markov chain of up to `MOST_TOGETHER` jobs.

    Speeds depend on flows only, so one `Chain` serves any Down and Up times. Speeds take four
    fifths of the time of an answer. Half of all questions are about two jobs; `pair` answers these
    faster.
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
        sharers = FlowsOnLinks(links, [job.flows for job in jobs]).sharers(range(len(jobs)))
        self._speeds = speeds_of_several([sharers], two_bottleneck_weight)

    def periods_s(self, jobs: Sequence[SendingJob]) -> list[float]:
        """Iterations in seconds of jobs with the constructor's flows and any Down and Up times."""
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
    """Seconds of an iteration of a single job: what a `Chain` of it gives, to the bit."""
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
    """Iterations of the jobs of several independent chains, in seconds."""
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
    """Iterations of many jobs in seconds, each from the chain of its crowd."""
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
    """Steps of jobs towards the fixed point, damped where they overshoot.

    Longer iterations of other jobs make a job's iteration shorter, so whole steps may oscillate. If
    the way turns round, the part of it that a job takes is halved; else it is doubled, up to 1.
    """

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}
        """By job: the whole way of its last step, and the part of the way that it took."""

    def next(self, job: int, before_s: float, after_s: float) -> float:
        """An iteration on the way from `before_s` to `after_s`."""
        way = math.log(after_s / before_s)
        last, part = self._last.get(job, (way, 1.0))
        part = part / 2 if way * last < 0 else min(2 * part, 1.0)
        self._last[job] = way, part
        return after_s if part == 1 else before_s * math.exp(part * way)


class Crowds:
    """Many jobs. The iteration of each depends on its crowd and on the others' mean rates."""

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        self._two_bottleneck_weight = two_bottleneck_weight
        self._on_links = FlowsOnLinks(links, [job.flows for job in jobs])

    def periods_s(
        self, jobs: Sequence[SendingJob], before_s: Sequence[float], indices: Iterable[int]
    ) -> list[float]:
        """New iterations of the jobs `indices`, in seconds, from earlier iterations of all jobs.

        The jobs may have other Down times than the constructor's jobs.
        """
        sends = np.array([job.busy_s for job in jobs]) / np.array(before_s)
        asked = list(indices)
        crowd_of = {index: self._crowd(index, sends) for index in asked}
        # Jobs with the same crowd share one chain.
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
        """The job and the jobs that load its links most, then those that load the links of these.

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
