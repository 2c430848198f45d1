"""Is a rendered folder there whole or not at all, and is nothing else replaced?"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

RENDER = (
    "render",
    "--model",
    "resnet18",
    "--placement",
    "8/7",
    "--fabric",
    "dally2025",
    "--out",
    "out",
)

# The command gets a signal before it writes its n-th file.
DRIVER = """
import os, sys
from pathlib import Path
import artist.cli.main
number, doomed = int(sys.argv.pop(1)), int(sys.argv.pop(1))
write, count = Path.write_bytes, 0

def dying(path, data):
    global count
    count += 1
    if count == doomed:
        os.kill(os.getpid(), number)
    return write(path, data)

Path.write_bytes = dying
artist.cli.main.main()
"""


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def stopped(folder: Path, number: int, doomed: int, *more: str) -> int:
    command = [sys.executable, "-c", DRIVER, str(int(number)), str(doomed), *RENDER, *more]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.parametrize("doomed", [1, 7])
def test_an_interruption_leaves_nothing(tmp_path: Path, doomed: int) -> None:
    assert stopped(tmp_path, signal.SIGINT, doomed) == 128 + signal.SIGINT
    assert names(tmp_path) == []


def test_a_kill_leaves_what_the_next_command_removes(artist, tmp_path: Path) -> None:
    assert stopped(tmp_path, signal.SIGKILL, 7) == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".out.")
    assert artist(*RENDER).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    whole = names(tmp_path)
    assert stopped(tmp_path, signal.SIGINT, 7, "--overwrite") == 128 + signal.SIGINT
    assert names(tmp_path) == whole


def test_what_render_did_not_write_is_not_replaced(artist, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert artist(*RENDER).returncode == 0
    refused = artist(*RENDER, code=2)
    assert ": out: holds a folder of rendered files already" in refused.stderr
    (smaller := [*RENDER])[4] = "8"
    assert artist(*smaller, "--overwrite").returncode == 0
    assert len(list(out.glob("workload.*.et"))) == 8
    assert not [path for path in out.iterdir() if path.is_dir() and path.name != "log"]
    (out / "log" / "err.log").write_text("a day of ASTRA-sim")
    refused = artist(*smaller, "--overwrite", code=2)
    assert "is not a folder of rendered files" in refused.stderr
    assert (out / "log" / "err.log").exists()
