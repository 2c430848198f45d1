import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from nccl_logs import log

WriteLog = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def artist(tmp_path: Path) -> Run:
    """Runs a command in `tmp_path`."""

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        cache = str(tmp_path / "cache")
        return subprocess.run(
            [sys.executable, "-m", "artist", *map(str, arguments)],
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARTIST_CACHE_DIR": cache},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


@pytest.fixture
def write_log(tmp_path: Path) -> WriteLog:
    """Writes a synthetic log, with an optional change of its text."""

    def write(change: Callable[[str], str] = str, **numbers: object) -> Path:
        chosen = {"alpha_us": 20.0, "beta_us_per_byte": 1e-5, **numbers}
        path = tmp_path / "run.log"
        path.write_text(change(log(**chosen)))  # type: ignore[arg-type]
        return path

    return write
