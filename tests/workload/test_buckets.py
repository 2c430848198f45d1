"""Do buckets hold the gradients that DistributedDataParallel would send together, no later?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.estimates.latency_service import single_gpu_ns
from artist.units import MIB
from artist.workload.gradients import bucketed
from artist.workload.iteration_graph import nodes, schedule
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload
from artist.workload.models import workload


def layer(name: str, mib: float, times_us: tuple[float, float, float] = (1, 1, 1)) -> Layer:
    forward, input_grad, weight_grad = times_us
    reduced = Phase(weight_grad, Collective.ALL_REDUCE, int(mib * MIB))
    return Layer(name, Phase(forward), Phase(input_grad), reduced)


def data(*layers: Layer) -> Workload:
    return Workload("made", Parallelism.DATA, layers)


def sizes_mib(buckets: Workload) -> list[float]:
    """Sizes in the order in which the buckets are sent."""
    return [one.weight_grad.comm_bytes / MIB for one in reversed(buckets.layers)]


def test_the_first_bucket_closes_at_1_mib_and_the_others_at_25() -> None:
    made = data(*(layer(f"l{mib}", mib) for mib in (10, 20, 3, 4, 0.5, 0.5)))
    # Backward: .5 + .5 fill the first bucket; 4 + 3 + 20 fill the second; 10 is left.
    assert sizes_mib(bucketed(made, 25, 1)) == [1, 27, 10]


def test_a_large_gradient_is_not_split() -> None:
    made = data(layer("embeddings", 89), layer("head", 0.25))
    assert sizes_mib(bucketed(made, 25, 1)) == [89.25]


def test_a_bucket_is_ready_when_its_last_gradient_is() -> None:
    made = data(layer("a", 5, (1, 2, 4)), layer("b", 5, (8, 16, 32)), layer("c", 0.1, (64, 9, 7)))
    (only,) = bucketed(made, 25, 25).layers
    assert only.forward.compute_us == 1 + 8 + 64
    assert only.weight_grad.compute_us == 7 + 9 + 32 + 16 + 4
    assert only.input_grad.compute_us == 2


def test_a_bucket_of_nothing_sends_nothing() -> None:
    made = data(Layer("relu", Phase(1), Phase(1), Phase(1)))
    assert bucketed(made, 25, 1) == made


@pytest.mark.parametrize("name", ["gpt2@tensor=2", "gpt2@parallel=fsdp"])
def test_other_parallelisms_stay_as_they_are(name: str) -> None:
    assert bucketed(workload(name), 25, 1) is workload(name)


def test_other_collectives_stay_as_they_are() -> None:
    scattered = Phase(1, Collective.REDUCE_SCATTER, 4)
    made = data(Layer("l", Phase(1), Phase(1), scattered), layer("m", 1))
    assert bucketed(made, 25, 1) is made


times = st.tuples(*[st.integers(1, 50)] * 3)
workloads = st.lists(st.tuples(st.integers(0, 40), times), min_size=1, max_size=8).map(
    lambda rows: data(*(layer(f"l{i}", mib, us) for i, (mib, us) in enumerate(rows)))
)


@given(workloads, st.integers(1, 60))
def test_compute_and_bytes_stay_and_no_gradient_is_sent_early(made: Workload, cap: int) -> None:
    buckets = bucketed(made, cap, 1)
    assert single_gpu_ns(buckets) == single_gpu_ns(made)
    assert sum(sizes_mib(buckets)) == sum(sizes_mib(made))
    ready = _ready_us(made)
    assert _ready_us(buckets) == {one.name: ready[one.name] for one in buckets.layers}


def _ready_us(made: Workload) -> dict[str, float]:
    """When each gradient could be sent, by layer."""
    graph = nodes(made)
    spans = schedule(graph, lambda node: node.compute_us)
    return {
        node.name.removesuffix(" weight gradient"): span.end
        for node, span in zip(graph, spans, strict=True)
        if node.name.endswith(" weight gradient")
    }
