"""A rate function without a network, for tries of policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from artist.cluster.placement import Placement, tier
from artist.cluster.tree import ClusterTree
from artist.contract import (
    NO_SHARED_LINKS,
    JobView,
    LinkPattern,
    Moves,
    Rate,
    SharedLinks,
    Slowdowns,
    Uplink,
    UpPhase,
)
from artist.units import Tick, ticks
from artist.workload.goodput import Batch
from artist.workload.job import Job

RESTLESS_S = 1800.0
"""Often enough to fall into holds and leases, which last hours; seldom enough to stay quick."""


class LevelRates:
    """A rate function without a network: each level outside the machine adds `slowdown`.

    With `restless`, every running job gets another speed at every event. Every third job also asks
    to be asked again after `RESTLESS_S`, which is an event of its own. Then jobs also meet on the
    uplinks of machines and racks, and what they would lose there changes at every event.
    """

    def __init__(self, tree: ClusterTree, *, slowdown: float = 0.5, restless: bool = False) -> None:
        self._tree = tree
        self._slowdown = slowdown
        self._restless = restless
        self._asked = 0
        self._placed: dict[int, Placement] = {}

    @property
    def links(self) -> SharedLinks:
        """Itself when restless."""
        return self if self._restless else NO_SHARED_LINKS

    def busy(self, moves: Moves) -> Mapping[Uplink, float]:
        """How many jobs cross an uplink."""
        crossed = [uplink for x in self._after(moves).values() for uplink in self._uplinks(x)]
        return {uplink: float(crossed.count(uplink)) for uplink in crossed}

    phases_count = True

    def pattern(
        self,
        job: Job,
        placement: Placement,
        batch: Batch | None = None,
        handle: int | None = None,
    ) -> LinkPattern:
        """Up for a fifth to three fifths of an iteration, on every uplink that it crosses."""
        alone_s = self.alone(job, placement).iteration_s
        up = UpPhase((1 + job.gpus % 3) / 5 * alone_s, 10.0, 10.0)
        return LinkPattern(alone_s, dict.fromkeys(sorted(self._uplinks(placement)), up))

    def capacity(self, uplink: Uplink) -> float:
        """Less than two jobs want."""
        return 15.0

    def slowdowns(
        self, job: Job, placement: Placement, moves: Moves, handle: int | None = None
    ) -> Slowdowns:
        """Something for each job that meets another one, never the same for long."""
        here = self._uplinks(placement)
        beside = [x for x, where in self._after(moves).items() if here & self._uplinks(where)]
        losses = {x: (1 + (self._asked * 5 + x * 3) % 4) / 8 for x in beside}
        return Slowdowns(max(losses.values(), default=0.0), losses)

    def _after(self, moves: Moves) -> dict[int, Placement]:
        placed = {x: where for x, where in self._placed.items() if x not in moves}
        return placed | {x: move[1] for x, move in moves.items() if move is not None}

    def _uplinks(self, placement: Placement) -> set[Uplink]:
        """Of all units that the placement has something in and something outside of."""
        levels = range(tier(self._tree, placement))
        return {
            (level, self._tree.ancestor(0, leaf, level))
            for level in levels
            for leaf in placement.leaves
        }

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs, or of all when restless."""
        self._asked += 1
        self._placed = {x.handle: x.placement for x in running.values() if x.placement is not None}
        jobs = running.values() if self._restless else changed
        return {view.handle: self._rate(view, now) for view in jobs if view.placement is not None}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """Compute time, longer by the level that the placement spans."""
        alone_s = job.compute_s * (1 + self._slowdown * tier(self._tree, placement))
        return Rate(alone_s, placement.gpus / job.gpus, "testing", alone_s)

    def _rate(self, view: JobView, now: Tick) -> Rate:
        assert view.placement is not None  # running jobs have GPUs
        rate = self.alone(view.job, view.placement)
        if not self._restless:
            return rate
        stretch = 1 + (self._asked * 7 + view.handle * 3) % 5 / 4
        until = None if view.handle % 3 else now + ticks(RESTLESS_S)
        return rate._replace(iteration_s=rate.iteration_s * stretch, until=until)
