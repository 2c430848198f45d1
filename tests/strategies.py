"""Hypothesis strategies for clusters and placements."""

from __future__ import annotations

from hypothesis import strategies as st

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, Nested, nested

LEVELS = ("machine", "rack", "network")
SIX_LEVELS = ("die", "socket", "machine", "rack", "row", "network")
_NAMES = st.sampled_from([LEVELS, ("socket", *LEVELS), SIX_LEVELS, ("machine", "network")])


@st.composite
def trees(draw: st.DrawFn) -> ClusterTree:
    """Any cluster: units of a level may differ in size."""
    names = draw(_NAMES)

    def unit(level: int) -> Nested:
        if level == 0:
            return draw(st.integers(1, 8))
        return [unit(level - 1) for _ in range(draw(st.integers(1, 3)))]

    return nested(names, unit(len(names) - 1))


@st.composite
def regular_trees(draw: st.DrawFn) -> ClusterTree:
    """Clusters whose units of a level are equal."""
    names = draw(_NAMES)
    unit: Nested = draw(st.integers(1, 8))
    for _ in names[1:]:
        unit = [unit] * draw(st.integers(1, 3))
    return nested(names, unit)


@st.composite
def placements_on(draw: st.DrawFn, tree: ClusterTree) -> Placement:
    """Some GPUs of an empty cluster."""
    leaves = draw(st.sets(st.integers(0, len(tree.levels[0]) - 1), min_size=1))
    return Placement.of({leaf: draw(st.integers(1, tree.levels[0].gpus[leaf])) for leaf in leaves})
