"""Times the simulation loop, from the first event to the last row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cases import COMMON480, COMMON1000, COMMON5000, PHILLY, POLICY_NAMES, Case, loop


@pytest.mark.parametrize("policy", ["fifo", "las"])
@pytest.mark.parametrize("case", [COMMON480, COMMON1000, COMMON5000], ids=str)
def bench_loop(measure: Callable[..., None], traces: Path, case: Case, policy: str) -> None:
    """Small clusters and simple policies, on which `peers.py` measures other simulators too."""
    path = case.trace(traces)
    measure(prepare=lambda: loop(path, case.racks, policy), rounds=5, items=case.jobs)


@pytest.mark.parametrize("policy", POLICY_NAMES)
@pytest.mark.parametrize("case", [PHILLY], ids=str)
def bench_long_loop(measure: Callable[..., None], traces: Path, case: Case, policy: str) -> None:
    """Three months of a cluster, once per policy."""
    path = case.trace(traces)
    measure(prepare=lambda: loop(path, case.racks, policy), rounds=1, items=case.jobs)
