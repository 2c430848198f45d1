"""Keeping jobs apart on links: placements on idle links, and jobs that wait instead of sharing.

Both rules ask the run's rate function (`ClusterView.links`). Under contention `none` no link is
busy and no job loses anything, so neither rule changes a decision.

**Least contended.** Of the units that `packing` could use, those with the busiest uplinks are left
out, as many as possible without a worse level. The other units are packed as usual. If no link is
busy, the placement is that of `packing`.

**The threshold.** A job does not start where it or a co-located job (one that shares a link) would
lose more than `most_slowdown`. It is passed over as if no GPUs were free, and tried again at every
question. A job that shares no link loses nothing, so no job waits forever.

The rule is that of the simple baselines to *Network contention-aware cluster scheduling with
reinforcement learning* (Ryu and Eo): greedy, and no start above a knob of contention sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement
from artist.contract import (
    ClusterView,
    Decision,
    Migrate,
    Moves,
    Preempt,
    Slowdowns,
    Start,
    Uplink,
    Wait,
)
from artist.policies.shared.packing import pack_in_level
from artist.workload.job import Job

Busy: TypeAlias = Callable[[], Mapping[Uplink, float]]
"""How busy uplinks are at this moment of an answer (`SharedLinks.busy`)."""

_TOO_MUCH = "on the GPUs that it would have got, it or a co-located job would have lost more than"


class Sharing:
    """The links at one question, while an answer grows.

    Set `decisions` to the list of the answer, or report each `move`.
    """

    def __init__(self, view: ClusterView, most_slowdown: float | None = None) -> None:
        self._view, self._most_slowdown = view, most_slowdown
        self.decisions: Sequence[Decision] = ()
        self._read = 0
        self._moved: dict[int, tuple[Job, Placement] | None] = {}
        self._busy: Mapping[Uplink, float] | None = None
        # Handles of jobs that found only GPUs on which some job would lose too much.
        self.refused: dict[int, None] = {}

    def busy(self) -> Mapping[Uplink, float]:
        """How busy uplinks are after the decisions so far."""
        moves = self._moves()
        if self._busy is None:
            self._busy = self._view.links.busy(moves)
        return self._busy

    def permits(self, handle: int, placement: Placement) -> bool:
        """Whether neither the job nor a co-located one would lose too much.

        A running job counts unless a decision takes its GPUs, even if the placement includes them.
        """
        if self._most_slowdown is None:
            return True
        return self.slowdowns(handle, placement).most <= self._most_slowdown

    def slowdowns(self, handle: int, placement: Placement) -> Slowdowns:
        """What the job and others would lose on these GPUs, after the decisions so far."""
        job = self._view.waiting.get(handle) or self._view.running[handle]
        moves = {**self._moves(), handle: None}
        return self._view.links.slowdowns(job.job, placement, moves, handle)

    def permitted(self, handle: int, placement: Placement | None) -> Placement | None:
        """The placement if `permits` allows it, else None."""
        if placement is None or not self.permits(handle, placement):
            if placement is not None:
                self.refused[handle] = None
            return None
        return placement

    def waits(self) -> list[Decision]:
        """Why jobs wait that were not permitted to start. Call it after all decisions."""
        if not self.refused:
            return []
        decided = {x.handle for x in self.decisions if isinstance(x, Start | Migrate)}
        lost = {x.handle for x in self.decisions if isinstance(x, Preempt)}
        return [
            Wait(handle, f"{_TOO_MUCH} {self._most_slowdown:g} of its speed", "links")
            for handle in self.refused
            if handle not in decided and (handle in self._view.waiting or handle in lost)
        ]

    def move(self, handle: int, placement: Placement | None) -> None:
        """Note that a job gets other GPUs, or loses its GPUs."""
        job = self._view.waiting.get(handle) or self._view.running[handle]
        self._moved[handle] = None if placement is None else (job.job, placement)
        self._busy = None

    def _moves(self) -> Moves:
        for decision in self.decisions[self._read :]:
            if isinstance(decision, Start | Migrate):
                self.move(decision.handle, decision.placement)
            elif isinstance(decision, Preempt):
                self.move(decision.handle, None)
        self._read = len(self.decisions)
        return self._moved


def nothing_busy() -> Mapping[Uplink, float]:
    """No uplink is busy, as under contention `none`."""
    return {}


def pack_least_contended(free: FreeGpus, level: int, gpus: int, busy: Busy) -> Placement | None:
    """`pack_in_level` without the units behind the busiest uplinks, if the others suffice.

    None if no unit of the level has room.
    """
    if not free.fits_one(level, gpus):
        return None
    # A placement in a unit of this level crosses only uplinks of inner levels. Only units with free
    # GPUs matter.
    busier = {uplink: x for uplink, x in busy().items() if uplink[0] < level and x > 0}
    inside = {uplink: x for uplink, x in busier.items() if free.of(*uplink)}
    if not inside:
        return pack_in_level(free, level, gpus)
    left, others = _idle(free, inside)
    for mark in sorted(others):
        if left.fits_one(level, gpus):
            break
        left.release(Placement.of(others[mark]))
    return pack_in_level(left, level, gpus)


def _idle(
    free: FreeGpus, busy: Mapping[Uplink, float]
) -> tuple[FreeGpus, dict[float, dict[int, int]]]:
    """The free GPUs behind idle uplinks, and those behind busy uplinks.

    The second are by how busy the busiest of their uplinks is, and then by leaf.
    """
    marks: dict[int, float] = {}
    counts: dict[int, int] = {}
    for uplink, mark in busy.items():
        inside = free.everything(*uplink)
        counts |= inside
        for leaf in inside:
            marks[leaf] = max(mark, marks.get(leaf, mark))
    groups: dict[float, dict[int, int]] = {}
    for leaf in sorted(counts):
        groups.setdefault(marks[leaf], {})[leaf] = counts[leaf]
    left = free.copy()
    left.claim(Placement.of(counts))
    return left, groups
