"""Runs many tasks at once in processes of this machine.

The outcomes are the same for any number of workers. `ray_cluster.py` does this on a Ray cluster.

A worker ends when the process that started it ends. A process that gets SIGKILL cannot stop its
workers, so they detect its end in two ways:

- A thread waits for the end of the pipe that a spawned process shares with its parent. The system
  closes the parent's end when the parent ends. This works on every Unix.
- On Linux the kernel sends SIGKILL to the worker. This also ends a worker that is stopped, or whose
  compiled code lets no other thread run.

A run is written whole or not at all, so a worker can be stopped at any moment. Signals of a
terminal (Ctrl-C, SIGQUIT, SIGHUP) reach all its processes. Only the parent handles them and ends
its workers; a worker that handled them would print a message of its own.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from typing import TypeVar

from artist.errors import ConfigError, shortened
from artist.units import TIME_UNITS, seconds_of

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h
_OF_A_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


@contextmanager
def signals_kept_from_children() -> Iterator[None]:
    """Block signals of a terminal in all processes that are started in the block.

    This process gets the signals when the block ends. A child inherits the mask, so it is never
    without it. One child is Python's resource tracker, which cleans up after the pool.
    """
    from multiprocessing import resource_tracker

    former = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_A_TERMINAL)
    try:
        # The tracker's start lifts the block on SIGINT, so it comes first.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, _OF_A_TERMINAL)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def end_with_parent() -> None:
    """Make this process, a worker that `multiprocessing` spawned, end when its parent does."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # only workers call this
    if sys.platform == "linux":
        _ask_the_kernel()
    # Last: if the parent ended before the kernel was asked, the thread notices at once.
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _ask_the_kernel() -> None:
    import ctypes

    # A kernel or a sandbox may refuse. Then the thread alone watches.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: BaseProcess) -> None:
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


class WorkerDiedError(ConfigError):
    """A worker process ended without an answer."""

    exit_code = 1


def run_all(
    work: Callable[[Task], Outcome],
    tasks: Sequence[Task],
    workers: int,
    *,
    on_death: Callable[[Task, str], Outcome] | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[tuple[int, Outcome]]:
    """Yield `(index, outcome)` of each task when it is done; with one worker in order.

    Once `go_on` returns False, no other task begins; running tasks are completed.

    Workers are fresh processes that share nothing with this one. So `work` must be importable by
    name, and its arguments and outcomes picklable. Workers end when this process ends, even if it
    is killed (`end_with_parent`).

    If a worker dies, the task that killed it is not known. So every task that is not done is tried
    once more, in a process of its own. A task that kills this one, too, has the outcome
    `on_death(task, why)`.

    Raises:
        WorkerDiedError: a task killed its process, and `on_death` is None.
    """
    if workers <= 1 or len(tasks) <= 1:
        for index, task in enumerate(tasks):
            if not go_on():
                return
            yield index, work(task)
        return
    waiting = dict(enumerate(tasks))
    for index, outcome in _in_pool(work, waiting, workers, go_on):
        del waiting[index]
        yield index, outcome
    for index, task in waiting.items():
        if not go_on():
            return
        outcomes = list(_in_pool(work, {index: task}, 1, go_on))
        yield from outcomes or [
            (index, outcome_of_death(on_death, task, "its worker process was killed"))
        ]


def outcome_of_death(
    on_death: Callable[[Task, str], Outcome] | None, task: Task, why: str
) -> Outcome:
    """The outcome of a task whose worker died.

    Raises:
        WorkerDiedError: `on_death` is None.
    """
    if on_death is None:
        raise WorkerDiedError(f"{why}; most likely the machine had too little memory")
    return on_death(task, why)


def _in_pool(
    work: Callable[[Task], Outcome], tasks: dict[int, Task], workers: int, go_on: Callable[[], bool]
) -> Iterator[tuple[int, Outcome]]:
    """Yield the outcomes from fresh processes until all are done or one process dies."""
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")
    with signals_kept_from_children():
        pool = ProcessPoolExecutor(
            min(workers, len(tasks)), mp_context=context, initializer=end_with_parent
        )
    pending: dict[Future[Outcome], int] = {}
    to_come = iter(list(tasks.items()))

    def submit() -> None:
        """Give each idle worker one task. No more, since a submitted task cannot be taken back."""
        with signals_kept_from_children():
            while len(pending) < workers and go_on():
                index, task = next(to_come, (None, None))
                if index is None or task is None:
                    return
                pending[pool.submit(work, task)] = index

    try:
        submit()
        while pending:
            for future in wait(pending, return_when=FIRST_COMPLETED).done:
                index = pending.pop(future)
                with contextlib.suppress(BrokenProcessPool):
                    yield index, future.result()
            submit()
    except BrokenProcessPool:  # a process died while tasks were still submitted
        return
    except BaseException:
        # A run is written whole or not at all, so a worker can be stopped at any moment.
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        # Wait for the pool's management thread. Otherwise Python's exit may write to the pipe that
        # this thread is closing, and print a traceback.
        pool.shutdown()


class TimeBudget:
    """A budget of wall time for many runs: when it is over, no other run begins.

    A call says whether another run may begin. The time counts from when the object is made.
    """

    def __init__(self, text: str) -> None:
        """`text` is a time such as `90s`, `10min` or `2h`.

        Raises:
            ConfigError: `text` is not a time, or is zero.
        """
        length_s = seconds_of(text)
        if not length_s:
            raise ConfigError(
                f"--budget {shortened(text)}: expected a time such as 10min "
                f"({', '.join(TIME_UNITS)}), or with --until a number of replicates"
            )
        self.text, self.length_s = text, length_s
        self._ends = time.monotonic() + length_s

    @property
    def left_s(self) -> float:
        """Seconds until it is over; 0 after that."""
        return max(0.0, self._ends - time.monotonic())

    def __call__(self) -> bool:
        """Whether another run may begin."""
        return time.monotonic() < self._ends
