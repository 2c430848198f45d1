"""The recorded traces and sessions beside this tree: tests that need them are skipped elsewhere."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared"
TRACES = SHARED / "traces"
SLURM = SHARED / "groundwork" / "slurm"
"""A folder for each session of a real Slurm."""

needs_traces = pytest.mark.skipif(not TRACES.is_dir(), reason="the measured traces are not here")
needs_slurm = pytest.mark.skipif(
    not SLURM.is_dir(), reason="the recorded sessions of Slurm are not here"
)
