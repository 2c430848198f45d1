"""Do the nodes of small iterations run when schedules made by hand say so?"""

import pytest

from artist.errors import ConfigError
from artist.workload.iteration_graph import IterationNode, nodes, schedule
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload


def _durations(node: IterationNode) -> float:
    return node.compute_us if node.collective is None else float(node.comm_bytes)


def _ends(workload: Workload) -> dict[str, float]:
    graph = nodes(workload)
    return {
        node.name: span.end for node, span in zip(graph, schedule(graph, _durations), strict=True)
    }


def _layer(name: str, forward: int = 0, input_grad: int = 0, weight_grad: int = 0) -> Layer:
    """10 us forward, 20 input gradient, 30 weight gradient; collectives of these lengths."""

    def phase(compute: float, length: int) -> Phase:
        return Phase(compute, Collective.ALL_REDUCE if length else Collective.NONE, length)

    return Layer(name, phase(10, forward), phase(20, input_grad), phase(30, weight_grad))


def test_data_parallel_by_hand() -> None:
    layers = (_layer("a", weight_grad=100), _layer("b", weight_grad=100))
    ends = _ends(Workload("m", Parallelism.DATA, layers))
    assert ends == {
        "a forward": 10,
        "b forward": 20,
        "b weight gradient": 50,
        "b gradient": 150,
        "b input gradient": 70,
        "a weight gradient": 100,
        "a gradient": 250,  # behind b's: one collective at a time
    }


def test_fsdp_gathers_one_layer_ahead_by_hand() -> None:
    layers = tuple(_layer(x, forward=15, input_grad=15, weight_grad=15) for x in "abc")
    ends = _ends(Workload("m", Parallelism.FSDP, layers))
    # a and b are gathered at once; c waits until a has been computed.
    assert (ends["a gather"], ends["a forward"], ends["b gather"]) == (15, 25, 30)
    assert (ends["b forward"], ends["c gather"], ends["c forward"]) == (40, 45, 55)
    # Backwards the same: c and b again at once, a when c has been computed.
    assert (ends["c gather again"], ends["c weight gradient"]) == (70, 100)
    assert (ends["b gather again"], ends["c input gradient"]) == (85, 120)
    assert (ends["c gradient"], ends["b weight gradient"]) == (135, 150)
    assert ends["a gather again"] == 150
    assert ends["a gradient"] == max(ends.values())


def test_layerwise_blocks_on_outputs_but_not_on_gradients_by_hand() -> None:
    layers = (_layer("a", forward=5), _layer("b", input_grad=7, weight_grad=100))
    ends = _ends(Workload("m", Parallelism.LAYERWISE, layers))
    assert ends == {
        "a forward": 10,
        "a output": 15,
        "b forward": 25,
        "b input gradient": 45,
        "b input": 52,
        "b weight gradient": 75,
        "b gradient": 175,
        "a weight gradient": 105,
    }


def test_a_micro_workload_is_no_iteration() -> None:
    with pytest.raises(ConfigError, match="no training iteration"):
        nodes(Workload("m", Parallelism.MICRO, (_layer("a"),)))
