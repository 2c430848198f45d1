"""Are the times of the roofline model those of calculations by hand?"""

import pytest

from artist.workload.architectures.operators import Conv, Image, OperatorKind, linear, lookup
from artist.workload.gpus import GPU_NAMES, Precision, assumed_in_words, gpu, gpu_of
from artist.workload.models import workload

A100 = gpu("a100", Precision.TF32, roofline=True)


def test_a_large_matrix_is_bound_by_arithmetic() -> None:
    layer = linear("fc", 4096, 4096, rows=2048)
    flops = 2 * 2048 * 4096**2 * 4
    assert A100.compute_us(layer, 4) == pytest.approx(flops / (156e12 * 0.291) * 1e6)


def test_a_depthwise_convolution_is_bound_by_memory() -> None:
    layer = Conv(64, kernel=3, groups=64).operator("d", Image(64, 112))
    elements = 32 * 2 * 64 * 112**2 + 64 * 9 + 128
    assert A100.compute_us(layer, 32) == pytest.approx(4 * elements / 2.039e12 * 1e6)


def test_a_lookup_reads_and_writes_its_rows_alone() -> None:
    layer = lookup("table", 10**6, 16)
    assert layer.kind is OperatorKind.LOOKUP
    # An index in, a row read, a row written.
    assert A100.compute_us(layer, 100) == pytest.approx(4 * 100 * (1 + 16 + 16) / 2.039e12 * 1e6)


def test_without_the_roofline_memory_takes_no_time() -> None:
    plain = gpu("a100", Precision.TF32, roofline=False)
    assert plain.compute_us(lookup("table", 10**6, 16), 100) == 0
    layer = linear("fc", 1024, 1024)
    assert plain.compute_us(layer, 1) < A100.compute_us(layer, 1)


@pytest.mark.parametrize("precision", [Precision.TF32, Precision.BF16])
def test_newer_gpus_are_faster(precision: Precision) -> None:
    layers = [linear("a", 4096, 4096, rows=2048), linear("b", 4096, 4096), lookup("c", 9, 9)]
    for layer in layers:
        times = [gpu(x, precision, roofline=True).compute_us(layer, 8) for x in GPU_NAMES]
        assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("kinds", "gpu_name"),
    [
        (["H100"], "h100"),
        (["a100-40gb", "a100-80gb"], "a100"),
        (["a100", "h100"], "a100"),
        (["k80"], "a100"),
        ([], "a100"),
    ],
)
def test_models_compute_on_the_one_kind_of_gpu_that_is_known(
    kinds: list[str], gpu_name: str
) -> None:
    assert gpu_of(kinds) == gpu_name
    told = assumed_in_words(kinds)
    assert bool(told) == any(not kind.casefold().startswith(gpu_name) for kind in kinds)


def samples_per_s(model: str, batch: int) -> float:
    passes = (
        one
        for layer in workload(f"{model},batch={batch}").layers
        for one in (layer.forward, layer.input_grad, layer.weight_grad)
    )
    return batch / sum(one.compute_us for one in passes) * 1e6


@pytest.mark.parametrize(
    ("model", "batch", "measured"),
    [
        ("resnet50@gpu=v100", 256, 367),
        ("resnet50@gpu=v100,precision=bf16", 256, 1200),
        ("bert-large@gpu=v100", 8, 12),
        ("bert-large@gpu=v100,precision=bf16", 16, 52),
        # The slopes of measured steps: 180 images in .776 s, 8 sequences in .466 s.
        ("resnet50@gpu=t4,precision=bf16", 200, 180 / 0.7761),
        ("bert-base@gpu=t4", 12, 8 / 0.4662),
    ],
)
def test_a_gpu_reaches_the_throughput_that_its_shares_come_from(
    model: str, batch: int, measured: float
) -> None:
    assert samples_per_s(model, batch) == pytest.approx(measured, rel=0.02)


def test_a_v100_is_near_what_other_authors_measured() -> None:
    """Gavel's authors, on Google Cloud, in FP32 (`astra_configs/speeds/gavel.yaml`): steps/s.

    None of them is fitted. Small batches take longer, since a step has costs at any batch.
    """
    measured = {("resnet50", 128): 2.497, ("transformer", 64): 8.618, ("cyclegan", 1): 4.426}
    for (model, batch), steps_per_s in measured.items():
        predicted = samples_per_s(f"{model}@gpu=v100", batch) / batch
        assert predicted == pytest.approx(steps_per_s, rel=0.16)


def test_gpus_differ_in_a_workload() -> None:
    def total_us(name: str) -> float:
        return sum(layer.forward.compute_us for layer in workload(name).layers)

    times = [total_us(f"gpt2@gpu={name}") for name in GPU_NAMES]
    assert times == sorted(times, reverse=True)
    a100 = GPU_NAMES.index("a100")
    assert times[a100] / times[a100 + 1] == pytest.approx(494.7 / 156, rel=0.35)
