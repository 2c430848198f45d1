"""Traffic patterns: what each job's iteration sends over time, and on which shared links.

    iteration of a job = its steps in order
    step               = Down for `down_s` seconds, then Up: every flow sends its volume

All flows of a step start at once, and the step ends when the last one has sent everything (CASSINI,
section 2.2: Up and Down phases). The next iteration starts immediately. Units are seconds, bytes
and bytes per second.

`Slowed` is what a model of contention answers about a job.

Packets of different jobs wait in one queue only on some links. Flows that leave one fair-queued
link come out of it in turn, together no faster than that link. They cannot fill a later link that
is at least as fast, so they do not wait for each other there. On a link without fair queueing,
flows of different jobs queue for each other if they come from different fair-queued links, or from
none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link in one direction.

    A fair-queued link serves its connections in turn, as a NIC serves its queue pairs. On other
    links packets wait in one queue, and the shares of flows vary from one iteration to the next.
    """

    capacity_bytes_per_s: float
    fair_queued: bool = False
    eta: float = 1.0
    """The usable share of the capacity while jobs queue for each other."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Equal connections of a job over the same links.

    `links` are positions in a contention's links, in the order of the way. `weight` is the number
    of connections: links are shared fairly among connections, not among jobs.
    """

    links: tuple[int, ...]
    cap_bytes_per_s: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class PatternStep:
    """Down, then Up. `volumes_bytes` has one number for each flow of the job; 0 sends nothing."""

    down_s: float
    volumes_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The traffic of one iteration, again and again."""

    flows: tuple[Flow, ...]
    steps: tuple[PatternStep, ...]

    @classmethod
    def simple(cls, down_s: float, volume_bytes: float, *flows: Flow) -> Pattern:
        """Down once, then the same volume on every flow."""
        return cls(flows, (PatternStep(down_s, (volume_bytes,) * len(flows)),))

    @property
    def down_s(self) -> float:
        """Seconds of an iteration in which the job sends nothing."""
        return math.fsum(step.down_s for step in self.steps)


@dataclass(frozen=True, slots=True)
class InTurn:
    """The turn of a job that sends in turn with its group: iterations take at least `period_s`.

    A correction delays the job once it is ahead of the latest job of its group by more than
    `slack_s`. If that is None, the job never waits.
    """

    group: int
    period_s: float
    slack_s: float | None


@dataclass(frozen=True, slots=True)
class Member:
    """A job in a contention.

    Iteration 0 starts at `offset_s`. If that is negative, the job is already in its iteration,
    where it would be in isolation after that time. The Down times of iteration n are multiplied by
    `down_factors[n % len(down_factors)]`, if there are any factors.
    """

    pattern: Pattern
    offset_s: float = 0.0
    down_factors: tuple[float, ...] = ()
    turn: InTurn | None = None
    stream: int | None = None
    """Names the job's random numbers; None: its index among the members names them."""


@dataclass(frozen=True, slots=True)
class Contention:
    """Jobs, and the links that they share."""

    links: tuple[SharedLink, ...]
    members: tuple[Member, ...]

    @property
    def streams(self) -> tuple[int, ...]:
        """Names of the random numbers of each job."""
        return tuple(
            index if member.stream is None else member.stream
            for index, member in enumerate(self.members)
        )

    def alone(self, index: int) -> Contention:
        """One job alone on the same links. It starts at 0, and its Down times are unstretched."""
        return Contention(self.links, (Member(self.members[index].pattern),))


@dataclass(frozen=True, slots=True)
class Slowed:
    """Seconds of a job's iteration among co-located jobs, and in isolation on the same links."""

    iteration_s: float
    alone_s: float
    corrections_per_min: float = 0.0
    """How often the job is delayed so that it keeps its turn."""
    held_s: float = 0.0
    """The part of the iteration in which the job waits for its turn, not for bandwidth."""

    @property
    def slowdown(self) -> float:
        """Co-located time over isolated time."""
        return self.iteration_s / self.alone_s


# While two jobs sent, .958 of a shared uplink's capacity was payload (ns-3, DCTCP, 1 Gbit/s); a
# lone job reached .982. ETA is the ratio of the two, because slowdowns are ratios.
ETA = 0.976
"""Efficiency of a link with one queue while jobs share it, where the fabric states none."""

Source = tuple[bool, int]
"""Where a flow comes from: (True, a fair-queued link), or (False, the flow itself)."""


def sources(links: Sequence[SharedLink], flows: Sequence[Flow]) -> list[dict[int, Source]]:
    """For each flow, by link: the first fair-queued link before that link which is no faster."""
    return [
        {
            link: _source(links, flow.links[:position], links[link], number)
            for position, link in enumerate(flow.links)
        }
        for number, flow in enumerate(flows)
    ]


def _source(
    links: Sequence[SharedLink], before: Sequence[int], link: SharedLink, number: int
) -> Source:
    for index in before:
        earlier = links[index]
        if earlier.fair_queued and earlier.capacity_bytes_per_s <= link.capacity_bytes_per_s:
            return True, index
    return False, number


def queue_for_each_other(
    link: SharedLink, jobs: Iterable[int], from_where: Iterable[Source]
) -> bool:
    """Whether flows on a link, of these jobs and sources, wait for each other in one queue."""
    return not link.fair_queued and len(set(jobs)) > 1 and len(set(from_where)) > 1
