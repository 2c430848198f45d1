"""Is Python's search for cycles put back as it was?"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from artist.garbage_collector import many_objects


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize("first", [700, 1_000_000])
def test_cycles_are_looked_for_rarely_and_then_as_often_as_before(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    with pytest.raises(KeyError), many_objects():
        assert gc.get_threshold() == (max(first, 100_000), 1_000, 10)
        raise KeyError
    assert gc.get_threshold() == (first, 10, 10)


def test_a_search_that_was_turned_off_stays_off() -> None:
    gc.set_threshold(0, 10, 10)
    with many_objects():
        assert gc.get_threshold() == (0, 10, 10)
    assert gc.get_threshold() == (0, 10, 10)
