"""Sets of time as lists of spans (start, end), sorted and disjoint.

Example: `minus([(0, 10)], [(2, 3)])` is `[(0, 2), (3, 10)]`.
"""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[float, float]


def union(spans: Iterable[Span]) -> list[Span]:
    """All time that at least one span covers. The spans may overlap and be in any order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return merged


def minus(these: list[Span], those: list[Span]) -> list[Span]:
    """Time in `these` but not in `those`. Both are sorted and disjoint."""
    rest: list[Span] = []
    index = 0
    for start, end in these:
        while index < len(those) and those[index][1] <= start:
            index += 1
        at = index
        while at < len(those) and those[at][0] < end:
            if those[at][0] > start:
                rest.append((start, those[at][0]))
            start = max(start, those[at][1])
            at += 1
        if start < end:
            rest.append((start, end))
    return rest


def length(spans: Iterable[Span]) -> float:
    """The total time of disjoint spans."""
    return sum(end - start for start, end in spans)
