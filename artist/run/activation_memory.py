"""The activations that a transformer's forward passes leave on a GPU for its backward passes.

For b sequences of s tokens, a block keeps this many bytes (Korthikanti et al., arXiv:2205.05198,
section 4), with h the width of the model, t tensor ranks and 2 bytes per element:

    GPTs, encoders     34 s b h / t                    equation 6; two bytes are dropout masks
    gated decoders     s b (4 h + 4 q + 4 k + 4 i) / t
    recompute=full     2 s b h / t                     the block's input

The 34 are 14 for the inputs of four matrices, 4 for those of two normalisations, 6 for queries,
keys and values, 8 for the input of the feed-forward part's function, and 2 for the masks. Decoders
have q and k elements in all heads of queries and of keys, i in the gate, and no dropout. They
compute normalised and gated values again, as DeepSeek-V3 does (arXiv:2412.19437, section 3.2.1),
and also what its attention widens from low ranks. Experts keep copies of their tokens. A stage
keeps all this for every microbatch under way: in `1f1b`, the first of p stages does so for p
microbatches (section 4.2.3).

Whatever frameworks can avoid is left out: attention scores (the term 5 a s / h of equation 1),
which fused kernels compute again; embeddings, logits and buffers. Tensor groups count as
sequence-parallel (equation 4), since names seldom say so and it sends no more. An element of 8 bits
or fewer takes a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from artist.workload.architectures.operators import Operator, Role
from artist.workload.division.staged import Schedule, Staged, passes
from artist.workload.gpus import Precision
from artist.workload.models import operators, settings
from artist.workload.parallelism import block_of
from artist.workload.settings import Settings

_ONE_INPUT = (Role.WHOLE, Role.COLUMN)
"""Consecutive operators of these roles read the same input."""
_FROM_LOW_RANK = ("query.up", "key_value.up")
_MASKS = 2


def kept_bytes(model: str) -> dict[str, float]:
    """Bytes that each block keeps of one microbatch, by its name; empty for non-transformers.

    Raises:
        ConfigError: the model is unknown.
    """
    chosen = settings(model)
    samples = chosen.batch // chosen.microbatches
    blocks = {name: tuple(members) for name, members in groupby(operators(model), key=block_of)}
    return {
        name: samples * _of_sample(members, chosen)
        for name, members in blocks.items()
        if name != members[0].name and any(x.role is Role.ROW for x in members)
    }


def under_way_bytes(staged: Staged, stage: int, chunk_bytes: Sequence[float]) -> float:
    """The most bytes that a stage keeps at a time; a microbatch leaves `chunk_bytes` by chunk."""
    stages = staged.axes.pipeline
    if staged.schedule is Schedule.GPIPE:
        return staged.microbatches * sum(chunk_bytes[stage::stages])
    microbatches = min(staged.microbatches, 2 * stages)  # more are never under way at once
    most = kept = 0.0
    for part in passes(staged.schedule, stage, stages, len(chunk_bytes), microbatches):
        kept += chunk_bytes[part.chunk] if part.forward else -chunk_bytes[part.chunk]
        most = max(most, kept)
    return most


def _of_sample(block: Sequence[Operator], chosen: Settings) -> float:
    """Bytes that a block keeps of one sample on each GPU."""
    precision = Precision(chosen.precision)
    width = 1 if precision in (Precision.FP8, Precision.NVFP4) else precision.width
    residual = next(x.outputs for x in block if x.role is Role.ROW)
    if chosen.recompute == "full":
        kept = width * residual
    elif any(x.name.endswith("gate_up") for x in block):
        kept = width * (2 * residual + _widened(block) + _sent_and_attended(block))
    else:
        kept = width * (2 * residual + _widened(block) + _read(block)) + _MASKS * residual
    return kept / (chosen.tensor * chosen.context)


def _widened(block: Sequence[Operator]) -> int:
    """Elements of queries, keys, values, and of the input of the function between two matrices."""
    return sum(
        operator.outputs
        for operator in block
        if operator.role in (Role.COLUMN, Role.FIRST_OF_EXPERT)
        and not operator.name.endswith(_FROM_LOW_RANK)
    )


def _read(block: Sequence[Operator]) -> int:
    """Elements of all matrices' inputs. Neighbours without a function between read one input."""
    before = [Role.ROW, *(operator.role for operator in block)]
    return sum(
        operator.inputs
        for operator, role in zip(block, before, strict=False)
        if operator.role not in _ONE_INPUT or role not in _ONE_INPUT
    )


def _sent_and_attended(block: Sequence[Operator]) -> int:
    """Elements of the inputs of matrices that are neither normalised nor gated values."""
    return sum(
        operator.inputs
        for operator in block
        if operator.role is Role.FIRST_OF_EXPERT or operator.name.endswith("attention.output")
    )
