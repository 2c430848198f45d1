"""Is the least memory of a job what ZeRO's section 3.1 counts, with Korthikanti's activations?"""

from __future__ import annotations

import pytest

from artist.run.training_memory import does_not_fit, least_memory
from artist.workload.models import parameters, settings, workload


def states_bytes(model: str, gpus: int) -> float:
    """All but activations."""
    return least_memory(model, gpus).states


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
    found = states_bytes(f"gpt2-xl@precision=bf16{settings}", gpus)
    assert found == pytest.approx(bytes_per_parameter * PARAMETERS)


def test_in_fp32_sgd_keeps_a_momentum() -> None:
    model = "resnet50"
    assert states_bytes(model, 1) == weights_bytes(model) * 3
    assert states_bytes(model, 2) == weights_bytes(model) * 2.5


def test_tensor_groups_divide_and_the_fullest_stage_counts() -> None:
    """One replica: 16 bytes a parameter, on as many GPUs as the axes have."""
    whole = 16 * PARAMETERS
    tensor = states_bytes("gpt2-xl@precision=bf16,tensor=4", 4)
    assert tensor == pytest.approx(whole / 4, rel=0.01)
    # 48 blocks on four stages; the last one has the head too, and the first the embeddings.
    stages = states_bytes("gpt2-xl@precision=bf16,pipeline=4", 4)
    assert whole / 4 < stages < whole / 4 + 16 * 90e6


@pytest.mark.parametrize("model", ["mixtral-8x7b", "mixtral-8x7b@expert=8"])
def test_experts_are_spread(model: str) -> None:
    """46.7 billion parameters, 1.6 of them of no expert (arXiv:2401.04088)."""
    others, experts = 1.6e9, 45.1e9 / 8
    found = states_bytes(model, 16)
    assert found == pytest.approx((4 + 12 / 16) * others + (4 + 12 / 2) * experts, rel=0.01)


@pytest.mark.parametrize("gpus", [1, 2, 4, 6, 12])
def test_gpus_hold_as_many_experts_as_it_takes_under_any_name(gpus: int) -> None:
    plain, named = (states_bytes(f"mixtral-8x7b{x}", gpus) for x in ("", "@recompute=full"))
    assert named == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("model", ["mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b", "bert-large"])
def test_one_gpu_holds_everything(model: str) -> None:
    """It holds all experts as well: fewer GPUs than experts hold several each."""
    each = 16 if model != "bert-large" else 12
    assert states_bytes(model, 1) == pytest.approx(each * parameters(model), rel=1e-6)
    assert states_bytes(model, 4) < states_bytes(model, 1)


def test_the_largest_gpu_of_the_cluster_decides_unless_the_name_says_one() -> None:
    assert (
        "take at least 141 GB of each (12 GB of activations, 1 sample at a time), and an H100"
        in (does_not_fit("llama3-8b", 1, ["a100", "h100"][::-1]))
    )
    assert does_not_fit("llama3-8b", 1, ["h100", "h200"]) == ""
    assert "an A100 has 80 GB" in does_not_fit("llama3-8b@gpu=a100", 1, ["h200"])
    assert does_not_fit("llama3-8b", 2, ["h100"]) == ""


def activations(model: str, gpus: int = 1) -> float:
    return least_memory(model, gpus).activations


GPT3 = 34 * 2048 * 12_288 / 8
"""Bytes that a block of GPT-3 keeps on each of 8 tensor ranks (arXiv:2205.05198, equation 6)."""


@pytest.mark.parametrize(
    ("changes", "gpus", "blocks"),
    [
        ("", 96, 8 * 12),  # 8 blocks on the first of 12 stages, for 12 microbatches
        ("recompute=selective", 96, 96),
        ("pipeline=8", 64, 96),
        ("pipeline=1", 8, 96),
        ("microbatches=4,batch=4", 96, 8 * 4),
        ("microbatches=192", 96, 2 * 96),  # of two sequences each
        ("sequence=1024", 96, 96 / 2),
        ("sequence_parallel=true", 96, 96),
        ("context=2", 192, 96 / 2),
        ("schedule=gpipe", 96, 8 * 384),
        # L (1 + (p - 1) / (p v)) blocks with v chunks per stage (section 4.2.3).
        ("pipeline=8,schedule=interleaved,interleave=3", 64, 96 * (1 + 7 / 24)),
        ("pipeline=8,schedule=interleaved,interleave=3,batch=8,microbatches=8", 64, 96),
        ("recompute=full", 96, 96 * 2 / 34),
        ("pipeline=1,stages=12", 96, 96),
    ],
)
def test_gpt3_keeps_what_the_closed_forms_say(changes: str, gpus: int, blocks: float) -> None:
    assert activations(f"gpt3-175b@{changes}".rstrip("@"), gpus) == pytest.approx(blocks * GPT3)


def test_gpt3_keeps_10_gb_on_a_gpu() -> None:
    assert activations("gpt3-175b", 96) == pytest.approx(10.27e9, rel=1e-3)


@pytest.mark.parametrize(
    ("model", "of_token"),
    [
        # 12 blocks of 16 elements of 4 bytes, and two masks.
        ("gpt2", 12 * 768 * (16 * 4 + 2)),
        ("gpt2@precision=bf16", 12 * 768 * 34),
        ("bert-base", 12 * 768 * (16 * 4 + 2)),
        # Six of twelve blocks have a router, and copies of tokens for the experts.
        ("gpt2-moe@precision=bf16", 768 * (12 * 34 + 6 * 2)),
        # h = q = k = 4,096, i = 11,008 in 32 blocks.
        ("llama2-7b", 32 * 4 * (3 * 4096 + 11_008)),
        ("llama2-7b@precision=fp8,timing=fitted,gpu=h100", 32 * 2 * (3 * 4096 + 11_008)),
        ("llama2-7b@recompute=full", 32 * 2 * 4096),
        # h = q = 4,096, k = 1,024 in 32 blocks; a token has two copies, each with i = 14,336.
        ("mixtral-8x7b", 32 * (4 * (2 * 4096 + 1024) + 2 * 2 * (4096 + 2 * 14_336))),
        # h = 7,168, 16,384 values in 61 blocks, of which three have i = 18,432 and 58 have nine
        # experts of i = 2,048, of which eight get copies of a token.
        (
            "deepseek-v3",
            61 * (4 * 7168 + 2 * 16_384) + 3 * 4 * 18_432 + 58 * (9 * 4 * 2048 + 8 * 2 * 7168),
        ),
        ("resnet50", 0),
        ("transformer-xl", 0),
    ],
)
def test_what_blocks_keep_of_a_token(model: str, of_token: int) -> None:
    chosen = settings(model)
    tokens = chosen.batch * (chosen.sequence or 1)
    assert activations(model, chosen.experts or 1) == pytest.approx(tokens * of_token)


def test_experts_share_their_tokens_among_tensor_ranks() -> None:
    whole, halves = (activations(f"mixtral-8x7b@expert=4,tensor={tensor}", 8) for tensor in (1, 2))
    assert halves == pytest.approx(whole / 2)


def test_activations_alone_may_be_too_many_and_what_keeps_fewer_is_named() -> None:
    told = does_not_fit("gpt2-xl@batch=32", 1, ["h100"])
    assert told.startswith(
        "weights, gradients, optimizer states and activations of gpt2-xl@batch=32 on 1 GPU take "
        "at least 185 GB of each (166 GB of activations, 32 samples at a time), and an H100 has 80"
    )
    assert "(recompute=full, microbatches=, batch=)" in told
    for fewer in ("microbatches=8", "recompute=full", "sequence=128"):
        assert does_not_fit(f"gpt2-xl@batch=32,{fewer}", 1, ["h100"]) == ""


def test_the_fullest_stage_counts_states_and_activations_together() -> None:
    """The first stage keeps more activations, the last one has the head."""
    held = least_memory("llama3-70b@tensor=4,pipeline=8,batch=128,microbatches=128", 64)
    assert held.total == held.states + held.activations
    kept = 80 * 4096 * 4 * (2 * 8192 + 1024 + 28_672) / 4
    assert held.activations == pytest.approx(kept)
