"""Times of the roofline model, compared with calculations by hand."""

import pytest

from artist.workload.architectures.operators import Conv, Image, OperatorKind, linear, lookup
from artist.workload.gpus import GPU_NAMES, Precision, gpu
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


def test_gpus_differ_in_a_workload() -> None:
    def total_us(name: str) -> float:
        return sum(layer.forward.compute_us for layer in workload(name).layers)

    times = [total_us(f"gpt2@gpu={name}") for name in GPU_NAMES]
    assert times == sorted(times, reverse=True)
    assert times[0] / times[1] == pytest.approx(494.7 / 156, rel=0.35)
