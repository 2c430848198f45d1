"""Bytes that each way of dividing a model sends, compared with closed forms.

Notation: N GPUs, S bytes of parameters, b samples, s positions, h hidden, w bytes per element.
An all-reduce of S bytes sends 2 (N - 1) / N S per GPU. A gather, a scatter and an all-to-all send
(N - 1) / N S each. FSDP replaces the all-reduce of a layer by a gather in the forward pass, and a
gather and a scatter in the backward pass. Experts add all-to-alls (Ryu and Eo, section III and
table I).
"""

import math

import pytest

from artist.astra.model.analytical import AnalyticalBackend
from artist.errors import BackendSettingError
from artist.estimates.divided.layer_wise import LayerwiseBackend
from artist.estimates.query import Dimension, Estimate, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Collective, Layer, Scope, quantised
from artist.workload.models import parameters, workload

# As large as the size of a message allows: what chunks and whole bytes round is below this.
ROUNDING = 1e-3


def _estimate(spec: str, *npus: int, all_to_all: str = "direct", profile: bool = False) -> Estimate:
    dims = tuple(Dimension(Topology.SWITCH, n, 100.0, 500.0) for n in npus)
    rings = ("ring",) * len(dims)
    system = SystemSettings(rings, rings, rings, (all_to_all,) * len(dims))
    query = LatencyQuery(quantised(workload(spec)), dims, system)
    return LayerwiseBackend(AnalyticalBackend()).estimate(query, profile=profile)


def _sent(spec: str, *npus: int) -> tuple[int, ...]:
    sent = _estimate(spec, *npus).bytes_per_dimension
    assert sent is not None
    return sent


def _whole(layers: tuple[Layer, ...], collective: Collective, scope: Scope) -> int:
    return sum(
        phase.comm_bytes
        for layer in layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
        if phase.collective is collective and phase.scope is scope
    )


@pytest.mark.parametrize("gpus", [2, 8, 16])
def test_data_parallel_traffic(gpus: int) -> None:
    expected = 2 * (gpus - 1) / gpus * 4 * parameters("gpt2")
    assert _sent("gpt2", gpus) == (pytest.approx(expected, rel=ROUNDING),)


@pytest.mark.parametrize("gpus", [2, 8, 16])
def test_fsdp_sends_half_as_much_again(gpus: int) -> None:
    expected = 3 * (gpus - 1) / gpus * 4 * parameters("gpt2")
    (sent,) = _sent("gpt2@parallel=fsdp", gpus)
    assert sent == pytest.approx(expected, rel=ROUNDING)
    assert sent == pytest.approx(1.5 * _sent("gpt2", gpus)[0], rel=ROUNDING)


def test_fsdp_gathers_and_scatters_block_by_block() -> None:
    layers = workload("gpt2@parallel=fsdp").layers
    assert [layer.name for layer in layers] == ["embeddings", *(f"h{i}" for i in range(12)), "head"]
    for layer in layers:
        assert layer.forward.collective is Collective.ALL_GATHER
        assert layer.input_grad.collective is Collective.ALL_GATHER
        assert layer.weight_grad.collective is Collective.REDUCE_SCATTER
    block = 12 * 768**2 + 13 * 768
    assert {layer.forward.comm_bytes for layer in layers[1:13]} == {4 * block}


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_moe_traffic(gpus: int) -> None:
    """Six blocks with four all-to-alls of b s h w each; all else is all-reduced."""
    journeys = 6 * 4 * (8 * 1024 * 768 * 4)
    layers = workload("gpt2-moe").layers
    assert _whole(layers, Collective.ALL_TO_ALL, Scope.EXPERT) == journeys
    expert = 2 * 768 * 3072 + 3072 + 768
    shared = 4 * (parameters("gpt2-moe") - 6 * 8 * expert)
    assert _whole(layers, Collective.ALL_REDUCE, Scope.DATA) == shared
    # With 8 GPUs or fewer no expert has a replica.
    share = (gpus - 1) / gpus
    assert _sent("gpt2-moe", gpus) == (pytest.approx(share * (journeys + 2 * shared), rel=0.02),)


def test_replicas_of_an_expert_reduce_its_gradient() -> None:
    """16 GPUs, 8 experts: two of each expert, one per GPU, between the machines."""
    expert = 4 * (2 * 768 * 3072 + 3072 + 768)
    inner, outer = _sent("gpt2-moe", 8, 2)
    journeys = 6 * 4 * (8 * 1024 * 768 * 4)
    shared = 4 * parameters("gpt2-moe") - 6 * 8 * expert
    # localBWAware: what an all-reduce sends outside is an eighth, there and back half each.
    assert outer == pytest.approx(6 * expert + shared / 8, rel=0.02)
    assert inner == pytest.approx(7 / 8 * (journeys + 2 * shared), rel=0.02)


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_tensor_parallel_traffic(tensor: int) -> None:
    """Two all-reduces of b s h w per block and direction, one each for the vocabulary."""
    layers = workload(f"gpt2@tensor={tensor}").layers
    activation = 8 * 1024 * 768 * 4
    assert _whole(layers, Collective.ALL_REDUCE, Scope.TENSOR) == (4 * 12 + 2) * activation
    gradients = _whole(layers, Collective.ALL_REDUCE, Scope.DATA)
    assert gradients == pytest.approx(4 * parameters("gpt2") / tensor, rel=ROUNDING)
    # The group is the whole job: no gradient is sent.
    share = 2 * (tensor - 1) / tensor
    assert _sent(f"gpt2@tensor={tensor}", tensor) == (
        pytest.approx(share * (4 * 12 + 2) * activation, rel=ROUNDING),
    )


def test_tensor_groups_stay_inside_and_replicas_meet_outside() -> None:
    inner, outer = _sent("gpt2@tensor=8", 8, 4)
    assert inner == pytest.approx(2 * 7 / 8 * 50 * 8 * 1024 * 768 * 4, rel=ROUNDING)
    assert outer == pytest.approx(2 * 3 / 4 * 4 * parameters("gpt2") / 8, rel=0.01)


def test_stages_send_activations_to_their_neighbour() -> None:
    """Four stages of three blocks; over each of three borders b s h w on and back once."""
    layers = workload("gpt2@stages=4").layers
    assert layers[-1].name == "stage.border"
    crossing = 2 * 8 * 1024 * 768 * 4
    assert _sent("gpt2@stages=4", 4) == (pytest.approx(3 / 4 * crossing, rel=ROUNDING),)
    held = _whole(layers, Collective.ALL_REDUCE, Scope.DATA)
    assert held == pytest.approx(4 * parameters("gpt2") / 4, rel=ROUNDING)


def test_a_pipeline_idles_while_it_fills() -> None:
    def compute_ns(spec: str) -> int:
        return _estimate(spec, 4).compute_ns

    one, many = compute_ns("gpt2@stages=4"), compute_ns("gpt2@stages=4,microbatches=8")
    assert one / many == pytest.approx((1 + 3 / 1) / (1 + 3 / 8), rel=0.01)


def test_gpt3_on_its_384_gpus() -> None:
    """96 GPUs hold a replica: 174.6 billion parameters over 8 x 12, four replicas."""
    layers = workload("gpt3").layers  # of all 12 stages
    held = _whole(layers, Collective.ALL_REDUCE, Scope.DATA) / 12
    assert held == pytest.approx(2 * parameters("gpt3") / 96, rel=0.01)
    estimate = _estimate("gpt3", 8, 48)
    # Six operations per parameter and token, at the share of the peak that GPUs reach; what
    # attention adds and the pipeline idles makes up the rest.
    flops = 6 * 174.6e9 * 2048 * 1536 / 384
    assert 0.85 < flops / (estimate.compute_ns * 1e-9) / (0.44 * 312e12) < 1
    with pytest.raises(BackendSettingError, match=r"tensor=8, pipeline=12 do not divide 8"):
        _estimate("gpt3", 8)


def test_a_profile_adds_up_to_what_is_sent() -> None:
    estimate = _estimate("gpt2@parallel=fsdp", 4, 2, profile=True)
    assert estimate.profile is not None
    assert estimate.bytes_per_dimension is not None
    for dimension, sent in enumerate(estimate.bytes_per_dimension):
        bursts = [burst for burst in estimate.profile if burst.dimension == dimension]
        assert sum(burst.size_bytes for burst in bursts) == sent
        assert max(burst.offset_ns + burst.duration_ns for burst in bursts) <= estimate.finish_ns


@pytest.mark.parametrize("spec", ["gpt2@parallel=fsdp", "gpt2-moe", "gpt2@tensor=2"])
def test_an_iteration_is_at_least_its_compute(spec: str) -> None:
    estimate = _estimate(spec, 4, 2)
    assert estimate.finish_ns >= estimate.compute_ns > 0
    assert math.isfinite(estimate.comm_ratio)
