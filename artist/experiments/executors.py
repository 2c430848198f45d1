"""Many runs at once: same scenarios, same results, whatever the number of workers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from artist.errors import ConfigError

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


def run_on_ray(
    work: Callable[[Task], Outcome], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[int, Outcome]]:
    """The same contract on a Ray cluster: the one `RAY_ADDRESS` names, else one started here.

    Raises:
        ConfigError: Ray is not installed.
    """
    try:
        import ray
    except ImportError as cause:
        raise ConfigError(
            "--engine ray needs Ray, which is not installed: pip install 'artist-sim[ray]'"
        ) from cause
    if not ray.is_initialized():
        start = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": workers}
        ray.init(log_to_driver=False, include_dashboard=False, **start)
    remote = ray.remote(max_retries=2)(work)
    waiting = list(enumerate(tasks))[::-1]
    pending: dict[object, int] = {}
    while waiting or pending:
        while waiting and len(pending) < workers:
            index, task = waiting.pop()
            pending[remote.remote(task)] = index
        done, _ = ray.wait(list(pending), num_returns=1)
        yield pending.pop(done[0]), ray.get(done[0])


EXECUTORS = {"local": run_all, "ray": run_on_ray}
