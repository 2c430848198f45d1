"""Skew: how much of a model's size sits in its largest tensor.

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.3: a job whose largest tensor dominates the
model suffers most from being spread over machines. Dally (section I) words it as "the ratio
of the largest tensor size to the overall model size".

Sizes are the gradients' bytes per layer of the model's layer table. A layer's weight and bias
count as one tensor, as one message carries them.
"""

from __future__ import annotations

from functools import cache

from artist.errors import UnknownNameError
from artist.workload.models import canonical, workload

# Between ResNet-18 (0.202, "low") and MobileNetV3 (0.234, "high"): the value that gives the
# classes of Dally's Table I from the layer tables. Tiresias fits its PACKLIMIT to the
# job history of a cluster and names no number.
SKEW_THRESHOLD = 0.22

ORIGINAL_UNSKEWED = frozenset({"resnet50", "resnet18", "bert-large"})
"""The original simulator's fixed list: every other model counts as skewed."""


@cache
def skew(model: str) -> float:
    """Largest layer / all layers, in bytes; 0 for a model that the catalogue does not know."""
    try:
        layers = workload(model).layers
    except UnknownNameError:
        return 0.0
    sizes = [layer.weight_grad.comm_bytes for layer in layers]
    return max(sizes) / sum(sizes)


@cache
def original_skewed(model: str) -> bool:
    """Whether the original simulator's list calls for consolidation."""
    try:
        return canonical(model) not in ORIGINAL_UNSKEWED
    except UnknownNameError:
        return True
