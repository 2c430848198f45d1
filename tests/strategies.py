"""Hypothesis strategies for clusters, placements and jobs."""

from __future__ import annotations

from hypothesis import strategies as st

from artist.cluster.placement import Placement
from artist.cluster.tree import ClusterTree, Nested, nested
from artist.workload.job import Job

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


@st.composite
def elastic_jobs(
    draw: st.DrawFn, tree: ClusterTree, last_s: float, most_iterations: int
) -> list[Job]:
    """Up to ten jobs, many of them simultaneous, some elastic, some costly to restart."""
    arrivals = sorted(
        draw(st.lists(st.sampled_from([0.0, 0.5, 40.0, last_s]), min_size=1, max_size=10))
    )
    jobs = []
    for index, arrival_s in enumerate(arrivals):
        gpus = draw(st.integers(1, tree.gpus))
        jobs.append(
            Job(
                id=f"job-{index}",
                arrival_s=arrival_s,
                gpus=gpus,
                gpus_min=draw(st.integers(1, gpus)),
                gpus_max=draw(st.integers(gpus, tree.gpus)),
                model=draw(st.sampled_from(["small", "large"])),
                iterations=draw(st.integers(1, most_iterations)),
                compute_s=draw(st.sampled_from([0.1, 1 / 3, 2.5, 20.0])),
                restart_s=draw(st.sampled_from([0.0, 7.5])),
            )
        )
    return jobs
