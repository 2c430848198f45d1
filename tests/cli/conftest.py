"""Runs commands as a user does: in another process, with an empty home and an empty folder."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def artist(tmp_path: Path) -> Run:
    """`artist("sim", "--racks", "2", code=0)` in an empty folder; the code is checked."""

    def run(
        *arguments: str | Path, code: int | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        # With PYTHONPATH, or the command would not be that of a copy whose tests run.
        env = {
            **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
            "HOME": str(tmp_path / "home"),
            "ARTIST_CACHE_DIR": str(tmp_path / "cache"),
            **environment,
        }
        return forked.run(*arguments, cwd=tmp_path, env=env, code=code)

    return run
