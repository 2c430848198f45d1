"""The cluster as a tree of named levels: what contains what.

Levels are listed inner to outer, e.g. `("socket", "machine", "rack", "network")`. The last level
has one unit, the whole cluster. A unit of the innermost level (a **leaf**) holds GPUs; every other
unit holds units of the next inner level. The units of a level are numbered from 0 in depth-first
order. They have no other name, so the name of a machine cannot change a result.

Children may differ in size. `fabric.py` describes the links between units, `free_gpus.py` counts
free GPUs, and `artist.engine.holdings` knows which job holds which GPU.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from artist.cluster.mig import Mode
from artist.errors import ConfigError
from artist.io.digests import PREFIX, sha256

MACHINE = "machine"

# Clusters up to this size fit easily in memory. The largest training cluster announced so far is
# far smaller (100,000 GPUs, MAST section 5.1).
MAX_GPUS = 4_000_000

# Characters of a cluster's text that fit in a cell of a table.
LONGEST_TEXT = 200

Nested: TypeAlias = "int | Sequence[Nested]"


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the tree, as flat tables indexed by unit."""

    name: str
    gpus: tuple[int, ...]
    """GPUs below each unit."""
    parent: tuple[int, ...]
    """The unit of the next outer level that holds each unit (empty at the root)."""
    first_child: tuple[int, ...]
    """Children of unit u are `first_child[u] .. first_child[u + 1] - 1` (empty at the leaves)."""

    def __len__(self) -> int:
        return len(self.gpus)


class HostSizes(NamedTuple):
    """CPU cores (thousandths) and memory (MiB) of each machine, and MiB and MIG mode of its GPUs.

    A machine has None where nothing is stated. The fields of GPUs are empty if no machine states
    them."""

    cpu_milli: tuple[int | None, ...]
    memory_mib: tuple[int | None, ...]
    gpu_memory_mib: tuple[int | None, ...] = ()
    mig: tuple[Mode | None, ...] = ()


@dataclass(frozen=True)
class ClusterTree:
    """An immutable cluster. Build one with `regular` or `nested`."""

    levels: tuple[Level, ...]
    kinds: tuple[str, ...]
    """The kind of each machine's GPUs. A cluster file may give machines different kinds."""
    wide_area: bool = False
    """Whether the outermost level is a wide-area network between regions."""
    hosts: HostSizes | None = None
    """CPU cores and memory of the machines and GPUs; None if none of them states any."""
    machine: int = field(init=False)
    """Index of the machine level."""

    # Derived from the levels once, because policies need these tables at every question.
    level_names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Level names, inner to outer."""
    root: int = field(init=False, repr=False, compare=False)
    """Index of the outermost level, which has one unit: the cluster."""
    parents: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """`Level.parent` of every level except the outermost."""
    first_leaf: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """Per level: leaves below unit u are `first_leaf[level][u] .. first_leaf[level][u + 1] - 1`."""
    leaf_gpus: npt.NDArray[np.int32] = field(init=False, repr=False, compare=False)
    """GPUs of each leaf."""
    machine_of: tuple[int, ...] = field(init=False, repr=False, compare=False)
    """The machine of each leaf."""
    _largest: tuple[int, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = tuple(level.name for level in self.levels)
        if len(set(names)) != len(names) or MACHINE not in names[:-1]:
            raise ConfigError(
                f"cluster levels {', '.join(names)}: names must differ and "
                f"'{MACHINE}' must be one of them, inside the outermost"
            )
        machine = names.index(MACHINE)
        machine_of: Sequence[int] = range(len(self.levels[0]))
        for level in self.levels[:machine]:
            machine_of = [level.parent[unit] for unit in machine_of]
        first_leaf = [tuple(range(len(self.levels[0]) + 1))]
        for level in self.levels[1:]:
            first_leaf.append(tuple(first_leaf[-1][child] for child in level.first_child))
        for name, value in {
            "machine": machine,
            "first_leaf": tuple(first_leaf),
            "level_names": names,
            "root": len(names) - 1,
            "parents": tuple(level.parent for level in self.levels[:-1]),
            "leaf_gpus": np.array(self.levels[0].gpus, dtype=np.int32),
            "machine_of": tuple(machine_of),
            "_largest": tuple(max(level.gpus) for level in self.levels),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def gpus(self) -> int:
        """Number of GPUs in the cluster."""
        return self.levels[-1].gpus[0]

    def children(self, level: int, unit: int) -> range:
        """Units of the next inner level that `unit` holds."""
        first = self.levels[level].first_child
        return range(first[unit], first[unit + 1])

    def units_inside(self, level: int, unit: int, inner: int) -> range:
        """The units of level `inner` inside a unit of `level`; the unit itself on its own level."""
        units = range(unit, unit + 1)
        for outer in range(level, inner, -1):
            first = self.levels[outer].first_child
            units = range(first[units.start], first[units.stop])
        return units

    def leaves(self, level: int, unit: int) -> range:
        """The leaves below a unit."""
        first = self.first_leaf[level]
        return range(first[unit], first[unit + 1])

    def ancestor(self, level: int, unit: int, outer: int) -> int:
        """The unit of level `outer` that holds `unit` of `level`."""
        for inner in range(level, outer):
            unit = self.levels[inner].parent[unit]
        return unit

    @property
    def text(self) -> str:
        """The cluster as text, outermost level first: `16x8x8`, or `[2x8, [8, 4, 4]]`.

        Equal children are a product: `2x8` are two machines of 8 GPUs. Different ones are listed
        like in a scenario's `tree`. Text of more than `LONGEST_TEXT` characters ends with a digest.
        """
        texts = [str(gpus) for gpus in self.levels[0].gpus]
        for level in range(1, len(self.levels)):
            units = (self.children(level, unit) for unit in range(len(self.levels[level])))
            texts = [_joined([texts[child] for child in unit]) for unit in units]
        text = texts[0]
        if len(text) <= LONGEST_TEXT:
            return text
        return f"{text[:LONGEST_TEXT]}... {sha256(text)[: len(PREFIX) + 12]}"

    def largest(self, level: int) -> int:
        """GPUs of the largest unit of a level: the most that a job can have inside one unit."""
        return self._largest[level]


def _joined(children: Sequence[str]) -> str:
    if len(set(children)) == 1:
        return f"{len(children)}x{children[0]}"
    return f"[{', '.join(children)}]"


ONE_KIND = "gpu-machine"
"""The kind of every machine in a cluster that names no kinds."""


def nested(
    names: Sequence[str],
    tree: Nested,
    kinds: tuple[str, ...] | None = None,
    *,
    wide_area: bool = False,
    hosts: HostSizes | None = None,
) -> ClusterTree:
    """Build a tree from nested lists of GPU counts, outermost level first.

    `nested(("machine", "rack", "network"), [[8, 8], [4]])` has two racks: one with two machines
    of 8 GPUs, and one with a machine of 4 GPUs. `kinds` and `hosts` list the machines in order.

    Raises:
        ConfigError: the nesting does not match the levels, a count is not positive, or the
            cluster has more than `MAX_GPUS` GPUs.
    """
    depth = len(names)
    sizes: list[list[int]] = [[] for _ in names]
    parents: list[list[int]] = [[] for _ in names]
    firsts: list[list[int]] = [[] for _ in names]

    def visit(level: int, node: Nested) -> int:
        if level == 0:
            if not isinstance(node, int) or isinstance(node, bool) or node < 1:
                raise ConfigError(
                    f"cluster tree: a {names[0]} must hold a positive number of GPUs, got {node!r}"
                )
            sizes[0].append(node)
            return node
        if isinstance(node, str) or not isinstance(node, Sequence) or not node:
            raise ConfigError(
                f"cluster tree: a {names[level]} must be a non-empty list of "
                f"{names[level - 1]}s, got {node!r}"
            )
        unit = len(sizes[level])
        sizes[level].append(0)
        firsts[level].append(len(sizes[level - 1]))
        total = 0
        for child in node:
            parents[level - 1].append(unit)
            total += visit(level - 1, child)
        sizes[level][unit] = total
        return total

    gpus = visit(depth - 1, tree)
    if gpus > MAX_GPUS:
        raise ConfigError(f"cluster tree: {gpus} GPUs, but at most {MAX_GPUS} are supported")
    return _assemble(names, sizes, parents, firsts, kinds, wide_area, hosts)


def regular(
    *, racks: int, machines_per_rack: int, gpus_per_machine: int, gpus_per_socket: int | None = None
) -> ClusterTree:
    """A cluster of `racks` x `machines_per_rack` x `gpus_per_machine` GPUs, perhaps with sockets.

    If the sockets do not divide the GPUs of a machine, its last socket is smaller.

    Raises:
        ConfigError: a size is not positive, or the cluster has more than `MAX_GPUS` GPUs.
    """
    for name, value in (
        ("racks", racks),
        ("machines-per-rack", machines_per_rack),
        ("gpus-per-machine", gpus_per_machine),
    ):
        if value < 1:
            raise ConfigError(f"--{name} {value}: must be at least 1")
    gpus = racks * machines_per_rack * gpus_per_machine
    if gpus > MAX_GPUS:
        raise ConfigError(
            f"{racks} racks x {machines_per_rack} machines x {gpus_per_machine} GPUs = {gpus} "
            f"GPUs: at most {MAX_GPUS} are supported; make the cluster smaller"
        )
    if gpus_per_socket is None:
        machine: Nested = gpus_per_machine
        names: tuple[str, ...] = (MACHINE, "rack", "network")
    else:
        full, rest = divmod(gpus_per_machine, gpus_per_socket)
        machine = [gpus_per_socket] * full + ([rest] if rest else [])
        names = ("socket", MACHINE, "rack", "network")
    return nested(names, [[machine] * machines_per_rack] * racks)


def _assemble(
    names: Sequence[str],
    sizes: list[list[int]],
    parents: list[list[int]],
    firsts: list[list[int]],
    kinds: tuple[str, ...] | None,
    wide_area: bool,
    hosts: HostSizes | None,
) -> ClusterTree:
    """Build the tree from the tables of its levels, inner to outer."""
    levels = []
    for index, name in enumerate(names):
        closing = [len(sizes[index - 1])] if index else []
        levels.append(
            Level(
                name=name,
                gpus=tuple(sizes[index]),
                parent=tuple(parents[index]),
                first_child=tuple(firsts[index] + closing),
            )
        )
    machines = len(sizes[list(names).index(MACHINE)]) if MACHINE in names else 0
    kinds = (ONE_KIND,) * machines if kinds is None else kinds
    return ClusterTree(tuple(levels), kinds, wide_area, hosts)


def gpus_by_kind(tree: ClusterTree) -> dict[str, int]:
    """GPUs of the whole cluster by kind, in the order of machines."""
    gpus: dict[str, int] = {}
    for kind, count in zip(tree.kinds, tree.levels[tree.machine].gpus, strict=True):
        gpus[kind] = gpus.get(kind, 0) + count
    return gpus


def gpus_of_kinds(tree: ClusterTree, level: int, kinds: Collection[str]) -> list[int]:
    """GPUs of these kinds in each unit of a level (machine or outer); of all kinds if empty."""
    sizes = tree.levels[level].gpus
    if not kinds:
        return list(sizes)
    machines = tree.levels[tree.machine].gpus
    return [
        sum(
            machines[machine]
            for machine in tree.units_inside(level, unit, tree.machine)
            if tree.kinds[machine] in kinds
        )
        for unit in range(len(sizes))
    ]


def kind_of_units(tree: ClusterTree, level: int) -> list[str | None]:
    """The kind of GPUs of each unit of a level (machine or outer); None if it has several."""
    units = range(len(tree.levels[level]))
    inside = [{tree.kinds[x] for x in tree.units_inside(level, u, tree.machine)} for u in units]
    return [next(iter(kinds)) if len(kinds) == 1 else None for kinds in inside]
