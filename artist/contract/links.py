"""What a rate function says about the links that jobs share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from artist.cluster.placement import Placement
from artist.workload.goodput import Batch
from artist.workload.job import Job

Uplink: TypeAlias = "tuple[int, ...]"
"""(level of the tree, unit of this level): the unit's links to and from the rest of the cluster.
With an index as third item: one of these links."""

Moves: TypeAlias = "Mapping[int, tuple[Job, Placement] | None]"
"""By handle: where a job would be; None if it would have no GPUs."""


class Slowdowns(NamedTuple):
    """How much longer iterations take than without other jobs, on average: 0.1 is 10 % longer."""

    own: float
    """The slowdown of the job in question."""
    co_located: Mapping[int, float]
    """By handle: the slowdowns of the jobs with which it shares a link that binds."""

    @property
    def most(self) -> float:
        """The largest slowdown."""
        return max(self.own, *self.co_located.values(), 0.0)


class UpPhase(NamedTuple):
    """What an isolated job sends over an uplink, in the last `up_s` seconds of its iteration.

    If the Up phases of its model were measured, `bursts` holds the start and length of each one in
    seconds, and its share of these rates. `up_s` is then their total length at the whole rates.
    """

    up_s: float
    out_bytes_per_s: float
    in_bytes_per_s: float
    bursts: tuple[tuple[float, float, float], ...] = ()


class LinkPattern(NamedTuple):
    """What an isolated job does on links in every iteration. Its Down time comes first."""

    iteration_s: float
    up: Mapping[Uplink, UpPhase]
    """By uplink, for the uplinks on which the job sends."""


class SharedLinks(Protocol):
    """What a rate function says about links before jobs are on them.

    `moves` say where jobs would be instead. Answers do not depend on names.
    """

    @property
    def phases_count(self) -> bool:
        """Whether speeds depend on when jobs send, so that `Turn` has an effect."""
        ...

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """What a job on these GPUs sends on which uplinks; nothing if that is not known.

        `batch` is for a job with goodput parameters; None: as submitted. Where a hash puts
        connections on links, it depends on `handle`, and the answer names these links.
        """
        ...

    def capacity(self, uplink: Uplink) -> float:
        """Bytes per second that an uplink carries in one direction."""
        ...

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """How busy each uplink is; larger is busier. Missing uplinks have 0."""
        ...

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """What a job on these GPUs and the jobs on its links would lose. A lone job loses nothing.

        Where a hash puts connections on links, it depends on `handle`.
        """
        ...


class PatternsUnknown:
    """Base of `SharedLinks` that do not know what jobs send."""

    phases_count = False

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """The pattern of a job that sends nothing."""
        return LinkPattern(math.inf, {})

    def capacity(self, uplink: Uplink) -> float:
        """Infinity: an uplink carries whatever is sent."""
        return math.inf


class NoSharedLinks(PatternsUnknown):
    """Jobs do not meet on links: nothing is busy, and no job loses anything."""

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """Nothing is busy."""
        return {}

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """No job is slowed down."""
        return Slowdowns(0.0, {})


NO_SHARED_LINKS = NoSharedLinks()


class LinksNow:
    """`SharedLinks` at a question, without the jobs that have just lost their GPUs.

    The rate function does not know of these jobs (`gone`) yet.
    """

    def __init__(self, links: SharedLinks, gone: Moves) -> None:
        self._links, self._gone = links, gone
        self.phases_count = links.phases_count
        self.pattern = links.pattern
        self.capacity = links.capacity

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """As `SharedLinks.busy`."""
        return self._links.busy({**self._gone, **moves})

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """As `SharedLinks.slowdowns`."""
        return self._links.slowdowns(job, placement, {**self._gone, **moves}, handle)
