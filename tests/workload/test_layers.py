"""Rounding a workload to whole microseconds."""

import math

from hypothesis import given
from workload_strategies import workloads

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
