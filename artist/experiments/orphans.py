"""Ends a worker process when the process that started it is gone, however that ended.

A process that is killed outright cannot stop its workers, so they have to notice by themselves. Two
ways, each of which covers what the other does not:

- A thread waits for the end of the pipe that a spawned process shares with its parent. The system
  closes the parent's end when the parent ends. This works on every Unix.
- On Linux the kernel sends SIGKILL. This ends a worker too that is stopped, or so deep in compiled
  code that no thread of it can run.

A run is written whole or not at all, so a worker can be stopped at any moment.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.process import BaseProcess

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h


def end_with_parent() -> None:
    """Make this process, a worker that `multiprocessing` spawned, end when its parent does."""
    parent = multiprocessing.parent_process()
    assert parent is not None  # only workers call this
    # Ctrl-C reaches every process of a terminal. The parent ends its workers; they say nothing.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
