"""Does rounding to whole microseconds keep the times of a workload, or of a job's graph?"""

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_strategies import workloads

from artist.workload.graph import GraphNode, JobGraph, NodeAction
from artist.workload.layers import Layer, Parallelism, Phase, Workload, quantised


def in_execution_order(workload: Workload) -> list[float]:
    forward = [layer.forward.compute_us for layer in workload.layers]
    backward = [
        us
        for layer in reversed(workload.layers)
        for us in (layer.weight_grad.compute_us, layer.input_grad.compute_us)
    ]
    return forward + backward


@given(workload=workloads)
def test_quantised_times_are_whole_and_right_at_every_moment(workload: Workload) -> None:
    exact, whole = in_execution_order(workload), in_execution_order(quantised(workload))
    assert all(us >= 0 and us == int(us) for us in whole)
    for end in range(len(exact) + 1):
        assert abs(math.fsum(whole[:end]) - math.fsum(exact[:end])) <= 0.5 + 1e-6


@given(workload=workloads)
def test_quantised_changes_times_only_and_is_done_once(workload: Workload) -> None:
    once = quantised(workload)
    assert quantised(once) == once
    for before, after in zip(workload.layers, once.layers, strict=True):
        assert before.name == after.name
        assert before.weight_grad.comm_bytes == after.weight_grad.comm_bytes
        assert before.forward.collective is after.forward.collective


def test_many_small_layers_keep_their_total() -> None:
    tiny = Layer("x", Phase(0.3), Phase(0.3), Phase(0.3))
    whole = quantised(Workload("w", Parallelism.DATA, (tiny,) * 100))
    assert sum(in_execution_order(whole)) == 90


def computing(*times_us: int) -> tuple[GraphNode, ...]:
    return tuple(GraphNode(NodeAction.COMPUTE, compute_us=us) for us in times_us)


@pytest.mark.parametrize("scale", [0.4, 0.5, 1.4, 1.5])
def test_many_small_nodes_of_a_graph_keep_their_total(scale: float) -> None:
    graph = JobGraph("g", (computing(*[1] * 1000), computing(*[1] * 999, 3)))
    scaled = graph.scaled(scale)
    for gpu in (0, 1):  # each rounds for itself
        assert scaled.compute_ns(gpu) == pytest.approx(scale * graph.compute_ns(gpu), abs=1000)


@given(
    times_us=st.lists(st.integers(0, 10_000), min_size=1, max_size=50),
    scale=st.floats(0.01, 10),
)
def test_nodes_of_a_scaled_graph_end_right_at_every_moment(
    times_us: list[int], scale: float
) -> None:
    (program,) = JobGraph("g", (computing(*times_us),)).scaled(scale).programs
    exact, whole = accumulate(times_us), accumulate(node.compute_us for node in program)
    for one, other in zip(exact, whole, strict=True):
        assert abs(scale * one - other) <= 0.5 + 1e-6


def test_a_graph_is_scaled_program_by_program_and_elsewhere_stays() -> None:
    send = GraphNode(NodeAction.SEND, after=(0,), size_bytes=8, peer=1, tag=3)
    same = (*computing(1, 1), send)
    graph = JobGraph("g", (same, computing(1, 0, 1), same), {1: (0, 2)})
    assert graph.scaled(1.0) == graph
    scaled = graph.scaled(1.4)
    assert scaled.programs[0] is scaled.programs[2]
    assert scaled.programs[0] == (*computing(1, 2), send)
    # Each program begins without a remainder, and nothing stays nothing.
    assert scaled.programs[1] == computing(1, 0, 2)
    assert scaled.communicators == graph.communicators
    assert scaled != graph
