"""`mean`: what an iteration takes for jobs that share links at random phases.

A job is Down for `down` and then Up until its flows are done. Which jobs are Up is a Markov chain:

    job i goes Up at the rate   1 / down_i
    and Down at the rate        speed_i(who is Up) / busy_i,   busy_i the Up time alone

    iteration_i = busy_i / sum over states in which i is Up of P(state) x speed_i(state)

`speed` is what max-min sharing leaves of the job's rate alone. For equal jobs on one link this is
the closed network with a processor-sharing server. There only the means of Down and Up times count,
not their distributions (Baskett, Chandy, Muntz and Palacios 1975), so periodic jobs that have lost
their phases are met exactly. Phases are not: equal jobs that run in step take longer.

Above `MOST_TOGETHER` jobs the chain is too large. Then each job has a chain of its own, with the
neighbours that weigh most on its links. Each job around them sends all the time at its expected
rate, volume / period, since the sum of many varies little. The periods come from the chains, so
this is a fixed point.

A job's Up phases count as one. Its flows demand what lets all end together when it is alone. So
each link carries the right number of bytes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from artist.network.models.canonical import canonical
from artist.network.models.components import by_component
from artist.network.models.max_min import Floats
from artist.network.models.patterns import Contention, Flow, SharedLink
from artist.network.models.sending_flows import TWO_BOTTLENECK_WEIGHT
from artist.network.models.simulation import alone_s
from artist.network.models.slowed import Slowed
from artist.network.models.states import FlowsOfJobs, rates_in_states

# 64 states: 2 ms.
MOST_TOGETHER = 6

# 16 states: .5 ms. On one link with up to 24 equal jobs the closed form is met within 4 %; crowds
# of six come no more than 1.5 % closer.
CROWD = 4

# A change of an iteration by three thousandths is far below the model's error of a few percent.
CONVERGED = 3e-3
MOST_ROUNDS = 20

# A job that computes nothing between two Up phases; against it any Up phase is long.
NO_DOWN = 1e-9


@dataclass(frozen=True, slots=True)
class SendingJob:
    """A job as `mean` sees it: `flows` send during one Up phase, of `busy_s` alone."""

    down_s: float
    busy_s: float
    flows: tuple[Flow, ...]

    @property
    def alone_s(self) -> float:
        """An iteration alone."""
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
    periods_of = chain_s if len(jobs) <= MOST_TOGETHER else _each_among_others
    periods_s = periods_of(form.contention.links, jobs, two_bottleneck_weight).tolist()
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
    """A job of a contention as `mean` sees it; it sends as long as it does alone there."""
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


class _Sharers:
    """Some jobs, the states of who is Up, and how fast each job is in each state."""

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float,
        background: Sequence[Flow],
    ) -> None:
        self.jobs = jobs
        count = len(jobs)
        states = list(itertools.product((False, True), repeat=count))
        self.states: npt.NDArray[np.bool_] = np.array(states, dtype=bool)
        flows = [flow for job in jobs for flow in job.flows]
        owners = [index for index, job in enumerate(jobs) for _ in job.flows]
        always = np.ones((len(self.states), len(background)), dtype=bool)
        these = FlowsOfJobs.on_their_links(
            links, [*flows, *background], [*owners, *range(count, count + len(background))]
        )
        rates = rates_in_states(
            these, np.concatenate((self.states, always), axis=1), two_bottleneck_weight
        )
        self.speeds = np.where(self.states, 1.0, 0.0)
        """Shape (states, jobs): of a job's speed alone; the slowest of its flows counts."""
        for position, (flow, owner) in enumerate(zip(flows, owners, strict=True)):
            speed = rates[:, position] / flow.cap_bytes_per_s
            np.minimum(self.speeds[:, owner], speed, out=self.speeds[:, owner])

    def chances(self) -> Floats:
        """The stationary probability of each state of the chain."""
        count = len(self.jobs)
        here = np.arange(1 << count)
        rates = np.zeros((len(here), len(here)))
        for index, job in enumerate(self.jobs):
            # The first job is the highest bit, as in `itertools.product`.
            there = here ^ (1 << (count - 1 - index))
            up = 1.0 / max(job.down_s, NO_DOWN * job.busy_s)
            down = self.speeds[:, index] / job.busy_s
            rates[here, there] = np.where(self.states[:, index], down, up)
        return _stationary(rates)


def _stationary(rates: Floats) -> Floats:
    """The stationary probabilities of a Markov chain, from its rates (from, to). Overwrites them.

    States are taken out one by one (Grassmann, Taksar and Heyman 1985). Nothing is subtracted, so
    nothing cancels; and the order of the operations does not depend on a library or a machine.
    """
    for last in range(len(rates) - 1, 0, -1):
        rates[:last, last] /= rates[last, :last].sum()
        rates[:last, :last] += rates[:last, last, None] * rates[last, :last]
    chances = np.ones(len(rates))
    for state in range(1, len(rates)):
        chances[state] = (chances[:state] * rates[:state, state]).sum()
    chances /= chances.sum()
    return chances


def chain_s(
    links: tuple[SharedLink, ...],
    jobs: Sequence[SendingJob],
    two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    background: Sequence[Flow] = (),
) -> Floats:
    """Iterations of few jobs in seconds, from the chain of all, beside flows that always send."""
    sharers = _Sharers(links, jobs, two_bottleneck_weight, background)
    speeds = (sharers.chances()[:, None] * sharers.speeds).sum(axis=0)
    periods: Floats = np.array([job.busy_s for job in jobs]) / speeds
    return periods


def _each_among_others(
    links: tuple[SharedLink, ...], jobs: Sequence[SendingJob], two_bottleneck_weight: float
) -> Floats:
    """Iterations of many jobs, each from the chain of its crowd."""
    crowds = Crowds(links, jobs, two_bottleneck_weight)
    periods_s = [job.alone_s for job in jobs]
    for _ in range(MOST_ROUNDS):
        before_s = periods_s
        periods_s = crowds.periods_s(before_s, range(len(jobs)))
        if np.allclose(periods_s, before_s, rtol=CONVERGED, atol=0):
            break
    return np.array(periods_s)


class Crowds:
    """Many jobs. A job's iteration depends on those near it, and on how often they send."""

    def __init__(
        self,
        links: tuple[SharedLink, ...],
        jobs: Sequence[SendingJob],
        two_bottleneck_weight: float = TWO_BOTTLENECK_WEIGHT,
    ) -> None:
        self._links, self._jobs = links, jobs
        self._two_bottleneck_weight = two_bottleneck_weight
        self._near = _Neighbours(jobs)

    def periods_s(self, before_s: Sequence[float], indices: Iterable[int]) -> list[float]:
        """One round: new iterations of some jobs, from those of all before it."""
        sends = self._sends(before_s)
        # Equal jobs in equal crowds need one chain.
        known: dict[tuple[tuple[SendingJob, ...], tuple[Flow, ...]], float] = {}
        periods_s = list(before_s)
        for index in indices:
            key = self._crowd(index, sends)
            if key not in known:
                known[key] = self._chain_s(*key)
            periods_s[index] = _half_step(before_s[index], known[key])
        return periods_s

    def period_s(self, before_s: Sequence[float], index: int) -> float:
        """One round for one job: its new iteration, from those of all before it."""
        chain = self._chain_s(*self._crowd(index, self._sends(before_s)))
        return _half_step(before_s[index], chain)

    def _sends(self, before_s: Sequence[float]) -> list[float]:
        return [job.busy_s / before for job, before in zip(self._jobs, before_s, strict=True)]

    def _chain_s(self, crowd: tuple[SendingJob, ...], background: tuple[Flow, ...]) -> float:
        periods = chain_s(self._links, crowd, self._two_bottleneck_weight, background)
        return float(periods[0])

    def _crowd(
        self, index: int, sends: Sequence[float]
    ) -> tuple[tuple[SendingJob, ...], tuple[Flow, ...]]:
        """The job and those of its chain, and the flows around them at their mean rates.

        `sends` holds each job's mean rate over its rate alone while Up.
        """
        crowd = self._near.crowd(index, sends)
        background = tuple(
            replace(flow, cap_bytes_per_s=flow.cap_bytes_per_s * sends[other])
            for other in self._near.around(crowd)
            for flow in self._jobs[other].flows
        )
        return tuple(self._jobs[other] for other in crowd), background


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
