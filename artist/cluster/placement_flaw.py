"""What is wrong with a placement that somebody else made.

It may hold anything. So it stays `Any` here: after `isinstance` mypyc would believe that it holds
what its class promises.
"""

from __future__ import annotations

from typing import Any

from artist.cluster.placement import Placement


def flaw(placement: Any) -> str:
    """What is wrong with a placement, whatever cluster it is for; empty if nothing is."""
    if not issubclass(type(placement), Placement):
        return "is no placement"
    leaves, counts = placement.leaves, placement.counts
    if type(leaves) is not tuple or type(counts) is not tuple:
        return "holds something else than two tuples"
    if not leaves:
        return "has no GPUs"
    # Other kinds of numbers (numpy's, booleans) would compare equal and hash alike, and then
    # print differently in the rows.
    for number in leaves + counts:
        if type(number) is not int:
            return "holds other numbers than Python's integers"
    if len(leaves) != len(counts):
        return "lists leaves twice or out of order"
    before = leaves[0]
    for leaf in leaves[1:]:
        if leaf <= before:
            return "lists leaves twice or out of order"
        before = leaf
    return ""
