from collections.abc import Callable
from pathlib import Path

import pytest
from nccl_logs import log

WriteLog = Callable[..., Path]


@pytest.fixture
def write_log(tmp_path: Path) -> WriteLog:
    """Writes a synthetic log, with an optional change of its text."""

    def write(change: Callable[[str], str] = str, **numbers: object) -> Path:
        chosen = {"alpha_us": 20.0, "beta_us_per_byte": 1e-5, **numbers}
        path = tmp_path / "run.log"
        path.write_text(change(log(**chosen)))  # type: ignore[arg-type]
        return path

    return write
