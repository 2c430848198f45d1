"""Joint placement of several jobs: what cell (9) of Table 1 can do and MAST cannot (section 4.1).

MAST may place workload 1 in region X and find that no region can hold workload 2. Cell (9) may
place workload 1 in region Y and leave region X to workload 2.

Only free GPUs are shared out. The first job starts in any case; then as many as possible of those
behind it start, an earlier one before any number of later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Want: TypeAlias = "tuple[int, Sequence[int]]"
"""GPUs of a job behind, and the clusters that it may lie in."""


def most_started(free: dict[int, int], behind: Sequence[Want]) -> tuple[bool, ...]:
    """Which of the jobs can start together, as many of the first ones as possible."""
    if not behind:
        return ()
    (gpus, clusters), rest = behind[0], behind[1:]
    best: tuple[bool, ...] = ()
    for cluster in clusters:
        if free[cluster] < gpus:
            continue
        free[cluster] -= gpus
        best = max(best, (True, *most_started(free, rest)))
        free[cluster] += gpus
        if best and all(best):
            return best
    return best or (False, *most_started(free, rest))
