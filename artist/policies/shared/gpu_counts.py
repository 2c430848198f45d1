"""How many GPUs several jobs can get, for policies that choose numbers of GPUs before placements.

If jobs accept only some kinds, the total is not enough: of 4 v100 and 4 k80, two jobs that accept
only v100 cannot get 4 each. All promises can be kept if and only if, for every set of kinds, the
jobs that accept no kind outside it have at most as many GPUs as there are of these kinds (Hall's
marriage theorem). A gang may be on several kinds that it accepts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.contract import JobView


class GpuCounts:
    """The numbers of free GPUs and of the GPUs of some running jobs, less those promised."""

    def __init__(self, free: FreeGpus, jobs: Iterable[JobView] = ()) -> None:
        running = [job for job in jobs if job.placement is not None]
        self.total = free.total + sum(job.gpus for job in running)
        """GPUs that are promised to no job."""
        self._tree = free.tree
        # Empty where every job accepts all kinds.
        self._there: dict[str, int] = {}
        self._promised: dict[frozenset[str], int] = {}
        if free.hosts is not None:
            kinds, counts = free.tree.kinds, Counter[int]()
            for job in running:
                assert job.placement is not None  # it runs
                counts.update(machine_counts(free.tree, job.placement))
            for machine, count in enumerate(free.counts(free.tree.machine).tolist()):
                kind = kinds[machine]
                self._there[kind] = self._there.get(kind, 0) + count + counts[machine]

    def copy(self) -> GpuCounts:
        """An independent copy."""
        twin = GpuCounts.__new__(GpuCounts)
        twin._tree, twin.total = self._tree, self.total
        twin._there, twin._promised = {**self._there}, {**self._promised}
        return twin

    def left(self, accepted: Sequence[str]) -> int:
        """The most GPUs that can be promised to a job that accepts these kinds; none named: all."""
        if not self._there:
            return self.total
        unions = {self._accepted(accepted)}
        for kinds in self._promised:
            unions |= {kinds | union for union in unions}
        return min(map(self._beyond, unions))

    def promise(self, accepted: Sequence[str], gpus: int) -> None:
        """Promise a job that accepts these kinds `gpus` more GPUs, or fewer if below 0."""
        self.total -= gpus
        if self._there:
            kinds = self._accepted(accepted)
            self._promised[kinds] = self._promised.get(kinds, 0) + gpus

    def claim(self, placement: Placement) -> None:
        """Remove these GPUs."""
        self.total -= placement.gpus
        if self._there:
            kinds = self._tree.kinds
            for machine, count in machine_counts(self._tree, placement).items():
                self._there[kinds[machine]] -= count

    def _accepted(self, kinds: Sequence[str]) -> frozenset[str]:
        return frozenset(kinds or self._there)

    def _beyond(self, kinds: frozenset[str]) -> int:
        """GPUs of these kinds less those promised to jobs that accept no other kind."""
        inside = sum(gpus for accepted, gpus in self._promised.items() if accepted <= kinds)
        return sum(self._there[kind] for kind in kinds) - inside


def overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two jobs accept a common kind. A job that names no kind accepts all."""
    return not (one and other) or not set(one).isdisjoint(other)
