"""Does a sweep survive a signal, a kill around any rename, and a disk that is full?"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_sweep import TINY, contents

from artist.errors import ConfigError
from artist.experiments import sweep as sweep_module
from artist.experiments.sweep import sweep
from artist.io.partials import partial_path

# A sweep in one process that is killed just before or after its n-th rename. The last two renames
# put the tables of results in place.
DRIVER = """
import os, signal, sys
from pathlib import Path
from artist.experiments.experiment import load_experiment
from artist.experiments.sweep import sweep

doomed, moment = int(sys.argv[3]), sys.argv[4]
count = 0

def dying(method):
    def rename(path, target):
        global count
        count += 1
        if count == doomed and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        renamed = method(path, target)
        if count == doomed:
            os.kill(os.getpid(), signal.SIGKILL)
        return renamed
    return rename

Path.rename, Path.replace = dying(Path.rename), dying(Path.replace)
sweep(load_experiment(Path(sys.argv[1])), Path(sys.argv[2]), [], workers=1, resume=True)
"""
RENAMES = 1 + 12 + 2  # the experiment's own file, its runs, results.csv and results.parquet

LONG_RUNS = 200
LONG = (
    "name: e\nversion: 1\nbase: {trace: sensetime-batch-500, backend: none, racks: 2}\n"
    f"grid: {{policy: [fifo, las], seed: {list(range(LONG_RUNS // 2))}}}\n"
)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "e.yaml"
    path.write_text(TINY.model_dump_json())
    return path


MOMENTS = [(1, "after"), (7, "before"), (RENAMES - 2, "before"), (RENAMES, "after")]
MORE = [(1, "before"), (2, "before"), (RENAMES - 2, "after"), (RENAMES - 1, "after"),
        (RENAMES, "before")]  # fmt: skip


@pytest.mark.parametrize(
    ("doomed", "moment"),
    [*MOMENTS, *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE)],
)
def test_killed_around_a_rename(tmp_path: Path, experiment: Path, doomed: int, moment: str) -> None:
    out = tmp_path / "out"
    killed = subprocess.run(
        [sys.executable, "-c", DRIVER, experiment, out, str(doomed), moment],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = {path: path.stat().st_mtime_ns for path in out.glob("runs/[!.]*/*")}
    result = sweep(TINY, out, [], workers=1, resume=True)
    runs_done = min(max(doomed - 1 - (moment == "before"), 0), 12)
    assert (result.skipped, result.done) == (runs_done, 12 - runs_done)
    assert all(path.stat().st_mtime_ns == written for path, written in done.items())
    sweep(TINY, tmp_path / "undisturbed", [], workers=1)
    assert contents(out) == contents(tmp_path / "undisturbed")


def test_leftovers_of_a_killed_sweep_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    partial_path(out / "experiment.json").write_text("{")
    sweep(TINY, out, [], workers=1)
    partial_path(out / "results.csv").write_text("run,")
    partial_path(out / "results.parquet").write_text("PAR1")
    partial_path(out / "runs" / "a-run").mkdir()
    mine = {partial_path(out / "notes.md"), out / "runs" / ".mine"}
    for folder in mine:
        folder.mkdir()
    sweep(TINY, out, [], workers=1, resume=True)
    assert set(out.rglob(".*")) == {out / ".lock", *mine}


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_signal_ends_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C reaches all processes of a terminal, SIGTERM only the first one."""
    experiment = tmp_path / "e.yaml"
    experiment.write_text(LONG)
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-m", "artist", "sweep", experiment, "--out", out, "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while process.poll() is None and not list(out.glob("runs/[!.]*")):
        time.sleep(0.02)
    os.kill(process.pid, number) if number == signal.SIGTERM else os.killpg(process.pid, number)
    output, errors = process.communicate(timeout=60)  # that is, the last worker has gone too
    assert process.returncode == 128 + number, errors
    assert output == ""
    done = len(list(out.glob("runs/*")))
    far = f"with {done} of {LONG_RUNS} runs done in {out}"
    assert errors == f"artist: interrupted {far}; add --resume to continue\n"
    assert errors.count("\n") == 1
    assert [path.name for path in out.rglob(".*")] == [".lock"]
    assert 0 < done < LONG_RUNS


def started(command: str, out: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    """A command in a session of its own, under way when this returns: two workers are there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "artist", command, *arguments, "--workers", "2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    )  # fmt: skip
    if command == "sweep":
        while process.poll() is None and not list(out.glob("runs/[!.]*")):
            time.sleep(0.02)
    else:
        while process.poll() is None and len(workers_of(process.pid)) < 2:
            time.sleep(0.02)
    return process


def workers_of(parent: int) -> list[int]:
    """Process ids of the workers of a command, by `ps`."""
    lines = subprocess.run(
        ["ps", "-A", "-ww", "-o", "ppid=", "-o", "pid=", "-o", "args="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    return [
        int(line.split()[1])
        for line in lines
        if line.split()[0] == str(parent) and "spawn_main" in line
    ]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT, signal.SIGHUP])
def test_no_worker_outlives_a_sweep_that_a_signal_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Every worker holds the pipes, so `communicate` returns when the last one has ended."""
    (tmp_path / "e.yaml").write_text(LONG)
    out = tmp_path / "out"
    process = started("sweep", out, tmp_path / "e.yaml", "--out", out)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert output == ""
    assert "Traceback" not in errors
    if number == signal.SIGHUP:
        assert process.returncode == 128 + number
        assert errors.startswith("artist: interrupted with ")
        assert [path.name for path in out.rglob(".*")] == [".lock"]
    else:
        assert process.returncode == -number


def test_no_worker_outlives_a_comparison_that_is_killed(tmp_path: Path) -> None:
    process = started(
        "compare", tmp_path, "--policies", "fifo,las", "--permutations", "100", "--racks", "2",
        "--backend", "none",
    )  # fmt: skip
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.slow
def test_a_stopped_worker_ends_with_its_sweep_too(tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("only the kernel of Linux ends a process that is stopped")
    (tmp_path / "e.yaml").write_text(LONG)
    out = tmp_path / "out"
    process = started("sweep", out, tmp_path / "e.yaml", "--out", out)
    for worker in workers_of(process.pid):
        os.kill(worker, signal.SIGSTOP)
    process.kill()
    process.communicate(timeout=60)


def test_a_clock_that_runs_backwards_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(TINY, tmp_path / "undisturbed", [], workers=1)
    clock = iter(range(10**9, 0, -(10**5)))
    monkeypatch.setattr(time, "time", lambda: float(next(clock)))
    sweep(TINY, tmp_path / "out", [], workers=1)
    for path in (tmp_path / "out").rglob("*"):
        os.utime(path, (0, 0) if path.suffix == ".json" else (4e9, 4e9))
    victim = next((tmp_path / "out" / "runs").iterdir())
    for file in victim.iterdir():
        file.unlink()
    victim.rmdir()
    result = sweep(TINY, tmp_path / "out", [], workers=1, resume=True)
    assert (result.skipped, result.done) == (11, 1)
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
    for summary in (tmp_path / "out").rglob("summary.json"):
        assert '"wall_s": -' not in summary.read_text()


def test_a_failed_write_is_reported_and_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(sweep_module, "write_table", lambda *_: full(out, b""))
        with pytest.raises(ConfigError, match=r"out: cannot be written \(No space left"):
            sweep(TINY, out, [], workers=1)
    assert sweep(TINY, out, [], workers=1, resume=True).skipped == 12


def test_a_marker_that_is_not_text_is_named(tmp_path: Path) -> None:
    sweep(TINY, tmp_path / "out", [], workers=1)
    (tmp_path / "out" / "experiment.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"experiment.json:1: not UTF-8"):
        sweep(TINY, tmp_path / "out", [], workers=1, resume=True)


WRAPPED = """
import artist.cli.main as command
from artist.cli.interruption import Interrupted, _interrupt

def wrapped():
    try:
        _interrupt(15, None)
    except Interrupted as interrupted:
        raise ValueError("Error calling function") from interrupted

command.application = lambda names: wrapped
command.main()
"""


def test_a_signal_whose_exception_a_library_wraps_ends_the_command_in_order() -> None:
    ended = subprocess.run([sys.executable, "-c", WRAPPED], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGTERM, "artist: interrupted\n")
