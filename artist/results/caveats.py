"""What decides a result though no table shows it, as sentences for below the table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

FREE_PREEMPTIONS = "Preemptions cost nothing here; --set restart_s=SECONDS gives them a cost."
"""For runs in which `preempts_freely`."""


_NEXT_TO_NOTHING_GPU_S = 1.0
"""A preemption that costs less has no restart. It lost a part of an iteration at most."""


def preempts_freely(summaries: Iterable[Mapping[str, Any]]) -> bool:
    """Whether jobs were preempted or moved in these runs, at less than 1 GPU-second each time."""
    ran = list(summaries)
    moves = [one["preemptions"] + one["migrations"] for one in ran]
    costs = [one["preemption_cost_gpu_s"] for one in ran]
    free = (
        cost < _NEXT_TO_NOTHING_GPU_S * count
        for cost, count in zip(costs, moves, strict=True)
        if cost
    )
    return any(moves) and all(free)
