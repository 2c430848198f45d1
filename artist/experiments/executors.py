"""Many runs at once: same scenarios, same results, whatever the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_all(
    work: Callable[[Task], Outcome], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[int, Outcome]]:
    """`(index, outcome)` of each task as it is done; in order with one worker.

    `work` must be importable by name and its arguments and outcomes picklable: workers are
    fresh processes that share nothing with this one.
    """
    if workers <= 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            yield index, work(task)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context) as pool:
        pending = {pool.submit(work, task): index for index, task in enumerate(tasks)}
        try:
            for future in as_completed(pending):
                yield pending[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
