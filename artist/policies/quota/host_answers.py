"""Whether a host's answer can be read. The engine tells what is wrong with one that cannot.

Python's own types are checked here, so mypyc, which believes what it is told, must not compile it.
"""

from __future__ import annotations

from collections.abc import Sequence

from artist.cluster.placement_flaw import flaw
from artist.contract import ClusterView, Hold, Migrate, Preempt, Start, Wait, Wake

# A tuple: `isinstance` looks through a union much more slowly.
_OF_A_JOB = (Start, Migrate, Preempt, Hold, Wait)


def readable(decisions: Sequence[object], view: ClusterView) -> bool:
    """Whether decisions name jobs that may start, move or fall, each job once, and GPUs.

    The engine refuses every answer for which this is False.
    """
    decided: set[int] = set()
    for decision in decisions:
        if isinstance(decision, Wake):
            continue
        if not isinstance(decision, _OF_A_JOB) or type(decision.handle) is not int:
            return False
        if isinstance(decision, (Hold, Wait)):
            continue
        handle, starts = decision.handle, isinstance(decision, Start)
        if handle in decided or handle not in (view.waiting if starts else view.running):
            return False
        if isinstance(decision, (Start, Migrate)) and flaw(decision.placement):
            return False
        decided.add(handle)
    return True
