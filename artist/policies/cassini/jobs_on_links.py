"""Which jobs send on which uplinks, and which uplinks they could fill together.

Only uplinks that could be full are links of an affinity graph. If jobs never want more than a link
has, at any phases, there is nothing to align.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from artist.cluster.placement import Placement
from artist.contract import LinkPattern, SharedLinks, Uplink
from artist.policies.cassini.job_circle import Arc, Circle
from artist.policies.cassini.solver import LinkPatterns

# A link is full above its capacity plus rounding: rates and capacities are sums of floats.
_FULL = 1 + 1e-9


class JobsOnLinks:
    """The jobs of a run on its uplinks, updated whenever a job comes, moves or goes."""

    def __init__(self) -> None:
        self.where: dict[int, Placement] = {}
        self._patterns: dict[int, LinkPattern] = {}
        self._on: dict[Uplink, set[int]] = {}
        self._capacities: dict[Uplink, float] = {}
        self._circles: dict[tuple[int, Uplink, bool], Circle] = {}

    def put(self, handle: int, placement: Placement, pattern: LinkPattern) -> None:
        """Record that a job comes or moves."""
        self.remove(handle)
        self.where[handle], self._patterns[handle] = placement, pattern
        for uplink in pattern.up:
            self._on.setdefault(uplink, set()).add(handle)

    def remove(self, handle: int) -> None:
        """Remove a job, if it is there."""
        if self.where.pop(handle, None) is None:
            return
        for uplink in self._patterns.pop(handle).up:
            self._on[uplink].discard(handle)
            self._circles.pop((handle, uplink, True), None)
            self._circles.pop((handle, uplink, False), None)

    def pattern(self, handle: int) -> LinkPattern:
        """What a job does on links."""
        return self._patterns[handle]

    def joined(
        self, touched: Iterable[Uplink], capacity: Callable[[Uplink], float]
    ) -> list[Uplink]:
        """The uplinks that could be full and that jobs join to `touched` uplinks, ascending."""
        there = [handle for uplink in touched for handle in self._on.get(uplink, ())]
        reached, full = set(there), set()
        front = sorted(reached)
        while front:
            for uplink in self._patterns[front.pop()].up:
                if uplink not in full and self._could_be_full(uplink, capacity):
                    full.add(uplink)
                    beside = self._on[uplink] - reached
                    reached |= beside
                    front += beside
        return sorted(full)

    def use(self, uplink: Uplink, links: SharedLinks) -> LinkPatterns:
        """What the jobs of an uplink want to send, in the busier direction."""
        handles = sorted(self._on[uplink])
        sent = [self._patterns[handle].up[uplink] for handle in handles]
        out = math.fsum(x.out_bytes_per_s for x in sent)
        leaves = out >= math.fsum(x.in_bytes_per_s for x in sent)
        circles = tuple(self._circle(handle, uplink, leaves) for handle in handles)
        capacity = self._capacity(uplink, links.capacity)
        return LinkPatterns(capacity, tuple(handles), circles, uplink)

    def _circle(self, handle: int, uplink: Uplink, leaves: bool) -> Circle:
        key = handle, uplink, leaves
        if key not in self._circles:
            pattern = self._patterns[handle]
            up = pattern.up[uplink]
            rate = up.out_bytes_per_s if leaves else up.in_bytes_per_s
            period_s = pattern.iteration_s
            if up.bursts:
                arcs = tuple(Arc(start, length, rate * share) for start, length, share in up.bursts)
                self._circles[key] = Circle(period_s, arcs)
            else:
                self._circles[key] = Circle.down_then_up(period_s, min(up.up_s, period_s), rate)
        return self._circles[key]

    def _could_be_full(self, uplink: Uplink, capacity: Callable[[Uplink], float]) -> bool:
        handles = self._on[uplink]
        if len(handles) < 2:
            return False
        sent = [self._patterns[handle].up[uplink] for handle in handles]
        most = max(
            math.fsum(x.out_bytes_per_s for x in sent), math.fsum(x.in_bytes_per_s for x in sent)
        )
        return most > self._capacity(uplink, capacity) * _FULL

    def _capacity(self, uplink: Uplink, capacity: Callable[[Uplink], float]) -> float:
        if uplink not in self._capacities:
            self._capacities[uplink] = capacity(uplink)
        return self._capacities[uplink]
