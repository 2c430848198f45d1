"""The outline of a cluster: units that are alike share a line.

    network: 192 GPUs
    |- region east: 96 GPUs, storage 40 TB
    |  `- 3 clusters of 32 GPUs
    |     `- 2 racks of 16 GPUs
    |        `- 2 machines of 8 GPUs (h100)

Two units are alike if they hold the same, in the same order, and have the same storage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from artist.cluster.cluster_file import Cluster
from artist.cluster.tree import ONE_KIND, ClusterTree
from artist.units import counted, size_text

MOST_NAMES = 6
"""With more names than this, an outline shows the first and the last."""


@dataclass(frozen=True, slots=True)
class Outline:
    """Neighbouring units of one level that are alike, and what is inside each of them."""

    level: str
    names: tuple[str, ...]
    """Names of the units; empty if the cluster file does not name them."""
    count: int
    gpus: int
    """GPUs of one unit."""
    kind: str
    """Kind of machine; empty for other units, and where all machines are of one kind."""
    storage_bytes: int | None
    inside: tuple[Outline, ...]

    @property
    def text(self) -> str:
        """One line: `3 clusters of 32 GPUs`."""
        names = f" {self._names}" if self._names else ""
        if self.count == 1:
            head = f"{self.level}{names}: {counted(self.gpus, 'GPU')}"
        else:
            head = f"{self.count:,} {self.level}s{names} of {counted(self.gpus, 'GPU')}"
        storage = "" if self.storage_bytes is None else f", storage {size_text(self.storage_bytes)}"
        return f"{head}{f' ({self.kind})' if self.kind else ''}{storage}"

    @property
    def _names(self) -> str:
        if len(self.names) > MOST_NAMES:
            return f"{self.names[0]} to {self.names[-1]}"
        return ", ".join(self.names)

    def as_data(self) -> dict[str, Any]:
        """The same as plain data, for JSON."""
        return {
            "level": self.level,
            "count": self.count,
            "names": list(self.names),
            "gpus": self.gpus,
            "kind": self.kind,
            "storage_bytes": self.storage_bytes,
            "inside": [one.as_data() for one in self.inside],
        }


_Alike = tuple[int, str, int | None, tuple[int, ...]]
"""GPUs, kind, storage, and what is inside: numbers of `_Alike` of the inner level."""


def outline(tree: ClusterTree, cluster: Cluster | None) -> Outline:
    """The outline of a whole cluster. With its cluster file, units have names and storage."""
    return _Outlines(tree, cluster).of(tree.root, [0])


def lines(whole: Outline) -> Iterator[str]:
    """The outline as a text tree, a line per group of units."""
    yield whole.text
    yield from _branches(whole.inside, "")


def _branches(inside: Sequence[Outline], before: str) -> Iterator[str]:
    for index, one in enumerate(inside):
        last = index == len(inside) - 1
        yield f"{before}{'`- ' if last else '|- '}{one.text}"
        yield from _branches(one.inside, before + ("   " if last else "|  "))


class _Outlines:
    """Finds the units of a tree that are alike, level by level, from machines outwards."""

    def __init__(self, tree: ClusterTree, cluster: Cluster | None) -> None:
        self._tree, self._cluster = tree, cluster
        self._number: dict[int, list[int]] = {}
        """Level -> a number for each unit; units that are alike have the same."""
        for level in range(tree.machine, len(tree.levels)):
            known: dict[_Alike, int] = {}
            units = range(len(tree.levels[level]))
            self._number[level] = [
                known.setdefault(self._alike(level, unit), len(known)) for unit in units
            ]

    def of(self, level: int, units: Sequence[int]) -> Outline:
        """The outline of neighbouring units that are alike."""
        tree, first = self._tree, units[0]
        inside: list[Outline] = []
        if level > tree.machine:
            numbers = self._number[level - 1]
            groups = groupby(tree.children(level, first), key=numbers.__getitem__)
            inside = [self.of(level - 1, list(group)) for _, group in groups]
        kind = tree.kinds[first] if level == tree.machine else ""
        return Outline(
            tree.level_names[level],
            self._names(level, units),
            len(units),
            tree.levels[level].gpus[first],
            "" if kind == ONE_KIND else kind,
            self._storage(level, first),
            tuple(inside),
        )

    def _alike(self, level: int, unit: int) -> _Alike:
        gpus, storage = self._tree.levels[level].gpus[unit], self._storage(level, unit)
        if level == self._tree.machine:
            return gpus, self._tree.kinds[unit], storage, ()
        numbers = self._number[level - 1]
        children = self._tree.children(level, unit)
        return gpus, "", storage, tuple(numbers[children.start : children.stop])

    def _names(self, level: int, units: Sequence[int]) -> tuple[str, ...]:
        """Names that the file gives; none if they are just the level and a number."""
        named = self._of_file("names").get(self._tree.level_names[level], ())
        level_name = self._tree.level_names[level]
        given = [named[unit] for unit in units if named and named[unit] != f"{level_name}-{unit}"]
        return tuple(given) if len(given) == len(units) else ()

    def _storage(self, level: int, unit: int) -> int | None:
        stated = self._of_file("storage_bytes").get(self._tree.level_names[level])
        storage: int | None = stated[unit] if stated else None
        return storage

    def _of_file(self, table: str) -> Mapping[str, Any]:
        return {} if self._cluster is None else getattr(self._cluster, table)
