"""GPUs: the time of one pass of an operator, by a roofline model.

    flops = 2 macs batch         bytes = width (batch (inputs + outputs) + parameters)
    time  = max(flops / (peak x share), bytes / memory bandwidth)

`macs`, `inputs`, `outputs` and `parameters` are those of the operator, `width` is the size of an
element in bytes. The three passes (forward, input gradient, weight gradient) take the same time.
A table lookup reads only the rows that it needs. The memory term uses the full bandwidth of the
data sheet and ignores caches. Without it (`memory_bytes_per_s` None), only arithmetic takes time.

Peaks are dense rates (without sparsity), in the vendor's decimal units. A V100 and a T4 have
neither TF32 nor BF16: `tf32` is their FP32, and `bf16` their FP16 on tensor cores. Sources:

- T4: NVIDIA T4 data sheet.
- V100: NVIDIA V100 SXM2 data sheet.
- A100: NVIDIA A100 80GB data sheet.
- H100, H200: NVIDIA H100 SXM and H200 SXM data sheets, which state twice the dense rates.
- B200, B300: NVIDIA HGX B200 and HGX B300 data sheets (a baseboard divided by its 8 GPUs).
- GB200, GB300: NVIDIA GB200 NVL72 and GB300 NVL72 data sheets (a rack divided by its 72 GPUs).

With `timing=fitted`, efficiencies are fitted to published training throughput (`FITTED`). The
inputs and outputs of an operator are moved `passes` more times, for the normalisations, activations
and permutations around it:

    time = max(flops / (peak x share), bytes / memory bandwidth)
           + passes x width batch (inputs + outputs) / memory bandwidth
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from artist.workload.architectures.operators import Operator, OperatorKind


class Precision(StrEnum):
    """The precision of arithmetic, activations and gradients."""

    TF32 = "tf32"
    """FP32 on GPUs that have no TF32."""
    BF16 = "bf16"
    """FP16 on GPUs that have no BF16."""
    FP8 = "fp8"
    """Also MXFP8. Activations and gradients are BF16, as for FP4."""
    NVFP4 = "nvfp4"

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
    experts: float = 1.0
    """Efficiency of experts, whose matrices are small, relative to other matrices."""
    passes: float = 0.0

    def kernel_us(self, operations: int, moved_bytes: int) -> float:
        """Microseconds of a matrix multiplication, from its FLOPs and the bytes that it moves."""
        share = self.efficiency[OperatorKind.MATMUL]
        memory = self.memory_bytes_per_s or float("inf")
        return max(operations / (self.peak_flops * share), moved_bytes / memory) * 1e6

    def compute_us(self, operator: Operator, batch: float) -> float:
        """Microseconds of one pass over a batch of `batch` samples."""
        flops = 2 * operator.macs * batch
        arithmetic_us = 0.0
        if flops:
            share = self.efficiency[operator.kind]
            share *= self.experts if operator.experts > 1 else 1.0
            arithmetic_us = flops / (self.peak_flops * share) * 1e6
        if self.memory_bytes_per_s is None:
            return arithmetic_us
        elements = batch * (operator.inputs + operator.outputs)
        if operator.kind is not OperatorKind.LOOKUP:
            elements += operator.parameters
        else:
            elements += batch * operator.outputs  # the rows are read, then written
        moved_us = self.width * elements / self.memory_bytes_per_s * 1e6
        around = self.passes * batch * (operator.inputs + operator.outputs)
        return max(arithmetic_us, moved_us) + self.width * around / self.memory_bytes_per_s * 1e6


# Shares of the peak of convolutions and of matrices, in TF32 or FP32, and in BF16 or FP16.
# Depthwise convolutions and small batches reach less; this is left out.
#
# A100, TF32: from the training throughput on one A100-80GB that NVIDIA's DeepLearningExamples
# publish, times the FLOPs counted here: ResNet-50 v1.5 at 938 images/s is 23.0 TFLOP/s, BERT-large
# on SQuAD at 61.5 sequences/s is 45.4 TFLOP/s. BF16: matrix multiplications reach 137 of 312
# TFLOP/s when a GPT of 1.7 billion parameters is trained (arXiv:2104.04473, table 1); convolutions
# are assumed to reach the same share as in TF32.
#
# V100: the same models in the same place, at 367 images/s and 12 sequences/s in FP32, 1,200 and 52
# in mixed precision.
#
# T4: the slope of measured step times over the batch (Sia, SOSP 2023, siasosp23/artifacts), which
# leaves out what a step costs at any batch: ResNet-50 in mixed precision, 4.31 ms an image, is
# 5.7 TFLOP/s, BERT-base in FP32, 58.3 ms a sequence, 3.6. The other two are assumed: FP32 as for
# matrices, and mixed precision in the V100's proportion.
_SHARES = {
    "t4": ((0.449, 0.449), (0.0876, 0.114)),
    "v100": ((0.574, 0.565), (0.236, 0.308)),
    "a100": ((0.147, 0.291), (0.147, 0.44)),
}

# (name, peak TF32, peak BF16, memory) in FLOP/s and bytes/s. GPUs without measured shares are
# assumed to reach the A100's. In practice they reach less, so calibrate before you compare GPUs.
_DATA_SHEETS = {
    "t4": ("NVIDIA T4", 8.1e12, 65e12, 0.32e12),
    "v100": ("NVIDIA V100 SXM2", 15.7e12, 125e12, 0.9e12),
    "a100": ("NVIDIA A100", 156e12, 312e12, 2.039e12),
    "h100": ("NVIDIA H100 SXM", 494.7e12, 989.4e12, 3.35e12),
    "h200": ("NVIDIA H200 SXM", 494.7e12, 989.4e12, 4.8e12),
    "b200": ("NVIDIA HGX B200", 1100e12, 2250e12, 8.0e12),
    "b300": ("NVIDIA HGX B300", 1100e12, 2250e12, 8.0e12),
    "gb200": ("NVIDIA GB200 NVL72", 1250e12, 2500e12, 8.0e12),
    "gb300": ("NVIDIA GB300 NVL72", 1250e12, 2500e12, 8.0e12),
}


@dataclass(frozen=True, slots=True)
class Fitted:
    """What training reaches on a GPU: the share of its BF16 peak, and `passes`."""

    share: float
    passes: float = 4.42


# Fitted to 13 of 21 published configurations of Megatron-Bridge (releases 26.02 to 26.04.01, the
# best of each model, system and precision; fine-tuning left out), by least squares of logarithms
# with shares of at most .9, while all-to-alls are sent straight (`direct1`).
# `tests/validation/test_llm_throughput.py` has the errors of the others.
# The A100 is fitted by least squares, too, to the iteration times of GPTs of 22 and 175 billion
# parameters (arXiv:2205.05198, table 5).
FITTED: Mapping[str, Fitted] = MappingProxyType(
    {
        "a100": Fitted(0.83, 10.2),
        "h100": Fitted(0.707),
        "b200": Fitted(0.62),
        "b300": Fitted(0.68),
        "gb200": Fitted(0.56),
        "gb300": Fitted(0.9),
    }
)
EXPERTS = 0.397
"""Efficiency of experts relative to other matrices, fitted together with `FITTED`."""
FASTER = MappingProxyType({Precision.BF16: 1.0, Precision.FP8: 1.79, Precision.NVFP4: 2.42})
"""Speed of matrices relative to BF16, fitted together with `FITTED`, at most the ratio of the
peaks in data sheets."""

GPU_NAMES = tuple(_DATA_SHEETS)

MEMORY_GB = MappingProxyType(
    {
        "t4": 16,
        "v100": 32,
        "a100": 80,
        "h100": 80,
        "h200": 141,
        "b200": 180,
        "b300": 288,
        "gb200": 186,
        "gb300": 288,
    }
)
"""Memory in GB by the data sheets above; where variants differ, the largest."""

ASSUMED_GPU = "a100"
"""The GPU of a model whose name has no `gpu=`, if machines are of several kinds or of an unknown
one. Calibrations are factors on its times."""


def in_words(kind: str) -> str:
    """A kind of GPU in a sentence: `an A100`, `a T4`."""
    name = kind.upper()
    return f"{'an' if name[0] in 'AEFHILMNORSX' else 'a'} {name}"


def gpu_of(kinds: Collection[str]) -> str:
    """The GPU that sets the compute times of models on machines of these kinds.

    That is the machines' own GPU if they all have the same one and it is known here (`H100` and
    `a100-80gb` are), else `ASSUMED_GPU`.
    """
    named = {_known_as(kind) for kind in kinds}
    only = next(iter(named)) if len(named) == 1 else ""
    return only if only in GPU_NAMES else ASSUMED_GPU


def _known_as(kind: str) -> str:
    """A kind without its memory: `a100` for `A100-80GB`."""
    return re.sub(r"-\d+gb$", "", kind.casefold())


def assumed_in_words(kinds: Collection[str]) -> str:
    """A clause that names the kinds for which times of `ASSUMED_GPU` are taken; may be empty."""
    others = sorted(kind for kind in {*kinds} if _known_as(kind) != gpu_of(kinds))
    if not others:
        return ""
    not_of = " or ".join(in_words(kind) for kind in others)
    return f"compute times of {in_words(ASSUMED_GPU)}, not of {not_of}"


def fitted_gpu(name: str, precision: Precision) -> Gpu:
    """A GPU of `FITTED` that trains language models in a precision of `FASTER`."""
    full, _, bf16, memory = _DATA_SHEETS[name]
    fitted = FITTED[name]
    share = fitted.share * FASTER[precision]
    return Gpu(
        name=f"{full}, {precision.upper()}, fitted",
        peak_flops=bf16,
        efficiency=dict.fromkeys(OperatorKind, share),
        memory_bytes_per_s=memory,
        width=2,
        experts=EXPERTS,
        passes=fitted.passes,
    )


def gpu(name: str, precision: Precision, *, roofline: bool) -> Gpu:
    """The GPU with this name, one of `GPU_NAMES`. Without `roofline`, memory takes no time."""
    full, tf32, bf16, memory = _DATA_SHEETS[name]
    is_tf32 = precision is Precision.TF32
    shares = _SHARES.get(name, _SHARES["a100"])[0 if is_tf32 else 1]
    return Gpu(
        name=f"{full}, {precision.upper()}",
        peak_flops=tf32 if is_tf32 else bf16,
        efficiency=dict(zip((OperatorKind.CONVOLUTION, OperatorKind.MATMUL), shares, strict=True)),
        memory_bytes_per_s=memory if roofline else None,
        width=precision.width,
    )
