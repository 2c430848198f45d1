"""Exact event simulation of jobs that share links: when does each iteration end?

Events are the end of a Down time and the end of a flow's volume. Between two events every flow has
a constant rate. There are no time steps, so a fluid is exact up to the rounding of floats.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import truediv

from artist.network.models.patterns import Contention, Member, Pattern
from artist.network.models.sending_flows import SendingFlows
from artist.network.models.turns import TurnsNow, in_turn

AT_ONCE_S = 1e-12
"""Events closer together happen at once: a thousandth of a tick."""

Noise = Callable[[int, int], Sequence[float]]
"""Factors on the weights of a job's flows, from the job's index and the iteration."""


@dataclass(slots=True)
class SendingProgress:
    """Where a job is in its iterations. `ends_s[0]` is the start of iteration 0."""

    member: Member
    first_flow: int
    index: int
    step: int = 0
    due_s: float = 0.0
    """End of the Down time; infinity in an Up phase."""
    sending: int = 0
    """How many of its flows have not sent everything."""
    ends_s: list[float] = field(default_factory=list)
    iterations: int = 0
    """Iterations that have ended."""
    starts: list[tuple[tuple[int, ...], list[float]]] = field(init=False)
    """By step: the flows that send, by their numbers in the contention, and their volumes."""

    def __post_init__(self) -> None:
        self.starts = [
            (
                tuple(self.first_flow + flow for flow, volume in enumerate(volumes) if volume),
                [volume for volume in volumes if volume],
            )
            for volumes in (step.volumes_bytes for step in self.pattern.steps)
        ]

    @property
    def pattern(self) -> Pattern:
        """The job's traffic."""
        return self.member.pattern

    def begin(self, now_s: float) -> None:
        """Begin the present step: Down first."""
        down_s, factors = self.pattern.steps[self.step].down_s, self.member.down_factors
        self.due_s = now_s + (
            down_s * factors[self.iterations % len(factors)] if factors else down_s
        )

    def send(self) -> tuple[tuple[int, ...], list[float]]:
        """Go Up: every flow starts. Returns the flows that send, and their volumes."""
        starts = self.starts[self.step]
        self.due_s, self.sending = math.inf, len(starts[0])
        return starts

    def advance(self, now_s: float) -> None:
        """End the present step and begin the next one, of this iteration or the next."""
        self.step += 1
        if self.step == len(self.starts):
            self.step = 0
            self.ends_s.append(now_s)
            self.iterations += 1
        self.begin(now_s)


class Simulation:
    """A simulation of a contention, from the offsets of its jobs on. `run` can be called again."""

    def __init__(
        self,
        contention: Contention,
        noise: Noise | None = None,
        two_bottleneck_weight: float = 1.0,
    ) -> None:
        self.now_s = 0.0
        self.events = 0
        self._flows = SendingFlows(contention, two_bottleneck_weight)
        self._sending: tuple[int, ...] = ()
        """The flows that send, ascending."""
        self._left_bytes: list[float] = []
        """What each of these flows has yet to send."""
        self._noise = noise
        self._factors: list[float] | None = [1.0] * len(self._flows.flows) if noise else None
        """The factor on the weight of each flow, drawn when the flow started."""
        self.turns = _turns(contention) if in_turn(contention) else None
        self.jobs: list[SendingProgress] = []
        self._owner: list[SendingProgress] = []
        """The job of each flow."""
        self.iterations = 0
        """Ended iterations of all jobs together."""
        self.least_iterations = 0
        """Ended iterations of the job with the fewest."""
        first = 0
        for index, member in enumerate(contention.members):
            job = self._entered(contention, index, first)
            self.jobs.append(job)
            self._owner += [job] * len(member.pattern.flows)
            first += len(member.pattern.flows)

    def run(self, enough: Callable[[Simulation], bool]) -> None:
        """Go on until `enough` holds, which is checked before every event."""
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
        rates: Sequence[float] = ()
        spans_s: list[float] = []
        shortest_s = math.inf
        if self._sending:
            rates = self._flows.rates(self._sending, self._factors)
            spans_s = list(map(truediv, self._left_bytes, rates))
            shortest_s = min(spans_s)
        due_s = min([job.due_s for job in self.jobs])
        then_s = min(due_s, self.now_s + shortest_s, latest_s)
        elapsed_s = min(then_s - self.now_s, shortest_s)
        self.now_s = then_s
        self.events += 1
        if rates:
            self._send(rates, spans_s, elapsed_s, shortest_s)
        # `_send` came first: a job whose last flow ended may have a Down time of 0 and be due now.
        at_once_s = then_s + AT_ONCE_S
        for job in self.jobs:
            if job.due_s <= at_once_s:
                self._go_up(job)

    def state(self) -> tuple[tuple[int, ...], ...]:
        """Where every job is in its iteration, rounded. Without noise it determines what follows.

        Down times are rounded to 10 ps, volumes to a thousand-millionth of the flow's volume.
        """
        return tuple(self._state(job) for job in self.jobs)

    def _state(self, job: SendingProgress) -> tuple[int, ...]:
        """Where a job is in its iteration: time until Down ends, or what its flows have left."""
        if not job.ends_s:
            return (-1, round((job.due_s - self.now_s) * 1e11))
        factors = len(job.member.down_factors)
        where = (job.step, job.iterations % factors if factors else 0)
        if not job.sending:
            return (*where, round((job.due_s - self.now_s) * 1e11))
        volumes = job.pattern.steps[job.step].volumes_bytes
        left_bytes = dict(zip(self._sending, self._left_bytes, strict=True))
        return where + tuple(
            round(1e9 * left_bytes.get(job.first_flow + flow, 0.0) / volume) if volume else 0
            for flow, volume in enumerate(volumes)
        )

    def _send(
        self, rates: Sequence[float], spans_s: Sequence[float], elapsed_s: float, shortest_s: float
    ) -> None:
        until_s = elapsed_s + AT_ONCE_S
        flows = zip(self._left_bytes, rates, strict=True)
        self._left_bytes = [x - rate * elapsed_s for x, rate in flows]
        if shortest_s <= until_s:
            self._end(spans_s, until_s)

    def _end(self, spans_s: Sequence[float], until_s: float) -> None:
        """End the flows whose span is at most `until_s`: they have sent everything."""
        still = [place for place, span_s in enumerate(spans_s) if span_s > until_s]
        sending, left_bytes = self._sending, self._left_bytes
        self._sending = tuple([sending[place] for place in still])
        self._left_bytes = [left_bytes[place] for place in still]
        for flow, span_s in zip(sending, spans_s, strict=True):
            if span_s > until_s:
                continue
            job = self._owner[flow]
            job.sending -= 1
            if not job.sending:
                self._advance(job)

    def _advance(self, job: SendingProgress) -> None:
        before = job.iterations
        job.advance(self.now_s)
        self.iterations += job.iterations - before
        if before == self.least_iterations < job.iterations:
            self.least_iterations = min([other.iterations for other in self.jobs])

    def _start(self, flows: tuple[int, ...], volumes_bytes: Sequence[float]) -> None:
        """Start flows of one job."""
        place = bisect_left(self._sending, flows[0])
        self._sending = self._sending[:place] + flows + self._sending[place:]
        self._left_bytes[place:place] = volumes_bytes

    def _go_up(self, job: SendingProgress) -> None:
        if not job.ends_s:
            # The job has waited for its offset until now.
            job.ends_s.append(self.now_s)
            job.begin(self.now_s)
            if job.due_s > self.now_s + AT_ONCE_S:
                return
        if self.turns is not None and not job.step:
            # Wait before sending, or the job would meet the one whose turn it is.
            wait_s = self.turns.wait_s(job.index, job.iterations, self.now_s)
            if wait_s > AT_ONCE_S:
                job.due_s = self.now_s + wait_s
                return
        flows, volumes_bytes = job.send()
        if not flows:
            self._advance(job)
            return
        self._start(flows, volumes_bytes)
        if self._noise is not None and self._factors is not None:
            factors = self._noise(job.index, job.iterations)
            self._factors[job.first_flow : job.first_flow + len(factors)] = factors

    def _entered(self, contention: Contention, index: int, first_flow: int) -> SendingProgress:
        """A job at its offset, in the middle of an iteration if the offset is negative."""
        member = contention.members[index]
        if member.offset_s >= 0:
            return SendingProgress(member, first_flow, index, due_s=member.offset_s)
        alone = Simulation(contention.alone(index))
        alone.run_until(-member.offset_s)
        job = alone.jobs[0]
        if job.sending:
            flows = tuple([first_flow + flow for flow in alone._sending])
            self._start(flows, alone._left_bytes)
        return SendingProgress(
            member,
            first_flow,
            index,
            job.step,
            job.due_s - alone.now_s,
            job.sending,
            [job.ends_s[-1] - alone.now_s],
        )


def _turns(contention: Contention) -> TurnsNow:
    members = contention.members
    return TurnsNow(members, [alone_s(contention, index) for index in range(len(members))])


def alone_s(contention: Contention, index: int) -> float:
    """Seconds of an iteration of one of the jobs, isolated on the same links."""
    simulation = Simulation(contention.alone(index))
    job = simulation.jobs[0]
    simulation.run(lambda _: job.iterations > 0)
    return job.ends_s[1]
