"""What a rate function says about links that jobs share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol, TypeAlias

from artist.cluster.placement import Placement
from artist.workload.goodput import Batch
from artist.workload.job import Job

Uplink: TypeAlias = "tuple[int, ...]"
"""Level of the tree, and unit of this level: its links to and from the rest. With an index: one of
these links."""

Moves: TypeAlias = "Mapping[int, tuple[Job, Placement] | None]"
"""By handle: where a job would be; None if it would have no GPUs."""


class Slowdowns(NamedTuple):
    """How much longer iterations take than without others, on average: 0.1 is 10 % longer."""

    own: float
    """That of the job that was asked about."""
    co_located: Mapping[int, float]
    """By handle: those of all jobs with which it shares a link that binds."""

    @property
    def most(self) -> float:
        """The largest of them."""
        return max(self.own, *self.co_located.values(), 0.0)


class UpPhase(NamedTuple):
    """What a job sends over an uplink, alone: from `up_s` before the end of its iteration on.

    If it was measured when a model sends, `bursts` has the start and length of each Up phase in
    seconds, and its share of these rates. Then `up_s` is how long they take at the whole rates.
    """

    up_s: float
    out_bytes_per_s: float
    in_bytes_per_s: float
    bursts: tuple[tuple[float, float, float], ...] = ()


class LinkPattern(NamedTuple):
    """What a job does on links in every iteration, alone. Down comes first."""

    iteration_s: float
    up: Mapping[Uplink, UpPhase]
    """By uplink on which the job sends."""


class SharedLinks(Protocol):
    """What a rate function says about links before jobs are on them.

    `moves` change where jobs are. An answer depends on no name.
    """

    @property
    def phases_count(self) -> bool:
        """Whether speeds depend on when jobs send: `Turn` has an effect."""
        ...

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """What a job on these GPUs sends on which uplinks; nothing if that is not known.

        `batch` is that of a job with goodput parameters; None: as submitted. Where a hash puts
        connections on links, `handle` says on which ones, and the answer names these.
        """
        ...

    def capacity(self, uplink: Uplink) -> float:
        """Bytes per second that an uplink carries in one direction."""
        ...

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """How busy uplinks are; 0 for those that are missing. Larger is busier."""
        ...

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """What a job on these GPUs and those on its links would lose. A lone job loses nothing.

        Where a hash puts connections on links, `handle` says on which ones the job would be.
        """
        ...


class PatternsUnknown:
    """What jobs send on links is not known. A base of `SharedLinks` that know no bytes."""

    phases_count = False

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """A job that sends nothing."""
        return LinkPattern(math.inf, {})

    def capacity(self, uplink: Uplink) -> float:
        """An uplink carries whatever is sent."""
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
    """Links at a question: of a rate function that has not heard yet who has just lost GPUs."""

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
