"""A cluster as a picture: a row per level, a box per unit, as wide as its share of the GPUs.

The picture is one self-contained SVG file. If the boxes of a level would be too narrow to see, one
box represents all units inside a larger unit, with their number on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from artist.cluster.cluster_file import Cluster
from artist.cluster.tree import ONE_KIND, ClusterTree
from artist.report.drawing import palette
from artist.report.templating import document
from artist.units import counted

WIDTH, ROW, LEFT, GAP = 960, 34, 110, 4
"""Pixels: of the boxes, of a row, of the names of levels, between rows."""

NARROWEST = 3.0
"""Pixels; a narrower box cannot be seen."""

_LETTER = 7.0
_KINDS = 8
"""Colours before they repeat: those of policies."""


def cluster_svg(tree: ClusterTree, cluster: Cluster | None) -> str:
    """The picture as the text of an SVG file. With the cluster file, boxes have names."""
    levels = range(tree.root, tree.machine - 1, -1)
    legend_top = len(levels) * (ROW + GAP) + GAP
    return document(
        "cluster.svg",
        width=LEFT + WIDTH + GAP,
        height=legend_top + (26 if _kinds(tree) else 0),
        row_height=ROW,
        gap=GAP,
        rows=[
            {
                "top": GAP + row * (ROW + GAP),
                "name": tree.level_names[level],
                "boxes": list(_boxes(tree, cluster, level)),
            }
            for row, level in enumerate(levels)
        ],
        legend_top=legend_top,
        legend=list(_legend(tree)),
    )


def _boxes(tree: ClusterTree, cluster: Cluster | None, level: int) -> Iterator[dict[str, Any]]:
    """The boxes of a level from left to right."""
    scale, at = WIDTH / tree.gpus, 0
    outer = _seen(tree, level)
    for unit, gpus in enumerate(tree.levels[outer].gpus):
        inside = tree.units_inside(outer, unit, level)
        label = _label(tree, cluster, level, inside)
        left, width = LEFT + at * scale, gpus * scale
        yield {
            "left": left,
            "width": max(width - 0.8, 0.4),
            "middle": left + width / 2,
            "colour": _colour(tree, level, inside.start),
            "label": label,
            "shown": len(label) * _LETTER + 6 <= width,
            "title": label if level == tree.root else f"{label}: {counted(gpus, 'GPU')}",
        }
        at += gpus


def _seen(tree: ClusterTree, level: int) -> int:
    """The innermost level from this one outwards whose units are all wide enough to be seen."""
    scale = WIDTH / tree.gpus
    while level < tree.root and min(tree.levels[level].gpus) * scale < NARROWEST:
        level += 1
    return level


def _label(tree: ClusterTree, cluster: Cluster | None, level: int, units: range) -> str:
    name = tree.level_names[level]
    if level == tree.root:
        return counted(tree.gpus, "GPU")
    if len(units) > 1:
        return f"{len(units):,} {name}s"
    named = cluster.names.get(name) if cluster is not None else None
    return named[units.start] if named else f"{name}-{units.start}"


def _kinds(tree: ClusterTree) -> list[str]:
    """The cluster's kinds of machines in their order; none if there is only the default."""
    kinds = list(dict.fromkeys(tree.kinds))
    return [] if kinds == [ONE_KIND] else kinds


def _colour(tree: ClusterTree, level: int, unit: int) -> str:
    """Machines have the colour of their kind, other units a grey that darkens inwards."""
    if level == tree.machine and (kinds := _kinds(tree)):
        return palette()[f"s{kinds.index(tree.kinds[unit]) % _KINDS}"]
    shade = 236 - 12 * (tree.root - level)
    return f"#{shade:02x}{shade:02x}{shade:02x}"


def _legend(tree: ClusterTree) -> Iterator[dict[str, Any]]:
    """The colours of kinds, from left to right."""
    left = LEFT
    for index, kind in enumerate(_kinds(tree)):
        yield {"left": left, "name": kind, "colour": palette()[f"s{index % _KINDS}"]}
        left += int(30 + len(kind) * _LETTER)
