"""Are iterations composed of collectives exact, and are groups of GPUs cut as they should be?"""

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.cluster.fabric import load_fabric
from artist.errors import BackendSettingError
from artist.estimates.divided.layer_wise import CollectiveTimes, LayerwiseBackend
from artist.estimates.group_members import members
from artist.estimates.query import Dimension, Topology
from artist.estimates.query_from_text import on_placement
from artist.workload.iteration_graph import IterationNode, nodes, schedule
from artist.workload.layers import Degrees, Scope
from artist.workload.models import workload

BACKEND = LayerwiseBackend(AnalyticalBackend())


def _dims(*npus: int) -> tuple[Dimension, ...]:
    return tuple(Dimension(Topology.SWITCH, n, 100.0, 500.0) for n in npus)


@pytest.mark.parametrize("model", ["alexnet", "mobilenetv3", "bert-large"])
@pytest.mark.parametrize("placement", ["4+4", "4,4", "8/8"])
def test_the_graph_of_a_data_parallel_iteration_gives_the_backends_answer(
    model: str, placement: str
) -> None:
    """The composition used for the other parallelisms is exact where it can be checked."""
    query = on_placement(workload(model), placement, load_fabric("dally2025"), {}).asked[0].query
    times = CollectiveTimes(AnalyticalBackend(), query)
    graph = nodes(query.workload)

    def duration_ns(node: IterationNode) -> float:
        if node.collective is None:
            return int(node.compute_us) * 1000 or 1
        return times.of(node).finish_ns

    spans = schedule(graph, duration_ns)
    assert max(span.end for span in spans) == AnalyticalBackend().estimate(query).finish_ns


def test_data_parallel_passes_through() -> None:
    query = on_placement(workload("alexnet"), "4,4", load_fabric("dally2025"), {}).asked[0].query
    assert BACKEND.estimate(query, profile=True) == AnalyticalBackend().estimate(
        query, profile=True
    )


@pytest.mark.parametrize(
    ("npus", "degrees", "scope", "sizes"),
    [
        ((8, 4), Degrees(), Scope.ALL, {0: 8, 1: 4}),
        ((8, 4), Degrees(tensor=8), Scope.TENSOR, {0: 8}),
        ((8, 4), Degrees(tensor=4), Scope.TENSOR, {0: 4}),
        ((8, 4), Degrees(tensor=8), Scope.DATA, {1: 4}),
        ((8, 4), Degrees(tensor=4), Scope.DATA, {0: 2, 1: 4}),
        ((8, 4), Degrees(tensor=8, stages=2), Scope.DATA, {1: 2}),
        ((8, 4), Degrees(tensor=8, stages=4), Scope.DATA, {}),
        ((8, 4), Degrees(tensor=8, stages=4), Scope.STAGE, {1: 2}),
        ((8, 4), Degrees(stages=8), Scope.STAGE, {0: 2}),
        ((8, 4), Degrees(experts=16), Scope.EXPERT, {0: 8, 1: 2}),
        ((8, 4), Degrees(experts=16), Scope.REPLICA, {1: 2}),
        ((8, 4), Degrees(experts=64), Scope.EXPERT, {0: 8, 1: 4}),
        ((8, 4), Degrees(experts=64), Scope.REPLICA, {}),
        ((4, 3), Degrees(experts=8), Scope.EXPERT, {0: 4}),
        ((4, 3), Degrees(experts=8), Scope.REPLICA, {1: 3}),
        ((4, 2, 2), Degrees(tensor=8), Scope.TENSOR, {0: 4, 1: 2}),
    ],
)
def test_groups_cut_dimensions(
    npus: tuple[int, ...], degrees: Degrees, scope: Scope, sizes: dict[int, int]
) -> None:
    group = members(_dims(*npus), degrees, scope)
    cut = {i: dim.npus for i, dim in zip(group.indices, group.dimensions, strict=True)}
    assert cut == sizes


@pytest.mark.parametrize(
    ("npus", "degrees", "scope"),
    [
        ((6,), Degrees(tensor=4), Scope.TENSOR),
        ((6, 4), Degrees(tensor=8), Scope.TENSOR),
        ((4,), Degrees(tensor=8), Scope.TENSOR),
        ((6, 4), Degrees(tensor=8), Scope.DATA),
        ((6, 4), Degrees(experts=8), Scope.EXPERT),
    ],
)
def test_groups_that_do_not_fit_are_refused(
    npus: tuple[int, ...], degrees: Degrees, scope: Scope
) -> None:
    with pytest.raises(BackendSettingError, match=r"give the job a multiple|choose degrees"):
        members(_dims(*npus), degrees, scope)
