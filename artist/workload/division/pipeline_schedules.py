"""Pipeline schedules: in which order a stage runs the passes of its microbatches.

- `gpipe`: all forward passes, then all backward passes (arXiv:1811.06965).
- `1f1b`: as many forward passes as there are stages behind, then a forward and a backward pass in
  turn (arXiv:2006.09503, section 2.2).
- `interleaved`: as `1f1b`, but a stage holds several **chunks** of the model. It runs one chunk for
  as many microbatches as there are stages, then the next chunk (arXiv:2104.04473, section 2.2).

Chunk c of a model lies on stage c mod p of p stages. With one chunk per stage, chunks are stages.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Schedule(StrEnum):
    """The order of passes."""

    ONE_F_ONE_B = "1f1b"
    GPIPE = "gpipe"
    INTERLEAVED = "interleaved"


class Pass(NamedTuple):
    """A forward or backward pass of a microbatch through a chunk of the model."""

    forward: bool
    microbatch: int
    chunk: int


def passes(
    schedule: Schedule, stage: int, stages: int, chunks: int, microbatches: int
) -> list[Pass]:
    """The passes of a stage, in order. The model has `chunks` chunks, a multiple of `stages`."""
    held = chunks // stages
    total = held * microbatches
    forward = [_nth(True, n, stage, stages, held) for n in range(total)]
    backward = [_nth(False, n, stage, stages, held) for n in range(total)]
    match schedule:
        case Schedule.GPIPE:
            ahead = total
        case Schedule.ONE_F_ONE_B:
            ahead = stages - stage - 1
        case Schedule.INTERLEAVED:
            ahead = 2 * (stages - stage - 1) + (held - 1) * stages
    ahead = min(ahead, total)
    order = forward[:ahead]
    for one, other in zip(forward[ahead:], backward, strict=False):
        order += (one, other)
    return order + backward[total - ahead :]


def _nth(forward: bool, number: int, stage: int, stages: int, held: int) -> Pass:
    """The pass of this number: chunk by chunk for as many microbatches as there are stages."""
    if held == 1:
        return Pass(forward, number, stage)
    round_, place = divmod(number, stages * held)
    chunk, within = divmod(place, stages)
    chunk = chunk if forward else held - 1 - chunk
    return Pass(forward, round_ * stages + within, chunk * stages + stage)
