"""Many runs at once: same scenarios, same results, whatever the number of workers."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from artist.errors import ConfigError

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerDiedError(ConfigError):
    """A worker process ended without an answer."""

    exit_code = 1


def run_all(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    workers: int,
    *,
    died: Callable[[Task, str], Outcome] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """`(index, outcome)` of each task as it is done; in order with one worker.

    `work` must be importable by name and its arguments and outcomes picklable: workers are
    fresh processes that share nothing with this one. When one dies, who was at work cannot be
    told: what was not done is tried once more, each task in a process of its own, and whichever
    kills that one too has the outcome `died(task, why)`.

    Raises:
        WorkerDiedError: a task killed its process, and there is no `died`.
    """
    if workers <= 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            yield index, work(task)
        return
    waiting = dict(enumerate(tasks))
    for index, outcome in _in_pool(work, waiting, workers):
        del waiting[index]
        yield index, outcome
    for index, task in waiting.items():
        found = list(_in_pool(work, {index: task}, 1))
        yield from found or [(index, _dead(died, task, "its worker process was killed"))]


def _in_pool(
    work: Callable[[Task], Outcome], tasks: dict[int, Task], workers: int
) -> Iterator[tuple[int, Outcome]]:
    """What fresh processes answer, until the end or until one of them dies."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(tasks)), mp_context=context) as pool:
        try:
            pending = {pool.submit(work, task): index for index, task in tasks.items()}
            for future in as_completed(pending):
                with contextlib.suppress(BrokenProcessPool):
                    yield pending[future], future.result()
        except BrokenProcessPool:  # already while tasks were handed over
            return
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # Runs are written whole or not at all: nobody has to wait for those under way.
            for worker in multiprocessing.active_children():
                worker.terminate()
            raise


def run_on_ray(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    workers: int | None,
    *,
    folder: Path,
    died: Callable[[Task, str], Outcome] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """The same on a Ray cluster: the one `RAY_ADDRESS` names, else one started on this machine.

    `folder` is copied to every machine and is the working directory of `work` there. At most
    `workers` tasks are under way (default: as many as the cluster has CPUs). One whose worker
    or machine dies is tried twice more.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at `RAY_ADDRESS`.
        WorkerDiedError: a task killed its workers, and there is no `died`.
    """
    ray = _ray()
    _connect(ray, workers, folder)
    try:
        remote = ray.remote(max_retries=2)(work)
        width = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(enumerate(tasks))[::-1]
        pending: dict[Any, int] = {}
        while waiting or pending:
            while waiting and len(pending) < width:
                index, task = waiting.pop()
                pending[remote.remote(task)] = index
            done = _first(ray, list(pending))
            index = pending.pop(done)
            try:
                outcome = ray.get(done)
            except ray.exceptions.RayTaskError:
                raise  # `work` itself raised, as it would here
            except ray.exceptions.RayError as cause:
                why = f"its Ray worker died ({type(cause).__name__})"
                outcome = _dead(died, tasks[index], why)
            yield index, outcome
    finally:
        ray.shutdown()


def check_ray() -> None:
    """Raises ConfigError where Ray is not installed, or nobody listens at `RAY_ADDRESS`."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError(
            "--engine ray needs Ray, which is not installed: pip install 'artist-sim[ray]'"
        )
    host, _, port = os.environ.get("RAY_ADDRESS", "").rpartition(":")
    if not host or not port.isdecimal():
        return
    # Ray itself would try for some minutes.
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, OverflowError) as cause:
        raise _unusable(str(cause)) from cause


def _unusable(why: str) -> ConfigError:
    address = os.environ.get("RAY_ADDRESS")
    where = f"at RAY_ADDRESS={address}" if address else "on this machine"
    return ConfigError(
        f"--engine ray: a Ray cluster {where} cannot be used ({why}); start one with "
        "ray start --head, or unset RAY_ADDRESS and artist starts one here"
    )


def _ray() -> Any:
    """The library, told to send nothing to its makers, and to serve nobody but this process."""
    check_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not os.environ.get("RAY_ADDRESS"):
        # A Ray listens on all of a machine's addresses, whatever it is told, and runs any code.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    return ray


def _connect(ray: Any, workers: int | None, folder: Path) -> None:
    """Join the cluster, or start one."""
    address = os.environ.get("RAY_ADDRESS")
    ours = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        ray.init(
            include_dashboard=None if address else False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"working_dir": str(folder)},
            **({} if address else {"num_cpus": workers or cores()}),
        )
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as cause:
        lines = str(cause).strip().splitlines() or [type(cause).__name__]
        raise _unusable(lines[0]) from cause
    # Ray takes the signals for itself and would end with a core dump instead of a sentence.
    if threading.current_thread() is threading.main_thread():
        for number, handler in ours.items():
            signal.signal(number, handler)


def _first(ray: Any, pending: list[Any]) -> Any:
    """Whichever is done first."""
    try:
        (done,), _ = ray.wait(pending, num_returns=1)
    except SystemError as error:  # in which Ray wraps what a signal's handler raises
        raise error.__cause__ or error from None
    return done


def _dead(died: Callable[[Task, str], Outcome] | None, task: Task, why: str) -> Outcome:
    if died is None:
        raise WorkerDiedError(f"{why}; most likely the machine had too little memory")
    return died(task, why)
