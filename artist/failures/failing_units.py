"""The units that can fail or be slow, and how often the GPUs of a job are hit.

A link is the uplink of a unit. Its failure takes the whole unit out of service, because nothing
below can be reached (docs/decisions/0025-failures.md).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from artist.cluster.placement import Placement, unit_counts
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError, did_you_mean, shortened
from artist.failures.model_file import (
    GPU,
    LINK,
    FailureFile,
    LinkFailures,
    Maintenance,
    PlannedOutage,
    SlowUnit,
    UnitFailures,
)
from artist.units import LAST_TICK, Tick, ticks

OF_A_GPU = -1
"""The level below the leaves: single GPUs."""


@dataclass(frozen=True)
class FailureKind:
    """One kind of unit that fails at random. `level` is its level of the tree, or `OF_A_GPU`."""

    name: str
    level: int
    failures: UnitFailures


@dataclass(frozen=True)
class PlannedUnitOutage:
    """An outage of a unit of the cluster at a known time."""

    name: str
    level: int
    unit: int
    outage: PlannedOutage
    failed: bool
    notice_s: float = 0.0


class SlowLeaves(NamedTuple):
    """The leaves of a slow unit, and when their GPUs compute `slowdown` times longer."""

    name: str
    """The unit in words, such as `machine 5`."""
    leaves: range
    start: Tick
    end: Tick
    slowdown: float


class FailingUnits:
    """The failure model of one cluster.

    Raises:
        ConfigError: a kind or a unit that the cluster lacks; names file and line.
    """

    def __init__(self, tree: ClusterTree, file: FailureFile) -> None:
        self.tree = tree
        self._first_gpu = (0, *accumulate(tree.levels[0].gpus))
        self.kinds: Sequence[FailureKind] = tuple(self._kinds(file))
        self.planned: Sequence[PlannedUnitOutage] = tuple(self._planned(file))
        self.slow: Sequence[SlowLeaves] = tuple(self._slow(file))
        self.spares = file.model.spares
        if self.spares is not None:
            self._level(self.spares.level, file, ("spares", "level"))

    def count(self, level: int) -> int:
        """The number of units of a level."""
        return self.tree.gpus if level == OF_A_GPU else len(self.tree.levels[level])

    def path(self, level: int, unit: int) -> tuple[int, ...]:
        """The position of each unit around a unit, and of the unit itself, outermost first.

        It does not depend on units after it or elsewhere, so failures stay when a cluster grows.
        """
        parts: list[int] = []
        if level == OF_A_GPU:
            leaf = self.leaf_of(unit)
            parts, level, unit = [unit - self._first_gpu[leaf]], 0, leaf
        while level < self.tree.root:
            parent = self.tree.levels[level].parent[unit]
            parts.append(unit - self.tree.levels[level + 1].first_child[parent])
            level, unit = level + 1, parent
        return tuple(reversed(parts))

    def slots(self, level: int, unit: int) -> Iterator[tuple[int, int]]:
        """(leaf, position in the leaf) of every GPU of a unit."""
        if level == OF_A_GPU:
            leaf = self.leaf_of(unit)
            yield leaf, unit - self._first_gpu[leaf]
            return
        gpus = self.tree.levels[0].gpus
        for leaf in self.tree.leaves(level, unit):
            for slot in range(gpus[leaf]):
                yield leaf, slot

    def leaf_of(self, gpu: int) -> int:
        """The leaf of a GPU; GPUs are numbered from 0 in the order of leaves."""
        return bisect_right(self._first_gpu, gpu) - 1

    def hazard(self, placement: Placement) -> float:
        """Failures per second that hit a job on these GPUs: 1 / MTTF.

        Each unit that holds any of the GPUs counts once, with 1 / mtbf_s: n machines have n times
        the rate of one. This is exact for exponential failures.
        """
        rate = 0.0
        for kind in self.kinds:
            if kind.level == OF_A_GPU:
                units = placement.gpus
            else:
                units = len(unit_counts(self.tree, placement, kind.level))
            rate += units / kind.failures.mtbf_s
        return rate

    def _kinds(self, file: FailureFile) -> Iterator[FailureKind]:
        for name, failures in file.model.random:
            at = ("levels", name) if name in file.model.levels else (name,)
            level = failures.level if isinstance(failures, LinkFailures) else name
            yield FailureKind(name, self._level(level, file, at), failures)

    def _planned(self, file: FailureFile) -> Iterator[PlannedUnitOutage]:
        for section, index, one in file.planned:
            level = self._level(one.level if one.kind == LINK else one.kind, file, (section, index))
            self._check(one, "an outage of", level, file, (section, index))
            notice_s = one.notice_s if isinstance(one, Maintenance) else 0.0
            yield PlannedUnitOutage(one.kind, level, one.unit, one, section == "outages", notice_s)

    def _slow(self, file: FailureFile) -> Iterator[SlowLeaves]:
        for index, one in enumerate(file.model.slow):
            if one.kind in (GPU, LINK):
                raise ConfigError(
                    f"{file.place('slow', index)}: a slow {one.kind}; name the machine instead: "
                    "a job's GPUs are only known by machine, and it is as fast as the slowest one"
                )
            level = self._level(one.kind, file, ("slow", index))
            self._check(one, "a slow", level, file, ("slow", index))
            start = ticks(one.at_s)
            end = LAST_TICK if one.duration_s is None else ticks(one.at_s + one.duration_s)
            leaves, name = self.tree.leaves(level, one.unit), f"{one.kind} {one.unit}"
            yield SlowLeaves(name, leaves, start, end, 1.0 / one.speed)

    def _check(
        self,
        one: PlannedOutage | SlowUnit,
        what: str,
        level: int,
        file: FailureFile,
        at: tuple[int | str, ...],
    ) -> None:
        """Refuse a unit that the cluster lacks."""
        if one.unit >= self.count(level):
            raise ConfigError(
                f"{file.place(*at)}: {what} {one.kind} {one.unit}, but the cluster has "
                f"{self.count(level)} (numbered from 0); correct unit"
            )

    def _level(self, name: str, file: FailureFile, at: tuple[int | str, ...]) -> int:
        names = self.tree.level_names[: self.tree.root]
        if name == GPU:
            return OF_A_GPU
        if name not in names:
            hint = did_you_mean(name, [*names, GPU, LINK])
            raise ConfigError(f"{file.place(*at)}: no {shortened(name)} in this cluster ({hint})")
        return names.index(name)
