"""What jobs do on links: an iteration's traffic over time, and which links it shares.

    iteration of a job = its steps in order
    step               = Down for `down_s` seconds, then Up: every flow sends its volume

All flows of a step start at once, and the step ends when the last one has sent everything (CASSINI,
section 2.2: Up and Down phases). The next iteration starts at once. Numbers are plain: seconds,
bytes, bytes per second.

`Slowed` is what models of contention answer about a job.

Packets of different jobs wait in one queue only on some links. Flows that leave one fair-queued
link come out of it in turn, no faster than it is. They cannot fill a later link that is at least as
fast, so they do not queue there for each other. On a link without fair queueing, jobs queue for
each other if their flows come from different such links or from none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link in one direction.

    A fair-queued link serves its connections in turn, as the queue pairs of a NIC. On others
    packets wait in one queue, and who gets how much varies from one iteration to the next.
    """

    capacity_bytes_per_s: float
    fair_queued: bool = False
    eta: float = 1.0
    """Share of the capacity that is used while jobs queue for each other."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Connections of a job that are alike, and the links that they cross.

    `links` are positions in a contention's links, in the order of the way. `weight` is the number
    of connections: links are shared fairly among connections, not among jobs.
    """

    links: tuple[int, ...]
    cap_bytes_per_s: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """Down, then Up. `volumes_bytes` holds a number per flow of the job; 0 sends nothing."""

    down_s: float
    volumes_bytes: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Pattern:
    """The traffic of one iteration, again and again."""

    flows: tuple[Flow, ...]
    steps: tuple[Step, ...]

    @classmethod
    def simple(cls, down_s: float, volume_bytes: float, *flows: Flow) -> Pattern:
        """Down once, then the same volume on every flow."""
        return cls(flows, (Step(down_s, (volume_bytes,) * len(flows)),))

    @property
    def down_s(self) -> float:
        """Seconds of an iteration in which the job sends nothing."""
        return math.fsum(step.down_s for step in self.steps)


@dataclass(frozen=True, slots=True)
class InTurn:
    """A job that takes turns with those of its group: its iterations take `period_s` or more.

    It is corrected once it is ahead of the latest of the group by more than `slack_s`. With None it
    never waits.
    """

    group: int
    period_s: float
    slack_s: float | None


@dataclass(frozen=True, slots=True)
class Member:
    """A job in a contention.

    Iteration 0 starts at `offset_s`. If that is negative, the job is so far into its iteration,
    counted in isolated time. `down_factors` stretches the Down times of iteration n by
    `down_factors[n % len(down_factors)]`; without any, none is stretched.
    """

    pattern: Pattern
    offset_s: float = 0.0
    down_factors: tuple[float, ...] = ()
    turn: InTurn | None = None
    stream: int | None = None
    """Names the job's random numbers; None: its place among the members does."""


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
        """The same links with one of the jobs. It starts its iteration at 0, unstretched."""
        return Contention(self.links, (Member(self.members[index].pattern),))


@dataclass(frozen=True, slots=True)
class Slowed:
    """An iteration of a co-located job, and isolated on the same links, in seconds."""

    iteration_s: float
    alone_s: float
    corrections_per_min: float = 0.0
    """How often it waits so that it keeps its turn."""
    held_s: float = 0.0
    """The part of the iteration in which it waits for its turn, whatever the links carry."""

    @property
    def slowdown(self) -> float:
        """Co-located time over isolated time."""
        return self.iteration_s / self.alone_s


# .958 of a shared uplink's capacity was payload while two jobs sent (ns-3, DCTCP, 1 Gbit/s), over
# the .982 that a lone job reached. Slowdowns know only the ratio.
ETA = 0.976
"""Efficiency of a link with one queue while jobs share it, where the fabric states none."""

Source = tuple[bool, int]
"""A fair-queued link, or, if there is none, the flow itself."""


def sources(links: Sequence[SharedLink], flows: Sequence[Flow]) -> list[dict[int, Source]]:
    """For each flow, by link: the first fair-queued link before it that is no faster."""
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
