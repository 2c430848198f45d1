"""Skew: how much of a model's size sits in its largest tensor.

    skew = bytes of the largest layer's gradients / bytes of all layers' gradients

Source: Gu et al., *Tiresias* (NSDI 2019), section 3.3. A job whose largest tensor dominates the
model suffers most from lying on several machines. Dally (section I) calls it "the ratio of the
largest tensor size to the overall model size".

The sizes come from the model's layer table. A layer's weight and bias count as one tensor,
because one message carries both.
"""

from __future__ import annotations

from functools import cache

from artist.registry import UnknownNameError
from artist.workload.models import workload

# A value between ResNet-18 (0.202, "low" in Dally's Table I) and MobileNetV3 (0.234, "high").
# With it the layer tables give the classes of that table. Tiresias fits its PACKLIMIT to the job
# history of a cluster and gives no number.
SKEW_THRESHOLD = 0.22


@cache
def skew(model: str) -> float:
    """Skew of a model, from 0 to 1; 0 for a model that the catalogue does not know."""
    try:
        layers = workload(model).layers
    except UnknownNameError:
        return 0.0
    sizes = [layer.weight_grad.comm_bytes for layer in layers]
    return max(sizes) / sum(sizes)
