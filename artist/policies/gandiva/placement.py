"""Where Gandiva's jobs lie: affinity when they start, migration afterwards.

Source: Xiao et al., *Gandiva* (OSDI 2018), section 4.2. `policy.py` has the rules.

- Reactive mode: jobs of one GPU demand share machines (`Affinity`).
- Introspective mode: jobs move closer together, and nearly empty machines are emptied
  (`Consolidation`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Final

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts, tier
from artist.cluster.tree import ClusterTree
from artist.contract import ClusterView, Decision, JobView, Migrate
from artist.policies.shared.packing import pack_in_level, pack_in_unit, widest_level
from artist.policies.shared.usable import free_after
from artist.rng import Draws

ALL: Final = -1
"""The bit set of all machines."""


class Affinity:
    """Affinities of machines, and the placements that follow from them."""

    def __init__(self, draws: Draws) -> None:
        # Per machine: its affinity, a GPU demand. An idle machine keeps its last one, unused.
        self._demand: dict[int, int] = {}
        # By demand: the machines of this affinity, as a bit set of turns.
        self._machines: dict[int, int] = {}
        # Per job: the machine on which it lies or last lay. Jobs on several machines have none.
        self._homes: dict[int, int] = {}
        self._rng = draws.stream("gandiva.scatter")
        # The random order of machines for the current job; None until it is needed.
        self._order: list[int] | None = None

    def comes_forward(self) -> None:
        """Begin with the next job, which gets a random order of machines of its own.

        It has the same order for the free GPUs and for the pool. With two draws, it would take
        GPUs of running jobs whenever the second draw happens to lie closer together.
        """
        self._order = None

    def place(self, job: JobView, free: FreeGpus) -> Placement | None:
        """A placement for a job; None only if no region has enough free GPUs that it could use."""
        gpus, level, fed = job.job.gpus, free.tree.machine, free.fed(job.job)
        if not fed.fits_one(widest_level(fed.tree, gpus), gpus):
            return None
        machine = self._homes.get(job.handle)
        if machine is None or fed.of(level, machine) < gpus:
            machine = self._machine(fed, free, gpus)
        if machine is None:
            return self._scattered(fed, gpus)
        return Placement.of(pack_in_unit(fed, level, machine, gpus))

    def placed(self, job: JobView, placement: Placement, after: FreeGpus) -> None:
        """Note that a job got GPUs. `after` are the GPUs that are free afterwards."""
        level = after.tree.machine
        sizes = after.tree.levels[level].gpus
        counts = machine_counts(after.tree, placement)
        for machine, count in counts.items():
            was_idle = after.of(level, machine) + count == sizes[machine]
            if was_idle or machine not in self._demand:
                self._assign(machine, job.job.gpus, 1 << after.turn(level, machine))
        self._homes.pop(job.handle, None)
        if len(counts) == 1:
            (self._homes[job.handle],) = counts

    def _assign(self, machine: int, demand: int, bit: int) -> None:
        former = self._demand.get(machine)
        if former is not None:
            self._machines[former] ^= bit
        self._demand[machine] = demand
        self._machines[demand] = self._machines.get(demand, 0) | bit

    def forget(self, handle: int) -> None:
        """Forget a job that finished."""
        self._homes.pop(handle, None)

    def _machine(self, fed: FreeGpus, free: FreeGpus, gpus: int) -> int | None:
        """A machine with room: of the same affinity, idle, or of another affinity, in this order.

        None if no machine has room. `fed` are the `free` GPUs that the job could use, given the CPU
        cores and memory of their machines.
        """
        level = free.tree.machine
        idle = free.idle(level)
        own = self._machines.get(gpus, 0) & ~idle
        machine = fed.fit_among(level, gpus, own, most=True)
        if machine is None:
            machine = fed.fit_among(level, gpus, idle)
        if machine is None:
            machine = fed.fit_among(level, gpus, ALL, most=True)
        return machine

    def _scattered(self, free: FreeGpus, gpus: int) -> Placement:
        """Take the free GPUs of machines in random order until the job has enough.

        The region is that of the first machine whose region has room.
        """
        tree, level, widest = free.tree, free.tree.machine, widest_level(free.tree, gpus)
        region: int | None = None
        counts = free.counts(level).tolist()
        taken: dict[int, int] = {}
        if self._order is None:
            self._order = self._rng.permutation(len(counts)).tolist()
        for machine in self._order:
            if not counts[machine]:
                continue
            unit = tree.ancestor(level, machine, widest)
            if region is None and free.of(widest, unit) >= gpus:
                region = unit
            if unit == region:
                share = min(gpus, counts[machine])
                taken |= pack_in_unit(free, level, machine, share)
                gpus -= share
                if not gpus:
                    break
        return Placement.of(taken)


class Consolidation:
    """One pass over the running jobs that share no GPUs and are in no decision of this question.

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
        self._touched |= {getattr(decision, "beside", None) for decision in decisions}
        self._touched |= {handle for handle, job in view.running.items() if job.beside}

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
            self._free.release(job.placement, job.job)
            better = self._better(self._free.fed(job.job), job.placement)
            if better is None:
                self._free.claim(job.placement, job.job)
            else:
                yield self._moved(job, better)

    def emptier(self, share: float) -> Iterator[Migrate]:
        """Empty the busy machines of which at least `share` is free, the emptiest first.

        These machines and their order are fixed before the first job moves; ties go by visiting
        order. Jobs inside one machine move, the smallest first, then in order of arrival. A job
        goes to the busy machine with the fewest free GPUs that suffice, if these are fewer than its
        own machine has by then. Otherwise it and the larger jobs of its machine stay.

        The share is taken as the decimal number that it prints as: .7 of ten GPUs are seven.
        """
        level = self._tree.machine
        inside = self._inside(self._nearly_empty(share))
        for source in sorted(inside, key=lambda unit: self._emptiness(level, unit)):
            for job in sorted(inside[source], key=lambda job: (job.job.gpus, job.handle)):
                target = self._fuller(self._free.fed(job.job), job.job.gpus, source)
                if target is None:
                    break
                assert job.placement is not None  # running jobs have GPUs
                self._free.release(job.placement, job.job)
                taken = pack_in_unit(self._free, level, target, job.job.gpus)
                yield self._moved(job, Placement.of(taken))

    def _moved(self, job: JobView, placement: Placement) -> Migrate:
        self._free.claim(placement, job.job)
        self._affinity.placed(job, placement, self._free)
        self._touched.add(job.handle)
        return Migrate(job.handle, placement)

    def _better(self, free: FreeGpus, current: Placement) -> Placement | None:
        """The placement in the best level with room; None if it is no better than `current`."""
        for level in range(self._tree.machine, len(self._tree.levels)):
            placement = pack_in_level(free, level, current.gpus)
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
        """By machine, the jobs of this pass that lie inside one of these machines."""
        inside: dict[int, list[JobView]] = {}
        level, machine_of = self._tree.machine, self._tree.machine_of
        for handle, job in self._running.items() if machines else ():
            if job.tier == level and handle not in self._touched:
                assert job.placement is not None  # running jobs have GPUs
                machine = machine_of[job.placement.leaves[0]]
                if machine in machines:
                    inside.setdefault(machine, []).append(job)
        return inside

    def _fuller(self, fed: FreeGpus, gpus: int, source: int) -> int | None:
        """The busy machine with the fewest free GPUs that suffice, if fewer than the source has."""
        level, free = self._tree.machine, self._free
        unit = fed.fit_among(level, gpus, ~free.idle(level))
        if unit is None or free.of(level, unit) >= free.of(level, source):
            return None
        return unit

    def _emptiness(self, level: int, unit: int) -> tuple[int, int]:
        """A sort key: most free GPUs first, then the visiting order."""
        return -self._free.of(level, unit), self._free.turn(level, unit)


def _spread(tree: ClusterTree, placement: Placement) -> tuple[int, int]:
    """The tier of a placement, then its number of machines. Smaller is better."""
    return tier(tree, placement), len(machine_counts(tree, placement))
