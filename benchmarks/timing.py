"""CPU seconds, and a calibration loop that makes them comparable between machines."""

from __future__ import annotations

import heapq
import resource
import time

STEPS = 100_000
REPEATS = 3


def cpu_s() -> float:
    """CPU seconds of this process so far, with those of child processes that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def unit_s() -> float:
    """CPU seconds of one calibration loop: the least of three repeats.

    A benchmark's CPU seconds divided by this say how much work was done, not how fast the machine
    is. Measure both close together in time.
    """
    return min(_loop_s() for _ in range(REPEATS))


def _loop_s() -> float:
    """The operations that a simulator does most: on a heap, a dictionary and small lists."""
    begun = time.process_time()
    queue: list[tuple[int, int]] = []
    seen: dict[int, list[int]] = {}
    for step in range(STEPS):
        heapq.heappush(queue, (step * 7919 % 10_007, step))
        if len(queue) > 1000:
            tick, number = heapq.heappop(queue)
            seen.setdefault(tick, []).append(number)
    return time.process_time() - begun
