"""Gandiva's introspective migration: jobs move closer together, nearly empty machines are emptied.

Source: Xiao et al., *Gandiva* (OSDI 2018), section 4.2, introspective mode.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView, Migrate, Preempt, Start
from artist.policies.gandiva.affinity import Affinity
from artist.policies.shared.packing import pack_in_level, pack_in_unit


def free_after(view: ClusterView, decisions: Sequence[Decision]) -> FreeGpus:
    """The free GPUs once these decisions are applied."""
    free = view.free.copy()
    for decision in decisions:
        if isinstance(decision, Preempt | Migrate):
            held = view.running[decision.handle].placement
            assert held is not None  # running jobs have GPUs
            free.release(held)
    for decision in decisions:
        if isinstance(decision, Start | Migrate):
            free.claim(decision.placement)
    return free


class Consolidation:
    """One pass over the running jobs that no decision of this question names.

    Each generator yields migrations. It claims and releases GPUs as it goes, so read it to its end.
    """

    def __init__(
        self, view: ClusterView, decisions: Sequence[Decision], affinity: Affinity
    ) -> None:
        self._free = free_after(view, decisions)
        self._tree = view.cluster
        self._affinity = affinity
        self._running = view.running
        self._touched = {getattr(decision, "handle", None) for decision in decisions}

    def closer(self) -> Iterator[Migrate]:
        """Move jobs on several machines to fewer machines or to a better level.

        The worst level comes first, then order of arrival. A job may use its own GPUs.
        """
        machine = self._tree.machine
        spread = [
            job
            for handle, job in self._running.items()
            if job.tier > machine and handle not in self._touched
        ]
        for job in sorted(spread, key=lambda job: (-job.tier, job.handle)):
            assert job.placement is not None  # running jobs have GPUs
            self._free.release(job.placement)
            better = self._better(job.placement)
            if better is None:
                self._free.claim(job.placement)
            else:
                yield self._moved(job, better)

    def emptier(self, share: float) -> Iterator[Migrate]:
        """Empty the busy machines of which at least `share` is free, the emptiest first.

        Which machines these are, and their order, is decided before the first job moves; among
        equals the first in visiting order. The jobs that lie inside one machine move, the smallest
        first, then order of arrival. A job goes to the busy machine with the fewest free GPUs that
        suffice, if it has fewer than the job's own machine has by then. Else it stays.

        The share is the decimal number that it prints as: .7 of ten GPUs are seven.
        """
        level = self._tree.machine
        inside = self._inside(self._nearly_empty(share))
        for source in sorted(inside, key=lambda unit: self._emptiness(level, unit)):
            for job in sorted(inside[source], key=lambda job: (job.job.gpus, job.handle)):
                target = self._fuller(job.job.gpus, source)
                if target is None:
                    break
                assert job.placement is not None  # running jobs have GPUs
                self._free.release(job.placement)
                taken = pack_in_unit(self._free, level, target, job.job.gpus)
                yield self._moved(job, Placement.of(taken))

    def _moved(self, job: JobView, placement: Placement) -> Migrate:
        self._free.claim(placement)
        self._affinity.placed(job, placement, self._free)
        self._touched.add(job.handle)
        return Migrate(job.handle, placement)

    def _better(self, current: Placement) -> Placement | None:
        """The placement in the best level with room; None if it is no better than `current`."""
        for level in range(self._tree.machine, len(self._tree.levels)):
            placement = pack_in_level(self._free, level, current.gpus)
            if placement is not None:
                closer = _spread(self._tree, placement) < _spread(self._tree, current)
                return placement if closer else None
        return None

    def _nearly_empty(self, share: float) -> set[int]:
        """Busy machines of which at least `share` is free."""
        level, free = self._tree.machine, self._free
        sizes = self._tree.levels[level].gpus
        num, den = Decimal(repr(share)).as_integer_ratio()
        least = -(-num * min(sizes) // den)
        busy = free.busy(level, least)
        return {unit for unit in busy if num * sizes[unit] <= den * free.of(level, unit)}

    def _inside(self, machines: Collection[int]) -> dict[int, list[JobView]]:
        """The jobs of this pass that lie inside one of these machines, by machine."""
        inside: dict[int, list[JobView]] = {}
        level, machine_of = self._tree.machine, self._tree.machine_of
        for handle, job in self._running.items() if machines else ():
            if job.tier == level and handle not in self._touched:
                assert job.placement is not None  # running jobs have GPUs
                machine = machine_of[job.placement.leaves[0]]
                if machine in machines:
                    inside.setdefault(machine, []).append(job)
        return inside

    def _fuller(self, gpus: int, source: int) -> int | None:
        """The busy machine with the fewest free GPUs that suffice, if fewer than the source has."""
        level, free = self._tree.machine, self._free
        unit = free.fit_among(level, gpus, ~free.idle(level))
        if unit is None or free.of(level, unit) >= free.of(level, source):
            return None
        return unit

    def _emptiness(self, level: int, unit: int) -> tuple[int, int]:
        """Sorting key: free GPUs, most first, then the visiting order."""
        return -self._free.of(level, unit), self._free.turn(level, unit)


def _spread(tree: ClusterTree, placement: Placement) -> tuple[int, int]:
    """Tier of a placement, then its number of machines. Smaller is better."""
    return tier(tree, placement), len(machine_counts(tree, placement))
