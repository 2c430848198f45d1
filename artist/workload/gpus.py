"""GPUs: how long one pass of an operator takes on them.

    flops = 2 macs batch         bytes = width (batch (inputs + outputs) + parameters)
    time  = max(flops / (peak x share), bytes / memory bandwidth)         (a roofline)

for each of forward, input gradient and weight gradient; `width` is that of an element. A
table lookup reads only the rows it needs. The memory term is the bandwidth's upper limit and
leaves caches out; without it (`memory_bytes_per_s` None) time is arithmetic alone.

Peaks are dense (without sparsity); vendors' decimal units. Sources:
A100: NVIDIA A100 80GB data sheet. H100, H200: NVIDIA H100 SXM and H200 SXM data sheets, which
state twice the dense rates. B200: NVIDIA HGX B200 data sheet (a baseboard's figures over 8).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from artist.workload.operators import Kind, Operator


class Precision(StrEnum):
    """Of arithmetic, activations and gradients."""

    TF32 = "tf32"
    BF16 = "bf16"

    @property
    def width(self) -> int:
        """Bytes of an element in memory and on the wire (TF32 is stored as fp32)."""
        return 4 if self is Precision.TF32 else 2


@dataclass(frozen=True, slots=True)
class Gpu:
    """What sets compute times: the peak, the share of it that training reaches, the memory."""

    name: str
    peak_flops: float
    efficiency: Mapping[Kind, float]
    memory_bytes_per_s: float | None = None
    width: int = 4

    def compute_us(self, operator: Operator, batch: float) -> float:
        """Microseconds of one pass over one batch."""
        flops = 2 * operator.macs * batch
        arithmetic_us = (
            flops / (self.peak_flops * self.efficiency[operator.kind]) * 1e6 if flops else 0.0
        )
        if self.memory_bytes_per_s is None:
            return arithmetic_us
        elements = batch * (operator.inputs + operator.outputs)
        if operator.kind is not Kind.LOOKUP:
            elements += operator.parameters
        else:
            elements += batch * operator.outputs  # the rows are read, then written
        return max(arithmetic_us, self.width * elements / self.memory_bytes_per_s * 1e6)


# Shares of the peak in TF32: single-GPU training throughput that NVIDIA's
# DeepLearningExamples publish for the A100-80GB, times the FLOPs counted here: ResNet-50
# v1.5 at 938 images/s is 23.0 TFLOP/s, BERT-large on SQuAD at 61.5 sequences/s is
# 45.4 TFLOP/s. Depthwise convolutions and small batches reach less, which this leaves out.
_TF32_SHARES = MappingProxyType({Kind.CONVOLUTION: 0.147, Kind.MATMUL: 0.291})
# In BF16 matrix multiplications reach 137 of 312 TFLOP/s in training a GPT of 1.7
# billion parameters (arXiv:2104.04473, table 1); convolutions are assumed to reach the
# same share as in TF32.
_BF16_SHARES = MappingProxyType({Kind.CONVOLUTION: 0.147, Kind.MATMUL: 0.44})

# (peak TF32, peak BF16, memory) in FLOP/s and bytes/s. The shares above were measured on
# the A100 and are assumed for the others, which reach less in practice: calibrate.
_DATA_SHEETS = {
    "a100": ("NVIDIA A100", 156e12, 312e12, 2.039e12),
    "h100": ("NVIDIA H100 SXM", 494.7e12, 989.4e12, 3.35e12),
    "h200": ("NVIDIA H200 SXM", 494.7e12, 989.4e12, 4.8e12),
    "b200": ("NVIDIA HGX B200", 1100e12, 2250e12, 8.0e12),
}

GPU_NAMES = tuple(_DATA_SHEETS)


def gpu(name: str, precision: Precision, *, roofline: bool) -> Gpu:
    """A GPU of `GPU_NAMES`; without `roofline` memory takes no time."""
    full, tf32, bf16, memory = _DATA_SHEETS[name]
    is_tf32 = precision is Precision.TF32
    return Gpu(
        name=f"{full}, {precision.upper()}",
        peak_flops=tf32 if is_tf32 else bf16,
        efficiency=_TF32_SHARES if is_tf32 else _BF16_SHARES,
        memory_bytes_per_s=memory if roofline else None,
        width=precision.width,
    )


A100 = gpu("a100", Precision.TF32, roofline=False)
