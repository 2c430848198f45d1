import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import forked
import pytest
from nccl_logs import log

WriteLog = Callable[..., Path]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def artist(tmp_path: Path) -> Run:
    """Runs a command in `tmp_path`."""

    def run(*arguments: str | Path, code: int | None = None) -> subprocess.CompletedProcess[str]:
        cache = str(tmp_path / "cache")
        env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ARTIST_CACHE_DIR": cache}
        return forked.run(*arguments, cwd=tmp_path, env=env, code=code)

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
