"""CPU seconds, and a unit of them that survives another machine."""

from __future__ import annotations

import heapq
import resource
import time

STEPS = 100_000
REPEATS = 3


def cpu_s() -> float:
    """CPU seconds of this process so far, with those of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def unit_s() -> float:
    """CPU seconds of one calibration loop: the least of some repeats.

    A benchmark divided by this, measured right beside it, says how much work was done rather
    than how fast the machine is.
    """
    return min(_loop_s() for _ in range(REPEATS))


def _loop_s() -> float:
    """What a simulator does most: a heap of tuples, dictionaries of integers, small lists."""
    begun = time.process_time()
    queue: list[tuple[int, int]] = []
    seen: dict[int, list[int]] = {}
    for step in range(STEPS):
        heapq.heappush(queue, (step * 7919 % 10_007, step))
        if len(queue) > 1000:
            tick, number = heapq.heappop(queue)
            seen.setdefault(tick, []).append(number)
    return time.process_time() - begun
