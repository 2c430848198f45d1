"""The paper's sweep, killed with -9 three times, once amid a rename, equals an undisturbed one."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from expected import experiment

RUNS = 56
# Dies just before the rename that puts its third run in place.
AMID_A_RENAME = """
import os, signal, sys
from pathlib import Path
from artist.experiments.experiment import load_experiment
from artist.experiments.sweep import sweep

rename, count = Path.rename, 0

def dying(path, target):
    global count
    count += 1
    if count == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)

Path.rename = dying
sweep(load_experiment(Path(sys.argv[1])), Path(sys.argv[2]), [], workers=1, resume=True)
"""


def contents(out: Path) -> dict[str, object]:
    """All files, without what may differ between two runs."""
    files: dict[str, object] = {}
    for path in out.rglob("*"):
        if path.name in ("manifest.json", "summary.json"):
            data = json.loads(path.read_text())
            files[str(path.relative_to(out))] = {
                key: data[key] for key in data if key not in ("volatile", "command", "wall_s")
            }
        elif path.is_file() and path.name != ".lock":
            files[str(path.relative_to(out))] = path.read_bytes()
    return files


@pytest.mark.slow
def test_killed_three_times_the_papers_sweep_is_the_same(tmp_path: Path) -> None:
    file = experiment("dally-paper")
    command = [sys.executable, "-m", "artist", "sweep", file, "--quiet", "--workers", "2", "--out"]
    subprocess.run([*command, tmp_path / "undisturbed"], check=True, capture_output=True)
    out = tmp_path / "killed"
    done: dict[Path, int] = {}
    moments = random.Random(11)
    for kill in range(3):
        resume = [*command, out, "--resume"]
        if kill == 1:
            resume = [sys.executable, "-c", AMID_A_RENAME, file, out]
        process = subprocess.Popen(
            resume, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        enough = len(list(out.glob("runs/[!.]*"))) + moments.randint(3, 12)
        while process.poll() is None and (kill == 1 or len(list(out.glob("runs/[!.]*"))) < enough):
            time.sleep(0.05)
        time.sleep(moments.uniform(0, 0.3))
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        now = {path: path.stat().st_mtime_ns for path in out.glob("runs/[!.]*/*")}
        assert now.items() >= done.items()  # nothing lost, nothing done twice
        assert len(done) < len(now) < RUNS * 6
        done = now
    subprocess.run([*command, out, "--resume"], check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in out.glob("runs/*/*")}.items() >= done.items()
    assert len(list(out.glob("runs/*"))) == RUNS
    assert contents(out) == contents(tmp_path / "undisturbed")
