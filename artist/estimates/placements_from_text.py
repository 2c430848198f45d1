"""From text to placements: `8/8@0,8` is 8 GPUs on leaf 0 and 8 on leaf 8.

Text before `@` is a signature (`placement_shape.py`). Numbers after it are leaves, and `0-3` stands
for four leaves.

Without leaves, a placement takes the first units with room for its parts. So placements that are
written one after the other are neighbours in the same racks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from artist.cluster.placement import Placement
from artist.cluster.placement_shape import (
    Shape,
    depth,
    leaf_counts,
    parse_signature,
    shape,
    shape_text,
)
from artist.cluster.tree import ClusterTree
from artist.errors import ConfigError, shortened

_LEAVES = re.compile(r"[0-9]{1,9}(-[0-9]{1,9})?(,[0-9]{1,9}(-[0-9]{1,9})?)*")


class WrittenPlacements:
    """The free GPUs of a cluster on which placements are written one after the other."""

    def __init__(self, tree: ClusterTree, gpus_per_socket: int | None = None) -> None:
        self._tree = tree
        self._gpus_per_socket = gpus_per_socket
        self._free = list(tree.levels[0].gpus)

    def take(self, text: str) -> Placement:
        """The placement of `SIGNATURE` or `SIGNATURE@LEAVES`. Its GPUs are then no longer free.

        GPU counts go to the leaves in the order in which they are written. If one number stands for
        a machine with several sockets, the largest parts come first.

        Raises:
            ConfigError: no placement on this cluster, leaves outside it or too few or too many,
                leaves that make another shape, or GPUs that are not free.
        """
        signature, at, leaves = text.partition("@")
        wanted = parse_signature(signature, self._tree.level_names, self._gpus_per_socket)
        taken = self._at(text, signature, wanted, leaves) if at else self._first(text, wanted)
        for leaf, count in taken.items():
            self._free[leaf] -= count
        return Placement.of(taken)

    def _at(self, text: str, signature: str, wanted: Shape, written: str) -> dict[int, int]:
        """GPUs by leaf for a signature with leaves, which must have the signature's shape."""
        tree = self._tree
        name, where = tree.level_names[0], f"placement {shortened(text)}"
        leaves = list(self._leaves(where, written))
        counts = [int(count) for count in re.findall("[0-9]+", signature)]
        if len(counts) != len(leaves):
            counts = leaf_counts(wanted)
        if len(counts) != len(leaves) or len(set(leaves)) != len(leaves):
            raise ConfigError(
                f"{where}: {len(set(leaves))} different {name}s for {len(counts)} parts; give one "
                f"{name} for each number of GPUs"
            )
        taken = dict(zip(leaves, counts, strict=True))
        for leaf, count in taken.items():
            if count > self._free[leaf]:
                raise ConfigError(
                    f"{where}: {name} {leaf} has {tree.levels[0].gpus[leaf]} GPUs, of which "
                    f"{self._free[leaf]} are free, not {count}; choose another {name}"
                )
        made = shape(tree, Placement.of(taken))
        if made != wanted:
            raise ConfigError(
                f"{where}: on these {name}s it is {shape_text(made, tree.level_names)} on a "
                f"cluster of {tree.text}; choose {name}s that fit"
            )
        return taken

    def _leaves(self, where: str, written: str) -> Iterator[int]:
        """The leaves of a list such as `0,8` or `0-3`."""
        count, name = len(self._tree.levels[0]), self._tree.level_names[0]
        if not _LEAVES.fullmatch(written):
            raise ConfigError(f"{where}: expected numbers of {name}s after '@', such as 0,8 or 0-3")
        for part in written.split(","):
            first, _, last = part.partition("-")
            least, most = int(first), int(last or first)
            if max(least, most) >= count:
                raise ConfigError(
                    f"{where}: {name} {max(least, most)} is outside the cluster of "
                    f"{self._tree.text}, which has {name}s 0 to {count - 1}; make the cluster "
                    "larger or choose another"
                )
            yield from range(least, most + 1)

    def _first(self, text: str, wanted: Shape) -> dict[int, int]:
        """GPUs by leaf in the first unit with room for the shape."""
        level = depth(wanted)
        units = range(len(self._tree.levels[level])) if level <= self._tree.root else ()
        for unit in units:
            taken = self._inside(wanted, level, unit)
            if taken is not None:
                return taken
        raise ConfigError(
            f"placement {shortened(text)}: the cluster of {self._tree.text} has no room for it; "
            f"make the cluster larger, or say which {self._tree.level_names[0]}s: "
            f"{text.partition('@')[0]}@0,1,..."
        )

    def _inside(self, wanted: Shape, level: int, unit: int) -> dict[int, int] | None:
        """GPUs by leaf for a shape in one unit, each part in the first child with room; or None."""
        if isinstance(wanted, int):
            return {unit: wanted} if wanted <= self._free[unit] else None
        taken: dict[int, int] = {}
        children = list(self._tree.children(level, unit))
        for part in wanted:
            for child in children:
                inside = self._inside(part, level - 1, child)
                if inside is not None:
                    children.remove(child)
                    taken |= inside
                    break
            else:
                return None
        return taken
