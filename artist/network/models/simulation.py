"""Exact event simulation of jobs that share links: when does each iteration end?

Between two events every flow has a constant rate. Events are the end of a Down time and the end of
a flow's volume. Nothing is sampled in time, so a fluid is exact up to the rounding of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from artist.network.models.patterns import Contention, Member, Pattern
from artist.network.models.sending_flows import SendingFlows
from artist.network.models.turns import TurnsNow, in_turn

AT_ONCE_S = 1e-12
"""Events closer together happen at once: a thousandth of a tick."""

Noise = Callable[[int, int], float]
"""A factor on the weight of a flow (numbered job by job) in an iteration of its job."""


@dataclass(slots=True)
class SendingProgress:
    """Where a job is in its iterations. `ends_s[0]` is the start of iteration 0."""

    member: Member
    first_flow: int
    index: int
    step: int = 0
    due_s: float = 0.0
    """End of the Down time; infinity in an Up phase."""
    left_bytes: dict[int, float] = field(default_factory=dict)
    """What the flows that send have yet to send, by their numbers in the contention."""
    ends_s: list[float] = field(default_factory=list)

    @property
    def pattern(self) -> Pattern:
        """The job's traffic."""
        return self.member.pattern

    @property
    def iterations(self) -> int:
        """Iterations that have ended."""
        return max(len(self.ends_s) - 1, 0)

    def begin(self, now_s: float) -> None:
        """Begin the present step: Down first."""
        factors = self.member.down_factors
        factor = factors[self.iterations % len(factors)] if factors else 1.0
        self.due_s = now_s + self.pattern.steps[self.step].down_s * factor

    def send(self) -> None:
        """Go Up: every flow starts."""
        volumes = self.pattern.steps[self.step].volumes_bytes
        self.left_bytes = {
            self.first_flow + index: volume for index, volume in enumerate(volumes) if volume
        }
        self.due_s = math.inf

    def advance(self, now_s: float) -> None:
        """Begin the next step, perhaps of the next iteration."""
        self.step += 1
        if self.step == len(self.pattern.steps):
            self.step = 0
            self.ends_s.append(now_s)
        self.begin(now_s)


class Simulation:
    """Jobs that share links, from their offsets on. `run` may be called again and goes on."""

    def __init__(
        self,
        contention: Contention,
        noise: Noise | None = None,
        two_bottleneck_weight: float = 1.0,
    ) -> None:
        self.now_s = 0.0
        self.events = 0
        self._flows = SendingFlows(contention, two_bottleneck_weight)
        self._noise = noise
        self._factors: list[float] | None = [1.0] * len(self._flows.flows) if noise else None
        self.turns = TurnsNow(contention.members) if in_turn(contention) else None
        self.jobs: list[SendingProgress] = []
        first = 0
        for index, member in enumerate(contention.members):
            self.jobs.append(self._entered(contention, index, first))
            first += len(member.pattern.flows)

    def run(self, enough: Callable[[Simulation], bool]) -> None:
        """Go on until `enough`, which is asked after every event."""
        while not enough(self):
            self.next_event()

    def run_until(self, at_s: float) -> None:
        """Go on to a time, and stop there in the middle of phases."""
        while self.now_s < at_s:
            self.next_event(at_s)

    def next_event(self, latest_s: float = math.inf) -> None:
        """Go to the next instant at which a phase or a flow ends, and handle what ends then.

        Stops at `latest_s` if nothing ends before.
        """
        sending = tuple(flow for job in self.jobs for flow in job.left_bytes)
        rates = self._flows.rates(sending, self._factors)
        left = [bytes_ for job in self.jobs for bytes_ in job.left_bytes.values()]
        spans_s = [x / rate for x, rate in zip(left, rates, strict=True)]
        due_s = min(job.due_s for job in self.jobs)
        ends_s = self.now_s + min(spans_s, default=math.inf)
        then_s = min(due_s, ends_s, latest_s)
        elapsed_s = min([then_s - self.now_s, *spans_s])
        self.now_s = then_s
        self.events += 1
        self._send(rates, spans_s, elapsed_s)
        for job in self.jobs:
            if job.due_s <= self.now_s + AT_ONCE_S:
                self._go_up(job)

    def state(self) -> tuple[tuple[int, ...], ...]:
        """Where every job is in its iteration, rounded. Without noise, what follows depends on it.

        Down times are rounded to 10 ps, volumes to a thousand millionth.
        """
        return tuple(self._state(job) for job in self.jobs)

    def _state(self, job: SendingProgress) -> tuple[int, ...]:
        if not job.ends_s:
            return (-1, round((job.due_s - self.now_s) * 1e11))
        factors = len(job.member.down_factors)
        where = (job.step, job.iterations % factors if factors else 0)
        if not job.left_bytes:
            return (*where, round((job.due_s - self.now_s) * 1e11))
        volumes = job.pattern.steps[job.step].volumes_bytes
        return where + tuple(
            round(1e9 * job.left_bytes.get(job.first_flow + flow, 0.0) / volume) if volume else 0
            for flow, volume in enumerate(volumes)
        )

    def _send(self, rates: Sequence[float], spans_s: Sequence[float], elapsed_s: float) -> None:
        position = 0
        for job in self.jobs:
            if not job.left_bytes:
                continue
            still: dict[int, float] = {}
            for flow, bytes_ in job.left_bytes.items():
                if spans_s[position] > elapsed_s + AT_ONCE_S:
                    still[flow] = bytes_ - rates[position] * elapsed_s
                position += 1
            job.left_bytes = still
            if not still:
                job.advance(self.now_s)

    def _go_up(self, job: SendingProgress) -> None:
        if not job.ends_s:
            # So far the job has waited for its offset.
            job.ends_s.append(self.now_s)
            job.begin(self.now_s)
            if job.due_s > self.now_s + AT_ONCE_S:
                return
        if self.turns is not None and not job.step:
            # A job that sends now and waits later would meet the one whose turn it is.
            wait_s = self.turns.wait_s(job.index, job.iterations, self.now_s)
            if wait_s > AT_ONCE_S:
                job.due_s = self.now_s + wait_s
                return
        job.send()
        if not job.left_bytes:
            job.advance(self.now_s)
        elif self._noise is not None and self._factors is not None:
            for flow in job.left_bytes:
                self._factors[flow] = self._noise(flow, job.iterations)

    def _entered(self, contention: Contention, index: int, first_flow: int) -> SendingProgress:
        """A job at its offset."""
        member = contention.members[index]
        if member.offset_s >= 0:
            return SendingProgress(member, first_flow, index, due_s=member.offset_s)
        alone = Simulation(contention.alone(index))
        alone.run_until(-member.offset_s)
        job = alone.jobs[0]
        return SendingProgress(
            member,
            first_flow,
            index,
            job.step,
            job.due_s - alone.now_s,
            {first_flow + flow: bytes_ for flow, bytes_ in job.left_bytes.items()},
            [job.ends_s[-1] - alone.now_s],
        )


def alone_s(contention: Contention, index: int) -> float:
    """Seconds of an iteration of one of the jobs, isolated on the same links."""
    simulation = Simulation(contention.alone(index))
    job = simulation.jobs[0]
    simulation.run(lambda _: job.iterations > 0)
    return job.ends_s[1]
