"""Whether a host's answer can be used. If not, the engine says what is wrong with it.

This module checks types at run time, so it must not be compiled: mypyc trusts annotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artist.contract import ClusterView, Migrate, Preempt, Start
from artist.contract.readable_answer import readable
from artist.errors import PolicyError


def usable(decisions: Sequence[Any], view: ClusterView) -> bool:
    """Whether decisions can be read, and name existing GPUs and eligible jobs, each once.

    The engine refuses every answer for which this is False.
    """
    try:
        readable(decisions, str)
    except PolicyError:
        return False
    decided: set[int] = set()
    leaves = len(view.free.leaves)
    for decision in decisions:
        if isinstance(decision, (Start, Migrate, Preempt)):  # faster than a union
            handle = decision.handle
            jobs = view.waiting if isinstance(decision, Start) else view.running
            if handle in decided or handle not in jobs:
                return False
            if not isinstance(decision, Preempt):
                used = decision.placement.leaves  # ascending
                if used[0] < 0 or used[-1] >= leaves:
                    return False
            decided.add(handle)
    return True
