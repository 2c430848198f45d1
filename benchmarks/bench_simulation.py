"""The simulation loop, from the first event to the last row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import COMMON480, COMMON1000, COMMON5000, PHILLY, Shape, loop

from artist.policies.table import POLICIES


@pytest.mark.parametrize("policy", ["fifo", "las"])
@pytest.mark.parametrize("shape", [COMMON480, COMMON1000, COMMON5000], ids=str)
def bench_loop(measure: Callable[..., None], traces: Path, shape: Shape, policy: str) -> None:
    """Small clusters, simple policies: where the peers are measured too."""
    path = shape.trace(traces)
    measure(prepare=lambda: loop(path, shape.racks, policy), rounds=5, items=shape.jobs)


@pytest.mark.parametrize("policy", [entry.id for entry in POLICIES])
@pytest.mark.parametrize("shape", [PHILLY], ids=str)
def bench_long_loop(measure: Callable[..., None], traces: Path, shape: Shape, policy: str) -> None:
    """Three months of a cluster, once per policy."""
    path = shape.trace(traces)
    measure(prepare=lambda: loop(path, shape.racks, policy), rounds=1, items=shape.jobs)
