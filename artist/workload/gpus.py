"""GPUs: the time of one pass of an operator, by a roofline model.

    flops = 2 macs batch         bytes = width (batch (inputs + outputs) + parameters)
    time  = max(flops / (peak x share), bytes / memory bandwidth)

`macs`, `inputs`, `outputs` and `parameters` are those of the operator, `width` is the size of an
element in bytes. The three passes (forward, input gradient, weight gradient) take the same time.
A table lookup reads only the rows that it needs. The memory term uses the full bandwidth of the
data sheet and ignores caches. Without it (`memory_bytes_per_s` None), only arithmetic takes time.

Peaks are dense rates (without sparsity), in the vendor's decimal units. Sources:

- A100: NVIDIA A100 80GB data sheet.
- H100, H200: NVIDIA H100 SXM and H200 SXM data sheets, which state twice the dense rates.
- B200: NVIDIA HGX B200 data sheet (the figures of a baseboard divided by its 8 GPUs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from artist.workload.architectures.operators import Operator, OperatorKind


class Precision(StrEnum):
    """The precision of arithmetic, activations and gradients."""

    TF32 = "tf32"
    BF16 = "bf16"

    @property
    def width(self) -> int:
        """Bytes of an element in memory and on the wire (TF32 is stored as fp32)."""
        return 4 if self is Precision.TF32 else 2


@dataclass(frozen=True, slots=True)
class Gpu:
    """What determines compute times on a GPU.

    `efficiency` is the share of `peak_flops` that training reaches, by kind of operator. `width`
    is the size of an element in bytes.
    """

    name: str
    peak_flops: float
    efficiency: Mapping[OperatorKind, float]
    memory_bytes_per_s: float | None = None
    width: int = 4

    def kernel_us(self, operations: int, moved_bytes: int) -> float:
        """Microseconds of a matrix multiplication of so many FLOPs that moves so many bytes."""
        share = self.efficiency[OperatorKind.MATMUL]
        memory = self.memory_bytes_per_s or float("inf")
        return max(operations / (self.peak_flops * share), moved_bytes / memory) * 1e6

    def compute_us(self, operator: Operator, batch: float) -> float:
        """Microseconds of one pass over a batch of `batch` samples."""
        flops = 2 * operator.macs * batch
        arithmetic_us = (
            flops / (self.peak_flops * self.efficiency[operator.kind]) * 1e6 if flops else 0.0
        )
        if self.memory_bytes_per_s is None:
            return arithmetic_us
        elements = batch * (operator.inputs + operator.outputs)
        if operator.kind is not OperatorKind.LOOKUP:
            elements += operator.parameters
        else:
            elements += batch * operator.outputs  # the rows are read, then written
        return max(arithmetic_us, self.width * elements / self.memory_bytes_per_s * 1e6)


# Shares of the peak in TF32. They follow from the training throughput on one A100-80GB that
# NVIDIA's DeepLearningExamples publish, times the FLOPs counted here: ResNet-50 v1.5 at
# 938 images/s is 23.0 TFLOP/s, BERT-large on SQuAD at 61.5 sequences/s is 45.4 TFLOP/s.
# Depthwise convolutions and small batches reach less; this is left out.
_TF32_SHARES = MappingProxyType({OperatorKind.CONVOLUTION: 0.147, OperatorKind.MATMUL: 0.291})
# Shares of the peak in BF16. Matrix multiplications reach 137 of 312 TFLOP/s when a GPT of
# 1.7 billion parameters is trained (arXiv:2104.04473, table 1). Convolutions are assumed to
# reach the same share as in TF32.
_BF16_SHARES = MappingProxyType({OperatorKind.CONVOLUTION: 0.147, OperatorKind.MATMUL: 0.44})

# (name, peak TF32, peak BF16, memory) in FLOP/s and bytes/s. The shares above were measured on
# the A100 and are assumed for the other GPUs. In practice those reach smaller shares, so
# calibrate before you compare GPUs.
_DATA_SHEETS = {
    "a100": ("NVIDIA A100", 156e12, 312e12, 2.039e12),
    "h100": ("NVIDIA H100 SXM", 494.7e12, 989.4e12, 3.35e12),
    "h200": ("NVIDIA H200 SXM", 494.7e12, 989.4e12, 4.8e12),
    "b200": ("NVIDIA HGX B200", 1100e12, 2250e12, 8.0e12),
}

GPU_NAMES = tuple(_DATA_SHEETS)


def gpu(name: str, precision: Precision, *, roofline: bool) -> Gpu:
    """The GPU with this name, one of `GPU_NAMES`. Without `roofline`, memory takes no time."""
    full, tf32, bf16, memory = _DATA_SHEETS[name]
    is_tf32 = precision is Precision.TF32
    return Gpu(
        name=f"{full}, {precision.upper()}",
        peak_flops=tf32 if is_tf32 else bf16,
        efficiency=_TF32_SHARES if is_tf32 else _BF16_SHARES,
        memory_bytes_per_s=memory if roofline else None,
        width=precision.width,
    )
