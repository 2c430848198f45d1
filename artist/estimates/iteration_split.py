"""Where the time of an iteration goes: computing, waiting for other stages, communicating.

The parts add up to the iteration to the nanosecond, because they are differences between iteration
times T. At first no communication takes time. Then one kind of communication after another takes
its time, in the order of `SENDERS`. The part of a kind is the time that it adds to the iteration:

    compute + imbalance + bubble = T(nothing)
    tensor                       = T(tensor) - T(nothing)
    ...
    data                         = T(tensor, ..., pipeline, data) - T(tensor, ..., pipeline)

So a part is the communication that computing does not hide. In a pipeline it includes the time for
which other stages wait for it: with m microbatches on p equal stages, a collective of a ns in every
pass adds (m + p - 1) a to an iteration for each direction. The bubble of such stages is
(p - 1)/(m + p - 1) of compute + bubble, or (p - 1)/(v m + p - 1) with v chunks per stage
(Narayanan et al., arXiv:2104.04473, section 2.2; GPipe, arXiv:1811.06965).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from artist.workload.layers import Scope


class TimePart(StrEnum):
    """A part of an iteration.

    - `compute`: a GPU's own computing, the mean of all stages.
    - `imbalance`: the extra computing of the stage that computes longest, such as a head's.
    - `bubble`: that stage waits even without communication: the pipeline fills and drains.
    - `tensor`: activations and their gradients in tensor-parallel groups (arXiv:1909.08053).
    - `context`: keys and values in groups that share sequences (arXiv:2407.21783, section 3.3.2).
    - `expert`: all-to-alls of tokens to experts and back (arXiv:2006.16668).
    - `pipeline`: messages from stage to stage.
    - `data`: gradients among replicas, and weights of sharded models (arXiv:1910.02054).
    - `communication`: all kinds together, where an answer does not tell them apart.
    - `constant`: the calibration's constant share (`calibration.py`).
    """

    COMPUTE = "compute"
    IMBALANCE = "imbalance"
    BUBBLE = "bubble"
    TENSOR = "tensor"
    CONTEXT = "context"
    EXPERT = "expert"
    PIPELINE = "pipeline"
    DATA = "data"
    COMMUNICATION = "communication"
    CONSTANT = "constant"


SENDERS = (TimePart.TENSOR, TimePart.CONTEXT, TimePart.EXPERT, TimePart.PIPELINE, TimePart.DATA)
"""Kinds of communication, in the order in which they are added: the most frequent waits first."""

PART_OF_SCOPE: Mapping[Scope, TimePart] = MappingProxyType(
    {
        Scope.TENSOR: TimePart.TENSOR,
        Scope.CONTEXT: TimePart.CONTEXT,
        Scope.EXPERT: TimePart.EXPERT,
        Scope.STAGE: TimePart.PIPELINE,
        Scope.DATA: TimePart.DATA,
        Scope.REPLICA: TimePart.DATA,
        Scope.ALL: TimePart.DATA,
    }
)
"""The part of an iteration to which the collectives of a scope belong."""


@dataclass(frozen=True, slots=True)
class IterationSplit:
    """Where the time of an iteration goes, in whole nanoseconds.

    `parts_ns` add up to the iteration; parts that take no time are left out. `sent_ns` is how long
    a GPU sends each kind of communication, hidden or not, with the network to itself: the mean of
    all stages. It is None where the backend does not know.
    """

    parts_ns: Mapping[TimePart, int]
    sent_ns: Mapping[TimePart, int] | None

    @property
    def iteration_ns(self) -> int:
        """The iteration: the sum of the parts."""
        return sum(self.parts_ns.values())

    @property
    def hidden_ns(self) -> int | None:
        """Communication that adds nothing to the iteration, because the GPU computes meanwhile."""
        if self.sent_ns is None:
            return None
        parts = self.parts_ns
        return sum(max(0, sent - parts.get(part, 0)) for part, sent in self.sent_ns.items())
