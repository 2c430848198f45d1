"""The machines in Slurm's order, and what is free on them.

A set of machines is a bit set: an integer whose bit `i` stands for machine `i`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from artist.cluster.free_gpus import FreeGpus
from artist.cluster.placement import Placement, machine_counts
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError, shortened
from artist.slurm.facts import Partition, SlurmFacts
from artist.slurm.texts import hosts

UNKNOWN_CPUS = 1_000_000
"""CPUs of a machine for which the cluster file states none: enough for any job."""


@dataclass(frozen=True)
class PartitionMachines:
    """A partition, its machines, the most GPUs that one of them has, and all their GPUs."""

    name: str
    machines: int
    largest: int
    gpus: int
    max_time_s: float | None
    max_nodes: int | None
    tier: int
    job_factor: int
    preempt_mode: str
    grace_s: int
    billing: Mapping[str, float]
    qos: str
    """The QOS whose limits its jobs have besides those of their own; empty if there is none."""


class Machines:
    """What never changes of the machines: names, sizes, weights, partitions and switches.

    `names` are the names of the tree's machines, in the tree's order; None if they have none.
    """

    def __init__(self, tree: ClusterTree, names: Sequence[str] | None, facts: SlurmFacts) -> None:
        count = len(tree.levels[tree.machine])
        self.tree = tree
        self.everything = (1 << count) - 1
        # Slurm orders machines by their names, the tree by racks.
        self.units = list(range(count))
        if names is not None:
            self.units.sort(key=lambda unit: _natural(names[unit]))
        self.in_tree_order = self.units == list(range(count))
        self.index = {unit: index for index, unit in enumerate(self.units)}
        self._by_name = {} if names is None else {x: self.index[u] for u, x in enumerate(names)}
        self.gpus = [tree.levels[tree.machine].gpus[unit] for unit in self.units]
        self.cpus, self.weights = [UNKNOWN_CPUS] * count, [1] * count
        for group in facts.machines:
            for index in bits(self.named(group.nodes, "slurm.machines")):
                self.cpus[index] = group.cpus or UNKNOWN_CPUS
                self.weights[index] = group.weight
        known = facts.gpu_partitions or {"": Partition(name="", nodes="ALL")}
        self.partitions = {name: self._partition(x) for name, x in known.items()}
        self.default = facts.default_partition
        self.switches = self._switches()
        self._suiting: dict[tuple[int, int], int] = {}
        self._of_kinds: dict[tuple[str, tuple[str, ...]], PartitionMachines | None] = {}

    def named(self, host_list: str, place: str) -> int:
        """The machines in a host list, as a bit set; those without GPUs are left out.

        Raises:
            ConfigError: the list is broken, or the cluster has none of them.
        """
        if host_list == "ALL":
            return self.everything
        found = 0
        for name in hosts(host_list, place):
            if name in self._by_name:
                found |= 1 << self._by_name[name]
        if not found:
            raise ConfigError(
                f"{place}: the cluster has none of the machines {shortened(host_list)}; the "
                "section slurm of a cluster file belongs to its machines"
            )
        return found

    def known(self, names: Iterable[str]) -> int:
        """The named machines as a bit set; names that the cluster lacks are left out."""
        return sum(1 << self._by_name[name] for name in {*names} if name in self._by_name)

    def of_kinds(self, kinds: Sequence[str]) -> int:
        """The machines with GPUs of these kinds, as a bit set; all if none is named."""
        if not kinds:
            return self.everything
        return sum(1 << x for x, unit in enumerate(self.units) if self.tree.kinds[unit] in kinds)

    def kind(self, index: int) -> str:
        """The kind of a machine's GPUs."""
        return self.tree.kinds[self.units[index]]

    def part_of(
        self, partition: PartitionMachines, kinds: tuple[str, ...]
    ) -> PartitionMachines | None:
        """The part of a partition whose machines have GPUs of these kinds; None if it is empty."""
        key = partition.name, kinds
        if kinds and key not in self._of_kinds:
            machines = partition.machines & self.of_kinds(kinds)
            gpus = [self.gpus[index] for index in bits(machines)]
            self._of_kinds[key] = (
                replace(partition, machines=machines, largest=max(gpus), gpus=sum(gpus))
                if gpus
                else None
            )
        return self._of_kinds[key] if kinds else partition

    def suiting(self, partition: PartitionMachines, gpus: int) -> int:
        """How many machines of a partition, or of a part of one, have at least this many GPUs."""
        found = self._suiting.get((partition.machines, gpus))
        if found is None:
            found = sum(self.gpus[index] >= gpus for index in bits(partition.machines))
            self._suiting[partition.machines, gpus] = found
        return found

    def most_gpus(self, partition: PartitionMachines) -> int:
        """How many GPUs as many machines as a job may have in a partition (MaxNodes) have."""
        if partition.max_nodes is None:
            return partition.gpus
        gpus = sorted((self.gpus[index] for index in bits(partition.machines)), reverse=True)
        return sum(gpus[: partition.max_nodes])

    def placement(self, free: FreeGpus, taken: Sequence[tuple[int, int]]) -> Placement:
        """A placement on free GPUs of these (machine, GPUs)."""
        counts: dict[int, int] = {}
        for index, left in taken:
            for leaf in self.tree.leaves(self.tree.machine, self.units[index]):
                count = min(left, free.leaves[leaf])
                if count:
                    counts[leaf] = count
                    left -= count
        return Placement.of(counts)

    def of(self, placement: Placement) -> list[tuple[int, int]]:
        """The (machine, GPUs) of a placement."""
        counts = machine_counts(self.tree, placement)
        return [(self.index[unit], gpus) for unit, gpus in counts.items()]

    def _partition(self, partition: Partition) -> PartitionMachines:
        """A partition of the cluster file with its machines and GPUs."""
        machines = self.named(partition.nodes, f"partition {partition.name}")
        return PartitionMachines(
            name=partition.name,
            machines=machines,
            largest=max(self.gpus[index] for index in bits(machines)),
            gpus=sum(self.gpus[index] for index in bits(machines)),
            max_time_s=partition.max_time_s,
            max_nodes=partition.max_nodes,
            tier=partition.priority_tier,
            job_factor=partition.priority_job_factor,
            preempt_mode=partition.preempt_mode,
            grace_s=partition.grace_s,
            billing=partition.billing,
            qos=partition.qos,
        )

    def _switches(self) -> list[Switch]:
        """The levels above machines as switches: leaf switches first, then those above them."""
        tree, switches = self.tree, list[Switch]()
        first = 0
        for level in range(tree.machine + 1, tree.root + 1):
            units = range(len(tree.levels[level]))
            above = first + len(units)
            for unit in units:
                inside = tree.units_inside(level, unit, tree.machine)
                machines = sum(1 << self.index[machine] for machine in inside)
                parent = above + tree.levels[level].parent[unit] if level < tree.root else None
                switches.append(Switch(level - tree.machine - 1, machines, parent))
            first = above
        return switches


@dataclass(frozen=True)
class Switch:
    """A switch: its level (0 for a leaf switch), its machines, and the index of its parent."""

    level: int
    machines: int
    parent: int | None


class Free:
    """Free GPUs and CPUs of every machine. It keeps which machines have room for a request."""

    __slots__ = ("_room", "cpus", "gpus")

    def __init__(
        self, gpus: list[int], cpus: list[int], room: Mapping[tuple[int, int], int] | None = None
    ) -> None:
        self.gpus, self.cpus = gpus, cpus
        self._room: dict[tuple[int, int], int] = {**(room or {})}

    def copy(self) -> Free:
        """An independent copy."""
        return Free(self.gpus[:], self.cpus[:], self._room)

    def room(self, gpus: int, cpus: int) -> int:
        """The machines with at least this many free GPUs and CPUs."""
        found = self._room.get((gpus, cpus))
        if found is None:
            found = 0
            for index, (free_gpus, free_cpus) in enumerate(zip(self.gpus, self.cpus, strict=True)):
                if free_gpus >= gpus and free_cpus >= cpus:
                    found |= 1 << index
            self._room[gpus, cpus] = found
        return found

    def change(self, index: int, gpus: int, cpus: int) -> None:
        """Add to the free GPUs and CPUs of a machine; negative numbers take away."""
        self.gpus[index] += gpus
        self.cpus[index] += cpus
        bit = 1 << index
        for (need_gpus, need_cpus), found in self._room.items():
            if self.gpus[index] >= need_gpus and self.cpus[index] >= need_cpus:
                self._room[need_gpus, need_cpus] = found | bit
            else:
                self._room[need_gpus, need_cpus] = found & ~bit


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits of a bit set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that puts n9 before n10."""
    return [(int(x), "") if x.isdecimal() else (0, x) for x in re.split(r"(\d+)", name)]
