"""Queries in parallel: answers in the order of the queries, the first error ends the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from artist.estimates.query import Estimate, LatencyQuery


def in_parallel(
    estimate: Callable[[LatencyQuery], Estimate],
    queries: Sequence[LatencyQuery],
    jobs: int,
    abandon: Callable[[], None] = lambda: None,
) -> list[Estimate]:
    """Answers in order, up to `jobs` queries at a time. After an error no more are begun.

    `abandon` is called after Ctrl-C. It has to end the queries that are under way.
    """
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        futures = [pool.submit(estimate, query) for query in queries]
        try:
            return [future.result() for future in futures]
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            # Leaving the `with` block waits for the queries under way: they must end soon.
            if not isinstance(error, Exception):
                abandon()
            raise


def core_count() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
