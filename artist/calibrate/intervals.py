"""Sets of time, as sorted disjoint intervals (start, end)."""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """All time that some interval covers."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def minus(these: list[Interval], those: list[Interval]) -> list[Interval]:
    """Time in `these` but not in `those`; both sorted and disjoint."""
    found: list[Interval] = []
    index = 0
    for start, end in these:
        while index < len(those) and those[index][1] <= start:
            index += 1
        at = index
        while at < len(those) and those[at][0] < end:
            if those[at][0] > start:
                found.append((start, those[at][0]))
            start = max(start, those[at][1])
            at += 1
        if start < end:
            found.append((start, end))
    return found


def length(intervals: Iterable[Interval]) -> float:
    """Total time of disjoint intervals."""
    return sum(end - start for start, end in intervals)
