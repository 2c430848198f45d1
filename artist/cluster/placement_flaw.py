"""What is wrong with a placement that somebody else made.

Python's own types are checked here, so mypyc, which believes what it is told, must not compile it.
"""

from __future__ import annotations

from artist.cluster.placement import Placement


def flaw(placement: object) -> str:
    """What is wrong with a placement, whatever cluster it is for; empty if nothing is."""
    if not isinstance(placement, Placement):
        return "is no placement"
    leaves, counts = placement.leaves, placement.counts
    if type(leaves) is not tuple or type(counts) is not tuple:
        return "holds something else than two tuples"
    if not leaves:
        return "has no GPUs"
    # Other kinds of numbers (numpy's, booleans) would compare equal and hash alike, and then
    # print differently in the rows.
    if set(map(type, leaves + counts)) != {int}:
        return "holds other numbers than Python's integers"
    if len(leaves) != len(counts) or (len(leaves) > 1 and list(leaves) != sorted(set(leaves))):
        return "lists leaves twice or out of order"
    return ""
