"""Over how many GPUs the experts of a layer are spread if the job does not say.

If a stage has no more GPUs than there are experts, they are spread over all of its GPUs, without
replicas. A larger stage spreads them over the largest divisor of their number that its axes can be
cut into, and has replicas of each expert. `layers.Degrees` means the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations

from artist.workload.division.staged import INNERMOST_FIRST, Axes, Axis, sizes_of


def fitted_spread(axes: Axes, gpus: int) -> int:
    """Over how many of a job's GPUs experts are spread, at most `axes.expert`.

    Raises:
        DivisionError: the axes do not multiply to the number of GPUs.
    """
    sizes = sizes_of(axes, gpus)
    of_stage = gpus // axes.pipeline
    if axes.expert == 1 or of_stage <= axes.expert:
        return min(axes.expert, of_stage)
    first = (*axes.order, *(axis for axis in INNERMOST_FIRST if axis not in axes.order))
    orders = [first] if axes.order else [*permutations(INNERMOST_FIRST)]
    inside = [[sizes[axis] for axis in order if axis is not Axis.PIPELINE] for order in orders]
    common = math.gcd(axes.expert, of_stage)
    return next(
        spread
        for spread in range(common, 0, -1)
        if common % spread == 0 and any(_is_innermost(spread, parts) for parts in inside)
    )


def spread_text(axes: Axes, gpus: int) -> str:
    """A clause if the spread is implied and experts share GPUs; else empty.

    Raises:
        DivisionError: the axes do not multiply to the number of GPUs.
    """
    experts = axes.expert
    spread = fitted_spread(axes, gpus) if axes.implied else experts
    if spread == experts:
        return ""
    if spread == 1:
        each = "each GPU" if gpus > 1 else "the GPU"
        return f"{each} holds all {experts} experts of a layer"
    least, left = divmod(experts, spread)
    held = f"{least} or {least + 1}" if left else f"{least}"
    return f"the {experts} experts of a layer are spread over {spread} GPUs, {held} on each"


def _is_innermost(spread: int, sizes: Sequence[int]) -> bool:
    """Whether `spread` ranks can be the innermost ranks of axes of these sizes."""
    for size in sizes:
        taken = math.gcd(spread, size)
        if taken < size and taken < spread:
            return False
        spread //= taken
    return True
