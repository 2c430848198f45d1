"""Property tests draw the same examples in every run: a red build can be repeated."""

import gc
import os
import signal
import sys

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")

# Half of the time of collection goes into compiling, so Python keeps the bytecode even where
# the environment forbids it.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell's background jobs ignore Ctrl-C, and `nohup` a closed terminal: so would the programs that
# tests interrupt.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        ctrl_c = number == signal.SIGINT
        signal.signal(number, signal.default_int_handler if ctrl_c else signal.SIG_DFL)

# Each of xdist's workers has a core of its own. Otherwise every comparison that a test makes would
# start a process for each core, and importing artist there takes longer than most of its runs.
if "PYTEST_XDIST_WORKER" in os.environ and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(os.environ["PYTEST_XDIST_WORKER"][2:]) % len(cores)]})


def pytest_collection_finish() -> None:
    """Spare Python the search for cycles among the 350,000 objects of a collected suite."""
    gc.freeze()
    gc.set_threshold(20_000)
