"""Fewer searches by Python's garbage collector while a great many objects are made.

Reading a trace and simulating make millions of objects that refer to each other in no circle. The
collector looks for circles again and again and finds none.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A hundred times Python 3.11's own threshold. With that one the searches took a sixth of a long
# simulation's time.
_NEW_OBJECTS = 100_000
# Objects that were there at one search are searched again only after this many of them. Rows and
# jobs stay to the end: a second search of all of them takes a tenth of the time of a million jobs.
_SEARCHES = 1_000


def search_rarely() -> None:
    """Search once in 100,000 new objects, and only the new ones, to the end of the process."""
    first, second, third = gc.get_threshold()
    if first:  # 0 means never
        gc.set_threshold(max(first, _NEW_OBJECTS), max(second, _SEARCHES), third)


@contextmanager
def many_objects() -> Iterator[None]:
    """`search_rarely`, and afterwards as before.

    The setting is the whole process's. Of two threads that use it at once, the last one to leave
    decides.
    """
    before = gc.get_threshold()
    search_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)
