"""Whole commands in fresh processes: what a person waits for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cases import COMMON1000, Shape

from artist.policies.table import POLICIES


def python(*arguments: object) -> None:
    """Run to the end in silence; its CPU seconds become ours."""
    command = [sys.executable, *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def bench_import(measure: Callable[..., None]) -> None:
    """`import artist`."""
    measure(partial(python, "-c", "import artist"), rounds=10)


def bench_help(measure: Callable[..., None]) -> None:
    """`artist --help`."""
    measure(partial(python, "-m", "artist", "--help"), rounds=10)


@pytest.mark.parametrize("shape", [COMMON1000], ids=str)
def bench_command(measure: Callable[..., None], traces: Path, tmp_path: Path, shape: Shape) -> None:
    """`artist sim` on a thousand jobs, run directory written."""
    command = ["sim", "--trace", shape.trace(traces), "--racks", shape.racks, "--policy", "fifo"]
    rest = ["--backend", "none", "--format", "json", "--out", tmp_path / "run"]
    measure(partial(python, "-m", "artist", *command, *rest), rounds=3, items=shape.jobs)


@pytest.mark.parametrize("policy", [entry.id for entry in POLICIES])
def bench_paper(measure: Callable[..., None], policy: str) -> None:
    """500 jobs of the Dally paper's batch workload on its 1,024 GPUs, nothing remembered."""
    command = ["sim", "--racks", "16", "--policy", policy, "--no-cache", "--format", "json"]
    measure(partial(python, "-m", "artist", *command), rounds=2, items=500)
