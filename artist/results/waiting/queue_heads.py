"""Which job headed the queue while a job waited, where none may pass the first in the order of
arrival (`BasePolicy.head_blocks`).
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from artist.results.waiting.stays import Whole
from artist.results.waiting.wait_neighbours import Waits
from artist.units import Tick


class Head(NamedTuple):
    """The job that headed the queue longest during a wait, and for how much of the wait."""

    handle: int
    length: Tick


def longest_heads(waits: Waits) -> list[Head]:
    """For each wait the longest stretch at the head of the queue; maybe the job's own.

    Of stretches of one length the first counts.
    """
    handle, start, end = _stretches(waits)
    whole = end - start
    first = np.searchsorted(end, waits.begin, side="right").tolist()
    after = np.searchsorted(start, waits.end).tolist()
    heads = []
    for low, high, begin, until in zip(
        first, after, waits.begin.tolist(), waits.end.tolist(), strict=True
    ):
        lengths = whole[low:high].copy()
        lengths[0] -= max(0, begin - int(start[low]))
        lengths[-1] -= max(0, int(end[high - 1]) - until)
        longest = int(lengths.argmax())
        heads.append(Head(int(handle[low + longest]), int(lengths[longest])))
    return heads


def _stretches(waits: Waits) -> tuple[Whole, Whole, Whole]:
    """Who headed the queue from when until when, in the order of time: handle, start, end."""
    rows: list[tuple[int, Tick, Tick]] = []
    queue: list[tuple[int, Tick]] = []
    now, upcoming = 0, list(zip(*(column.tolist() for column in waits), strict=True))[::-1]
    while upcoming or queue:
        if not queue:
            now = upcoming[-1][1]
        while upcoming and upcoming[-1][1] <= now:
            handle, _, until = upcoming.pop()
            heapq.heappush(queue, (handle, until))
        handle, until = queue[0]
        if until <= now:
            heapq.heappop(queue)
            continue
        # The head changes when it gets GPUs, or when an earlier job loses its own.
        begin, now = now, min(until, upcoming[-1][1]) if upcoming else until
        if rows and rows[-1][0] == handle and rows[-1][2] == begin:
            rows[-1] = (handle, rows[-1][1], now)
        else:
            rows.append((handle, begin, now))
    handles, starts, ends = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return handles, starts, ends
