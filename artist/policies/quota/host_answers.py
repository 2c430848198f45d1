"""Whether a host's answer can be used. The engine says what is wrong with one that cannot.

Python's own types are checked here, so mypyc, which believes what it is told, must not compile it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from artist.contract import ClusterView, Migrate, Preempt, Start
from artist.contract.readable_answer import readable
from artist.errors import PolicyError


def usable(decisions: Sequence[Any], view: ClusterView) -> bool:
    """Whether decisions can be read and name jobs that may start, move or lose GPUs, each once,
    and GPUs of the cluster.

    The engine refuses every answer for which this is False.
    """
    try:
        readable(decisions, str)
    except PolicyError:
        return False
    decided: set[int] = set()
    leaves = len(view.free.leaves)
    for decision in decisions:
        if isinstance(decision, (Start, Migrate, Preempt)):  # a union is looked through more slowly
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
