"""Runs many tasks at once on a Ray cluster, and starts one where none is given.

The environment variable `RAY_ADDRESS` names the cluster. Ray is an optional library:
`pip install 'artist-sim[ray]'`.
"""

from __future__ import annotations

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
from artist.experiments.executors import outcome_of_death
from artist.io.optional_libraries import check_extra
from artist.io.processes import cores

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def run_on_ray(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    workers: int | None,
    *,
    folder: Path,
    on_death: Callable[[Task, str], Outcome] | None = None,
) -> Iterator[tuple[int, Outcome]]:
    """Yield `(index, outcome)` of each task when it is done, like `executors.run_all`.

    `folder` is copied to every machine and is the working directory of `work` there. At most
    `workers` tasks run at the same time (default: as many as the cluster has CPUs). A task whose
    worker or machine dies is tried twice more. If it fails again, its outcome is
    `on_death(task, why)`.

    Raises:
        ConfigError: Ray is not installed, or no cluster answers at `RAY_ADDRESS`.
        WorkerDiedError: a task killed its workers, and `on_death` is None.
    """
    ray = _ray()
    _connect(ray, workers, folder)
    try:
        remote = ray.remote(max_retries=2)(work)
        at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = list(enumerate(tasks))[::-1]  # reversed, because `pop` takes the last one
        pending: dict[Any, int] = {}
        while waiting or pending:
            while waiting and len(pending) < at_once:
                index, task = waiting.pop()
                pending[remote.remote(task)] = index
            done = _first_done(ray, list(pending))
            index = pending.pop(done)
            try:
                outcome = ray.get(done)
            except ray.exceptions.RayTaskError:
                raise  # `work` itself raised: the error of the task, not of its worker
            except ray.exceptions.RayError as cause:
                why = f"its Ray worker died ({type(cause).__name__})"
                outcome = outcome_of_death(on_death, tasks[index], why)
            yield index, outcome
    finally:
        ray.shutdown()


def check_ray() -> None:
    """Check that Ray is installed, and that something listens at `RAY_ADDRESS` if it is set.

    Raises:
        ConfigError: one of the two does not hold; the message says what to do.
    """
    check_extra("--engine ray", "ray", extra="ray")
    host, _, port = os.environ.get("RAY_ADDRESS", "").rpartition(":")
    if not host or not port.isdecimal():
        return
    # Ray itself would try to connect for some minutes before it fails.
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
    """The library, set to send no usage statistics and to protect a cluster that artist starts."""
    check_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not os.environ.get("RAY_ADDRESS"):
        # Ray listens on all addresses of a machine and runs the code of everyone who connects.
        # The secret token keeps others out.
        os.environ.setdefault("RAY_AUTH_MODE", "token")
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    import ray

    return ray


def _connect(ray: Any, workers: int | None, folder: Path) -> None:
    """Join the cluster at `RAY_ADDRESS`, or start one on this machine."""
    address = os.environ.get("RAY_ADDRESS")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
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
    # Ray replaces the signal handlers by its own, which end with a core dump. Restore ours, which
    # end with a sentence. Python allows this in the main thread only.
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _first_done(ray: Any, pending: list[Any]) -> Any:
    """Wait until one of the pending tasks is done, and return it."""
    try:
        (done,), _ = ray.wait(pending, num_returns=1)
    except SystemError as error:  # Ray wraps in it the exception that a signal handler raised
        raise error.__cause__ or error from None
    return done
