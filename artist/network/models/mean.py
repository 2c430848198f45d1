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

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from artist.network.models.canonical import by_component, canonical
from artist.network.models.max_min import Floats
from artist.network.models.patterns import Contention, Flow, SharedLink, Slowed
from artist.network.models.sending_flows import TWO_BOTTLENECK_WEIGHT
from artist.network.models.simulation import alone_s
from artist.network.models.states import Bools, FlowsOfJobs, rates_of_several

# 64 states: 2 ms.
MOST_TOGETHER = 6

# 16 states: .5 ms. On one link with up to 24 equal jobs the closed form is met within 4 %; crowds
# of six come no more than 1.5 % closer.
CROWD = 4

# Chains that are answered together. More save little, and cost memory.
SIDE_BY_SIDE = 32

# A change of an iteration by three thousandths is far below the model's error of a few percent.
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
        periods_s = Chain(links, jobs, two_bottleneck_weight).periods_s(jobs).tolist()
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


def _flows(links: Sequence[SharedLink], jobs: Sequence[SendingJob]) -> FlowsOfJobs:
    owners = [index for index, job in enumerate(jobs) for _ in job.flows]
    return FlowsOfJobs.of(links, [flow for job in jobs for flow in job.flows], owners)


class _Sharers(NamedTuple):
    """Some jobs of one chain, and flows around them that always send."""

    jobs: Sequence[SendingJob]
    flows: FlowsOfJobs
    """Those of the jobs in their order, then the others; each of these has an owner of its own."""

    @property
    def own_flows(self) -> int:
        """Number of flows of the jobs."""
        return sum(len(job.flows) for job in self.jobs)


@cache
def _states(jobs: int) -> Bools:
    """Shape (states, jobs): who is Up in each state. The first job is the highest bit."""
    states = np.array(list(itertools.product((False, True), repeat=jobs)), dtype=bool)
    states.flags.writeable = False
    return states


def _speeds(every: Sequence[_Sharers], two_bottleneck_weight: float) -> list[Floats]:
    """Of each chain, shape (states, jobs): of a job's isolated speed; its slowest flow counts."""
    asked = []
    for sharers in every:
        up = _states(len(sharers.jobs))
        always = np.ones((len(up), len(sharers.flows.caps) - sharers.own_flows), dtype=bool)
        asked.append((sharers.flows, np.concatenate((up, always), axis=1)))
    speeds = []
    for sharers, rates in zip(every, rates_of_several(asked, two_bottleneck_weight), strict=True):
        of_chain = np.where(_states(len(sharers.jobs)), 1.0, 0.0)
        if own := sharers.own_flows:
            of_flows = rates[:, :own] / sharers.flows.caps[:own]
            owners, firsts = np.unique(sharers.flows.owners[:own], return_index=True)
            slowest = np.minimum.reduceat(of_flows, firsts, axis=1)
            of_chain[:, owners] = np.minimum(of_chain[:, owners], slowest)
        speeds.append(of_chain)
    return speeds


def _chances(every: Sequence[Sequence[SendingJob]], speeds: Sequence[Floats]) -> Floats:
    """The stationary probability of each state of chains of equally many jobs: (chains, states)."""
    count = len(every[0])
    here = np.arange(1 << count)
    states = _states(count)
    rates = np.zeros((len(every), len(here), len(here)))
    for chain, (jobs, of_chain) in enumerate(zip(every, speeds, strict=True)):
        for index, job in enumerate(jobs):
            there = here ^ (1 << (count - 1 - index))
            up = 1.0 / max(job.down_s, NO_DOWN * job.busy_s)
            down = of_chain[:, index] / job.busy_s
            rates[chain, here, there] = np.where(states[:, index], down, up)
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
    fifths of an answer.
    """

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        self._speeds = _speeds([_Sharers(jobs, _flows(links, jobs))], two_bottleneck_weight)

    def periods_s(self, jobs: Sequence[SendingJob]) -> Floats:
        """Iterations in seconds of jobs with the flows of these, and any Down and Up times."""
        return _periods_s([jobs], self._speeds)[0]


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
    crowds = Crowds(links, jobs, two_bottleneck_weight)
    periods_s = [job.alone_s for job in jobs]
    for _ in range(MOST_ROUNDS):
        before_s = periods_s
        periods_s = crowds.periods_s(before_s, range(len(jobs)))
        if np.allclose(periods_s, before_s, rtol=CONVERGED, atol=0):
            break
    return periods_s


class Crowds:
    """Many jobs. A job's iteration depends on those near it, and on how often they send."""

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        self._jobs = jobs
        self._two_bottleneck_weight = two_bottleneck_weight
        self._near = _Neighbours(jobs)
        self._flows = _flows(links, jobs)
        ends = np.cumsum([0, *(len(job.flows) for job in jobs)])
        self._flows_of = [np.arange(first, last) for first, last in pairwise(ends.tolist())]

    def periods_s(self, before_s: Sequence[float], indices: Iterable[int]) -> list[float]:
        """One round: new iterations of some jobs, from the earlier iterations of all."""
        sends = [job.busy_s / before for job, before in zip(self._jobs, before_s, strict=True)]
        mean_rates = self._flows.caps * np.array(sends)[self._flows.owners]
        periods_s = list(before_s)
        asked = list(indices)
        for first in range(0, len(asked), SIDE_BY_SIDE):
            batch = asked[first : first + SIDE_BY_SIDE]
            chains_s = self._chains_s([self._crowd(index, sends, mean_rates) for index in batch])
            for index, period_s in zip(batch, chains_s, strict=True):
                periods_s[index] = _half_step(before_s[index], period_s)
        return periods_s

    def _chains_s(self, crowds: Sequence[_Sharers]) -> list[float]:
        # Equal jobs in equal crowds need one chain.
        keys = [_key(crowd) for crowd in crowds]
        different = dict(zip(keys, crowds, strict=True))
        asked = list(different.values())
        speeds = _speeds(asked, self._two_bottleneck_weight)
        periods = _periods_s([crowd.jobs for crowd in asked], speeds)
        known = {key: float(period[0]) for key, period in zip(different, periods, strict=True)}
        return [known[key] for key in keys]

    def _crowd(self, index: int, sends: Sequence[float], mean_rates: Floats) -> _Sharers:
        """The job and the others in its chain, and the flows around them at their mean rates.

        `sends` holds each job's mean rate over its isolated rate while Up, and `mean_rates` the
        mean rate of each flow.
        """
        crowd = self._near.crowd(index, sends)
        own = [self._flows_of[job] for job in crowd]
        inside = np.concatenate(own)
        around = [self._flows_of[job] for job in self._near.around(crowd)]
        outside = np.concatenate([inside[:0], *around])
        flows = np.concatenate((inside, outside))
        caps = np.concatenate((self._flows.caps[inside], mean_rates[outside]))
        owner = np.repeat(np.arange(len(crowd)), [len(of_job) for of_job in own])
        others = np.arange(len(crowd), len(crowd) + len(outside))
        these = self._flows.chosen(flows, caps, np.concatenate((owner, others)))
        return _Sharers([self._jobs[job] for job in crowd], these)


def _key(crowd: _Sharers) -> tuple[object, ...]:
    """The same for crowds whose chains are the same."""
    times = tuple((job.down_s, job.busy_s, len(job.flows)) for job in crowd.jobs)
    flows, links = crowd.flows, crowd.flows.links
    arrays = [
        links.capacities, links.etas, links.one_queue, flows.paths, flows.lengths, flows.caps,
        flows.weights,
    ]  # fmt: skip
    if (flows.sources >= 0).any():  # else each flow comes from itself
        arrays.append(np.unique(flows.sources, return_inverse=True)[1])
    return (times, *(array.tobytes() for array in arrays))


def _half_step(before_s: float, after_s: float) -> float:
    """Longer iterations of the others make this one shorter. Half steps damp the swings."""
    return math.sqrt(before_s * after_s)


class _Neighbours:
    """Which jobs share links."""

    def __init__(self, jobs: Sequence[SendingJob]) -> None:
        self._demands = [_demands(job) for job in jobs]
        """Of each job while it is Up: bytes per second on each link."""
        self._on: dict[int, list[int]] = {}
        for index, demands in enumerate(self._demands):
            for link in demands:
                self._on.setdefault(link, []).append(index)

    def around(self, crowd: Sequence[int]) -> list[int]:
        """The jobs that share a link with one of these, and are not among them."""
        links = {link for index in crowd for link in self._demands[index]}
        return sorted({other for link in links for other in self._on[link]} - set(crowd))

    def crowd(self, index: int, sends: Sequence[float]) -> list[int]:
        """The job, and those that share its links, or the links of these, and weigh most there."""
        crowd = [index]
        while len(crowd) < CROWD and (around := self.around(crowd)):
            links = {link for other in crowd for link in self._demands[other]}

            def weight(other: int, links: set[int] = links) -> tuple[float, int]:
                sent = sum(x for link, x in self._demands[other].items() if link in links)
                return -sent * sends[other], other

            crowd += sorted(around, key=weight)[: CROWD - len(crowd)]
        return crowd


def _demands(job: SendingJob) -> dict[int, float]:
    demands: dict[int, float] = {}
    for flow in job.flows:
        for link in flow.links:
            demands[link] = demands.get(link, 0.0) + flow.cap_bytes_per_s
    return demands
