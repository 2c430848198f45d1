"""A running job on the network, and what is known of it in isolation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from artist.cluster.links import Link
from artist.cluster.placement import Placement
from artist.contract import Rate, Turn
from artist.network.co_located import CurvedJob
from artist.network.demand.routes import Taken
from artist.network.demand.ways import Way
from artist.network.models.patterns import Flow
from artist.units import Tick
from artist.workload.goodput import Batch
from artist.workload.job import Job

On: TypeAlias = "tuple[int, ...]"
"""An uplink as (level, unit), or one of its routed links as (level, unit, index)."""


@dataclass(slots=True)
class LookedUpTraffic:
    """A job's traffic over the uplinks of one level and outer ones."""

    ways: tuple[Way, ...]
    offered: dict[On, tuple[float, float]]
    """Bytes per second up and down, while the job communicates in isolation."""
    busy_ratio: float
    """The time for which the job sends over these uplinks, over compute time."""


@dataclass(frozen=True, slots=True)
class LoneJob:
    """What a job does on its links while no other job is there."""

    curved: CurvedJob
    ways: tuple[tuple[Link, ...], ...]
    """The links that each flow crosses."""
    flows: tuple[Flow, ...]
    """Flows without their links, with rates at which all end together."""
    busy_s: float
    """Up time on the links, in seconds; longer than the query's if the job overfills a link."""


@dataclass(slots=True)
class PlacedJob:
    """A running job on the network."""

    handle: int
    job: Job
    """The job as links see it (`AloneRates.on_links`)."""
    placement: Placement
    started: Tick
    alone: Rate
    gpus_in_a_part: dict[On, int]
    """By uplink that the job crosses: the GPUs that may send over it (`JobTraffic.crossed`)."""
    turn: Turn | None = None
    batch: Batch | None = None
    stretch: float = 1.0
    """How many times longer everything takes beside other jobs on its GPUs. `rate` leaves this out:
    `interference` adds it."""
    taken: Taken | None = None
    """The links that its connections are on; None while all links are pooled."""
    share: float = 1.0
    """The share of the bandwidth that a model of contention leaves the job."""
    held_s: float = 0.0
    """How long the job waits for its turn in each iteration, in seconds."""
    rate: Rate = field(init=False)
    looked: dict[int, LookedUpTraffic] = field(default_factory=dict)
    """By level."""
    curved: dict[int, CurvedJob] = field(default_factory=dict)
    """By level."""
    lone: dict[int, LoneJob] = field(default_factory=dict)
    """By level."""
    lone_shares: dict[tuple[On, ...], float] = field(default_factory=dict)
    """The job's share of the bandwidth without other jobs, by the uplinks that bind."""

    def __post_init__(self) -> None:
        self.rate = self.alone
