"""Runs in the folder of a test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from regions_and_tables import simulate

from artist.results.result import Result


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Result]:
    """`run(rows)` is `regions_and_tables.simulate` in an empty folder."""
    return partial(simulate, tmp_path)
