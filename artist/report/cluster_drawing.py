"""A cluster as a picture: a row per level, a box per unit, as wide as its share of the GPUs.

The picture is one SVG file that needs nothing else. A level with more boxes than can be seen is
drawn as one box for the units of a larger one, with their number on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from artist.cluster.cluster_file import Cluster
from artist.cluster.tree import ONE_KIND, ClusterTree
from artist.report.drawing import palette

WIDTH, ROW, LEFT, GAP = 960, 34, 110, 4
"""Pixels: of the boxes, of a row, of the names of levels, between rows."""

NARROWEST = 3.0
"""A box of fewer pixels cannot be seen beside others."""

_LETTER = 7.0
_KINDS = 8
"""Colours before they repeat: those of policies."""


def cluster_svg(tree: ClusterTree, cluster: Cluster | None = None) -> str:
    """The picture as the text of an SVG file. With the cluster file, boxes have names."""
    rows = list(range(tree.root, tree.machine - 1, -1))
    height = len(rows) * (ROW + GAP) + GAP + (26 if _kinds(tree) else 0)
    body = "".join(
        part
        for row, level in enumerate(rows)
        for part in _row(tree, cluster, level, GAP + row * (ROW + GAP))
    )
    legend = "".join(_legend(tree, len(rows) * (ROW + GAP) + GAP))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + GAP}" height="{height}" '
        f'viewBox="0 0 {LEFT + WIDTH + GAP} {height}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}{legend}</svg>\n'
    )


def _row(tree: ClusterTree, cluster: Cluster | None, level: int, top: int) -> Iterator[str]:
    name = tree.level_names[level]
    yield f'<text x="{GAP}" y="{top + 22}" fill="#333333">{escape(name)}</text>\n'
    scale, at = WIDTH / tree.gpus, 0
    outer = _seen(tree, level)
    for unit, gpus in enumerate(tree.levels[outer].gpus):
        inside = tree.units_inside(outer, unit, level)
        label = _label(tree, cluster, level, inside)
        title = label if level == tree.root else f"{label}: {gpus:,} GPUs"
        colour = _colour(tree, level, inside.start)
        yield _box(at * scale, gpus * scale, top, colour, label, title)
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
        return f"{tree.gpus:,} GPUs"
    if len(units) > 1:
        return f"{len(units):,} {name}s"
    named = cluster.names.get(name) if cluster is not None else None
    return named[units.start] if named else f"{name}-{units.start}"


def _box(left: float, width: float, top: int, colour: str, label: str, title: str) -> str:
    shown = label if len(label) * _LETTER + 6 <= width else ""
    text = (
        f'<text x="{LEFT + left + width / 2:.2f}" y="{top + 22}" text-anchor="middle" '
        f'fill="#111111">{escape(shown)}</text>'
        if shown
        else ""
    )
    return (
        f'<g><title>{escape(title)}</title><rect x="{LEFT + left:.2f}" y="{top}" '
        f'width="{max(width - 0.8, 0.4):.2f}" height="{ROW}" fill="{colour}"/>{text}</g>\n'
    )


def _kinds(tree: ClusterTree) -> list[str]:
    """The kinds that the cluster tells apart, in their order; none if there is but the default."""
    kinds = list(dict.fromkeys(tree.kinds))
    return [] if kinds == [ONE_KIND] else kinds


def _colour(tree: ClusterTree, level: int, unit: int) -> str:
    """Machines have the colour of their kind, other units a grey that darkens inwards."""
    if level == tree.machine and (kinds := _kinds(tree)):
        return palette()[f"s{kinds.index(tree.kinds[unit]) % _KINDS}"]
    shade = 236 - 12 * (tree.root - level)
    return f"#{shade:02x}{shade:02x}{shade:02x}"


def _legend(tree: ClusterTree, top: int) -> Iterator[str]:
    left = LEFT
    for index, kind in enumerate(_kinds(tree)):
        colour = palette()[f"s{index % _KINDS}"]
        yield f'<rect x="{left}" y="{top + 4}" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{left + 18}" y="{top + 14}" fill="#333333">{escape(kind)}</text>\n'
        left += int(30 + len(kind) * _LETTER)
