"""Times whole commands, each in a fresh process: the time that a user waits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cases import COMMON1000, POLICY_NAMES, Case


def python(*arguments: object) -> None:
    """Run Python to its end. Its CPU seconds count as those of this process's children.

    It may write bytecode, as an installed package has it: else every round compiles the sources.
    """
    command = [sys.executable, *map(str, arguments)]
    allowed = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, check=True, capture_output=True, env=allowed)


def bench_import(measure: Callable[..., None]) -> None:
    """`import artist`."""
    measure(partial(python, "-c", "import artist"), rounds=10)


def bench_help(measure: Callable[..., None]) -> None:
    """`artist --help`."""
    measure(partial(python, "-m", "artist", "--help"), rounds=10)


@pytest.mark.parametrize("case", [COMMON1000], ids=str)
def bench_command(measure: Callable[..., None], traces: Path, tmp_path: Path, case: Case) -> None:
    """`artist sim` on a thousand jobs. It writes a run directory."""
    command = ["sim", "--trace", case.trace(traces), "--racks", case.racks, "--policy", "fifo"]
    rest = ["--backend", "none", "--format", "json", "--out", tmp_path / "run", "--overwrite"]
    measure(partial(python, "-m", "artist", *command, *rest), rounds=3, items=case.jobs)


@pytest.mark.parametrize("policy", POLICY_NAMES)
def bench_paper(measure: Callable[..., None], policy: str) -> None:
    """500 jobs of the Dally paper's batch workload on its 1,024 GPUs, without cached estimates.

    The settings are those of the baseline. A default that changes moves `bench_default` alone.
    """
    asked = ["--calibration", "none", "--set", "system.uneven=flat"]
    measure(partial(python, *_paper(policy), *asked), rounds=2, items=500)


@pytest.mark.parametrize("policy", ["fifo", "dally"])
def bench_default(measure: Callable[..., None], policy: str) -> None:
    """The same with today's default settings."""
    measure(partial(python, *_paper(policy)), rounds=2, items=500)


def _paper(policy: str) -> list[str]:
    command = ["-m", "artist", "sim", "--racks", "16", "--policy", policy]
    return [*command, "--no-cache", "--format", "json"]
