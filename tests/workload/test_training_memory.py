"""Is the least memory of a job what ZeRO's section 3.1 counts?"""

from __future__ import annotations

import pytest

from artist.run.training_memory import does_not_fit, least_memory_bytes
from artist.workload.models import parameters, workload


def weights_bytes(model: str) -> int:
    """Those of the whole model: its gradient, where nothing is divided."""
    return sum(layer.weight_grad.comm_bytes for layer in workload(model).layers)


BF16 = weights_bytes("gpt2-xl@precision=bf16")
PARAMETERS = BF16 // 2


@pytest.mark.parametrize(
    ("settings", "gpus", "bytes_per_parameter"),
    [
        ("", 1, 2 + 2 + 12),
        ("", 4, 2 + 2 + 3),
        (",sharded=zero1", 4, 2 + 2 + 3),
        (",sharded=zero2", 4, 2 + 0.5 + 3),
        (",sharded=zero3", 4, 4),
        (",parallel=fsdp", 4, 4),
    ],
)
def test_what_replicas_share(settings: str, gpus: int, bytes_per_parameter: float) -> None:
    found = least_memory_bytes(f"gpt2-xl@precision=bf16{settings}", gpus)
    assert found == pytest.approx(bytes_per_parameter * PARAMETERS)


def test_in_fp32_sgd_keeps_a_momentum() -> None:
    model = "resnet50"
    assert least_memory_bytes(model, 1) == weights_bytes(model) * 3
    assert least_memory_bytes(model, 2) == weights_bytes(model) * 2.5


def test_tensor_groups_divide_and_the_fullest_stage_counts() -> None:
    """One replica: 16 bytes a parameter, on as many GPUs as the axes have."""
    whole = 16 * PARAMETERS
    tensor = least_memory_bytes("gpt2-xl@precision=bf16,tensor=4", 4)
    assert tensor == pytest.approx(whole / 4, rel=0.01)
    # 48 blocks on four stages; the last one has the head too, and the first the embeddings.
    stages = least_memory_bytes("gpt2-xl@precision=bf16,pipeline=4", 4)
    assert whole / 4 < stages < whole / 4 + 16 * 90e6


@pytest.mark.parametrize("model", ["mixtral-8x7b", "mixtral-8x7b@expert=8"])
def test_experts_are_spread(model: str) -> None:
    """46.7 billion parameters, 1.6 of them of no expert (arXiv:2401.04088)."""
    others, experts = 1.6e9, 45.1e9 / 8
    found = least_memory_bytes(model, 16)
    assert found == pytest.approx((4 + 12 / 16) * others + (4 + 12 / 2) * experts, rel=0.01)


@pytest.mark.parametrize("gpus", [1, 2, 4, 6])
def test_gpus_hold_as_many_experts_as_it_takes_under_any_name(gpus: int) -> None:
    plain, named = (least_memory_bytes(f"mixtral-8x7b{x}", gpus) for x in ("", "@recompute=full"))
    assert named == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("model", ["mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b", "bert-large"])
def test_one_gpu_holds_everything(model: str) -> None:
    """Also all experts, of which GPUs hold as many as it takes where there are fewer GPUs."""
    each = 16 if model != "bert-large" else 12
    assert least_memory_bytes(model, 1) == pytest.approx(each * parameters(model), rel=1e-6)
    assert least_memory_bytes(model, 4) < least_memory_bytes(model, 1)


def test_the_largest_gpu_of_the_cluster_decides_unless_the_name_says_one() -> None:
    assert "take at least 128 GB of each, and an H100 has 80 GB" in does_not_fit(
        "llama3-8b", 1, ["a100", "h100"][::-1]
    )
    assert does_not_fit("llama3-8b", 1, ["h100", "h200"]) == ""
    assert "an A100 has 80 GB" in does_not_fit("llama3-8b@gpu=a100", 1, ["h200"])
    assert does_not_fit("llama3-8b", 2, ["h100"]) == ""
