"""Does the hidden share take away what communication can hide behind, and nothing else?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artist.cluster.fabric import load_fabric
from artist.estimates.latency_service import single_gpu_ns
from artist.estimates.query_from_text import on_placement
from artist.run import open_backend
from artist.workload.gradients import with_hidden_share
from artist.workload.models import workload

ANALYTICAL = open_backend("analytical")
SHARES = st.floats(0, 1)


def exposed_ns(model: str, share: float, placement: str = "4,4") -> int:
    asked = on_placement(workload(model), placement, load_fabric("t4"), {"hidden_share": share})
    return asked.answer(ANALYTICAL).estimate.exposed_comm_ns


@given(SHARES)
def test_compute_time_and_bytes_stay(share: float) -> None:
    plain = workload("resnet50")
    changed = with_hidden_share(plain, share)
    assert single_gpu_ns(changed) == pytest.approx(single_gpu_ns(plain), rel=1e-9)
    sent = [layer.weight_grad.comm_bytes for layer in changed.layers]
    assert sent == [layer.weight_grad.comm_bytes for layer in plain.layers]


def test_a_share_of_1_changes_nothing() -> None:
    assert with_hidden_share(workload("resnet50"), 1.0) is workload("resnet50")


def test_with_a_share_of_0_all_communication_is_exposed() -> None:
    """97.5 MiB of gradients in one ring of 8 GPUs at .54 GiB/s and 20 us, in 5 buckets."""
    fabric = load_fabric("t4").levels[1]
    size_gib = sum(x.weight_grad.comm_bytes for x in workload("resnet50").layers) / 2**30
    ring_s = 2 * 7 / 8 * size_gib / fabric.bandwidth_gib_per_s / fabric.pair_share
    latency_s = 5 * 14 * fabric.latency_ns / 1e9
    found_s = exposed_ns("resnet50", 0.0) / 1e9
    assert found_s == pytest.approx(ring_s + latency_s, rel=0.01)


@given(SHARES, SHARES)
def test_more_hidden_is_less_exposed(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert exposed_ns("resnet50", high) <= exposed_ns("resnet50", low) + 50_000


@pytest.mark.parametrize("name", ["gpt2@tensor=2", "gpt2@parallel=fsdp"])
def test_other_parallelisms_stay_as_they_are(name: str) -> None:
    assert with_hidden_share(workload(name), 0.5) is workload(name)
