"""Ties a worker process to the process that started it: it ends with that, and only with that.

A process that is killed outright cannot stop its workers, so they have to notice by themselves. Two
ways, each of which covers what the other does not:

- A thread waits for the end of the pipe that a spawned process shares with its parent. The system
  closes the parent's end when the parent ends. This works on every Unix.
- On Linux the kernel sends SIGKILL. This ends a worker too that is stopped, or so deep in compiled
  code that no thread of it can run.

A run is written whole or not at all, so a worker can be stopped at any moment.

Signals of a terminal (Ctrl-C, Ctrl-\\, its closing) reach every process of it. They are for the
parent, which ends its workers. A worker that took them would say so in its own words.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h
_OF_A_TERMINAL = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


@contextmanager
def signals_kept_from_children() -> Iterator[None]:
    """Keep signals of a terminal for ever from the processes that are started meanwhile.

    This process gets them when the block ends. A child inherits the mask, so there is no moment at
    which it is unprotected. One child is Python's resource tracker, which cleans up after the pool.
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
