"""Python's search for cycles, done rarely where a great many objects without any are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# A hundred times what Python 3.11 starts with. The search walks what is new, and now and then
# everything: a sixth of a long simulation's time, of which this leaves nothing to measure.
_NEW_OBJECTS = 100_000


@contextmanager
def many_objects() -> Iterator[None]:
    """Look for cycles once in 100,000 new objects; as often as before afterwards.

    The whole process does: of two threads that use it at once, the last one to leave decides.
    """
    first, *others = gc.get_threshold()
    if first:  # 0 means never
        gc.set_threshold(max(first, _NEW_OBJECTS), *others)
    try:
        yield
    finally:
        gc.set_threshold(first, *others)
