"""The folders of the recorded runs. Tests that need them are skipped if they are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded runs."""
    folder = SHARED / "reference"
    if not folder.is_dir():
        pytest.skip("the original's recorded runs are not here (../shared/reference)")
    return folder


@pytest.fixture(scope="session")
def workloads() -> Path:
    """The folder of the original's workloads."""
    folder = SHARED / "fidelity" / "workloads"
    if not folder.is_dir():
        pytest.skip("the original's workloads are not here (../shared/fidelity/workloads)")
    return folder


@pytest.fixture(scope="session")
def job_files() -> list[Path]:
    """The job files that the original was given."""
    files = sorted((SHARED / "traces").glob("sensetime_*.json"))
    if not files:
        pytest.skip("the original's job files are not here (../shared/traces)")
    return files
