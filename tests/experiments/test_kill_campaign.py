"""Does nothing get lost, mixed or left over, whenever and however a sweep or comparison is killed?

Every round starts a command on two workers, waits for a random moment, and sends a signal to the
command alone or to its whole group. Then no process may be left. What is in the output must be
whole runs. A resumed sweep must have the bytes of an undisturbed one, and a file of the user's that
lies beside the output must be as before. `KILLS` and `KILL_SEED` set how many rounds, and which.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_sweep import contents

KILLS = int(os.environ.get("KILLS", "6"))
SEED = int(os.environ.get("KILL_SEED", "1"))
ENDS_IN_ORDER = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGQUIT, *ENDS_IN_ORDER)

EXPERIMENT = """name: killed
version: 1
base: {trace: sensetime-batch-500, jobs: 200}
grid: {policy: [fifo, las, srtf, dally], racks: [1, 2, 4]}
"""


def _started(*arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "artist", *map(str, arguments), "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    )  # fmt: skip


def _killed(process: subprocess.Popen[str], moments: random.Random) -> None:
    """Kill it at a random moment; nothing of its session is left, and nobody saw a traceback."""
    try:
        process.wait(timeout=moments.uniform(0.1, 3.0))
    except subprocess.TimeoutExpired:
        number = moments.choice(SIGNALS)
        send = moments.choice((os.kill, os.killpg))
        send(process.pid, number)
    # The pipes close only when the last worker has gone too.
    output, errors = process.communicate(timeout=30)
    # Until `main` begins, while Python starts, a signal gets Python's own traceback.
    if "Traceback" in errors:
        assert not re.search(r'artist/cli/main\.py", line \d+, in (?!<module>)', errors), errors
    assert "Traceback" not in output, output
    code = process.returncode
    assert code == 0 or -code in SIGNALS or code - 128 in ENDS_IN_ORDER, (code, errors)
    _no_process_of(process.pid)


def _no_process_of(session: int) -> None:
    """Wait until nobody is in this session any more; at most 5 s."""
    end = time.monotonic() + 5
    while left := _processes_of(session):
        assert time.monotonic() < end, f"left: {left}"
        time.sleep(0.02)


def _processes_of(session: int) -> list[int]:
    left = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:  # it ended meanwhile
            continue
        state, _, _, its_session = text.rsplit(")", 1)[1].split()[:4]
        if int(its_session) == session and state != "Z":
            left.append(int(stat.parent.name))
    return left


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_killed_at_any_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    others = [tmp_path / "notes.md", tmp_path / "cache" / "thesis.txt"]
    for other in others:
        other.write_text("mine")
    experiment = tmp_path / "e.yaml"
    experiment.write_text(EXPERIMENT)
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "out"
    sweep = ("sweep", experiment, "--resume", "--out")
    _done(*sweep, undisturbed)
    moments = random.Random(SEED)
    compare = ("compare", "--policies", "fifo,las", "--permutations", "40", "--racks", "2")
    for number in range(KILLS):
        if number % 4 == 3:
            _killed(_started(*compare), moments)
        else:
            _killed(_started(*sweep, out), moments)
            for manifest in out.glob("runs/[!.]*/manifest.json"):
                json.loads(manifest.read_text())
        if number % 8 == 7:
            _equal_after_a_last_resume(sweep, out, undisturbed)
    _equal_after_a_last_resume(sweep, out, undisturbed)
    assert [other.read_text() for other in others] == ["mine", "mine"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "notes.md", "cache", "e.yaml", "undisturbed"
    }  # fmt: skip


def _done(*arguments: str | Path) -> None:
    process = _started(*arguments)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors


def _equal_after_a_last_resume(sweep: tuple[str | Path, ...], out: Path, undisturbed: Path) -> None:
    _done(*sweep, out)
    assert contents(out) == contents(undisturbed)
    assert [path.name for path in out.rglob(".*")] == [".lock"]
    shutil.rmtree(out)
