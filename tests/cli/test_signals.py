"""Does an interrupted run leave nothing behind, and say how far it came?"""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ENDLESS = Path(__file__).with_name("endless.py")


@pytest.fixture
def endless(tmp_path: Path):
    """A simulation in its own process, which would never end, writing its stderr to a pipe."""
    started = []

    def start(*arguments: str, stderr: int = subprocess.PIPE, **environment: str):
        command = [sys.executable, ENDLESS, "sim", "--policy", "endless", "--trace", "tiny-batch"]
        process = subprocess.Popen(
            [*map(str, command), "--racks", "1", *arguments],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "ARTIST_CACHE_DIR": str(tmp_path / "cache"),
                **environment,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


FINALISER = """
import os, signal
from artist.cli.interruption import Interrupted, listen, raise_if_lost

class Slow:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        len("the handler runs here, where nothing can be raised")

listen()
Slow()
try:
    raise_if_lost()
except Interrupted as interrupted:
    print(interrupted.exit_code)
class Broken:
    def __del__(self):
        raise ValueError("a mistake")
Broken()
"""


def test_a_signal_in_a_finaliser_prints_no_traceback_and_is_not_lost() -> None:
    command = [sys.executable, "-c", FINALISER]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("143\n", 0)
    assert "Interrupted" not in ran.stderr
    assert "ValueError: a mistake" in ran.stderr


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
def test_a_signal_ends_a_run_with_its_exit_code_and_nothing_written(
    endless, tmp_path: Path, number: signal.Signals, exit_code: int
) -> None:
    process = endless("--out", "runs/one")
    for line in process.stderr:
        if line == "endless\n":
            break
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == exit_code
    assert stdout == ""
    assert re.fullmatch(
        r"artist: interrupted on day [\d,]+\.\d of simulated time, with 3 of \d+ jobs finished; "
        r"nothing was written\n",
        stderr,
    )
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == []


def test_a_signal_that_a_library_swallows_ends_the_run_at_the_next_question(monkeypatch) -> None:
    from artist.cli import interruption
    from artist.cli.progress_bar import Watch

    monkeypatch.setattr(interruption, "_received", [])
    with pytest.raises(interruption.Interrupted):
        interruption._interrupt(signal.SIGTERM, None)
    with pytest.raises(interruption.Interrupted) as raised, Watch(quiet=True) as watch:
        watch(None)
    assert raised.value.exit_code == 143


def test_an_interruption_between_two_renames_keeps_the_earlier_run(tmp_path, monkeypatch) -> None:
    from artist.cli.interruption import Interrupted
    from artist.io import writing

    out, scratch = tmp_path / "run", tmp_path / ".run-new"
    for folder in (out, scratch):
        folder.mkdir()
        (folder / "manifest.json").write_text(folder.name)
    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path == scratch:
            raise Interrupted(signal.SIGINT)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", interrupted)
    with pytest.raises(Interrupted):
        writing._put_in_place(scratch, out, overwrite=True)
    assert (out / "manifest.json").read_text() == "run"
    assert {path.name for path in tmp_path.iterdir()} == {"run", ".run-new"}


def test_a_terminal_shows_how_far_a_long_run_is(endless) -> None:
    screen, its_end = pty.openpty()
    process = endless(stderr=its_end, COLUMNS="100", TERM="xterm")
    os.close(its_end)
    shown = ""
    while not re.search(r"day [\d.,]+: 0 running, \d+ waiting, [\d,]+ jobs/s.*%", shown):
        shown += os.read(screen, 1000).decode()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    os.close(screen)


COMPARED = ("--policies", "fifo,las", "--trace", "sensetime-batch-500", "--workers", "1")


@pytest.mark.slow
def test_an_interrupted_comparison_says_how_many_runs_are_done(tmp_path: Path) -> None:
    arguments = ["compare", *COMPARED, "--racks", "2", "--permutations", "40"]
    process = subprocess.Popen(
        [sys.executable, "-m", "artist", *arguments],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "ARTIST_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "80 runs on 1 worker" in line:  # printed when two runs are done
            break
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    told = re.search(
        r"^artist: interrupted with (\d+) of 80 runs done; nothing was written$", stderr, re.M
    )
    assert told, stderr
    assert 2 <= int(told[1]) < 80


@pytest.mark.parametrize(
    ("runs", "told"),
    [
        ([], "before the first run was done; nothing was written"),
        ([(1, 8), (2, 8)], "with 2 of 8 runs done; nothing was written"),
    ],
)
def test_counting_runs(runs: list[tuple[int, int]], told: str) -> None:
    from artist.cli.interruption import Interrupted
    from artist.cli.progress_bar import counting

    shown: list[tuple[int, int]] = []
    with pytest.raises(Interrupted) as raised:  # noqa: SIM117
        with counting(lambda *run: shown.append(run)) as on_done:
            for run in runs:
                on_done(*run)
            raise Interrupted(signal.SIGINT)
    assert str(raised.value) == f"interrupted {told}"
    assert shown == runs


COMPARING = """
import os, signal, sys
from artist.cli.main import main
from artist.experiments.comparison import runs

runs_before, calls, simulate = int(sys.argv.pop(1)), [], runs.simulate

def interrupted(scenario, **options):
    calls.append(scenario)
    if len(calls) > runs_before:
        os.kill(os.getpid(), signal.SIGINT)
    return simulate(scenario, **options)

runs.simulate = interrupted
main()
"""


@pytest.mark.parametrize("format_", ["table", "json"])
@pytest.mark.parametrize(("runs_done", "complete"), [(13, 6), (9, 0), (0, 0)])
def test_an_interrupted_comparison_prints_what_it_has(
    tmp_path: Path, runs_done: int, complete: int, format_: str
) -> None:
    asked = "compare --racks 1 --trace tiny-batch --policies fifo,las --workers 1 --format"
    ran = subprocess.run(
        [sys.executable, "-c", COMPARING, str(runs_done), *asked.split(), format_],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 130
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("artist: interrupted ")
    assert "; nothing was written" in last
    if not complete:
        assert ran.stdout == ""
        return
    assert last.endswith(
        f"with {runs_done} of 16 runs done; nothing was written; the answer is from the "
        f"{complete} complete replicates"
    )
    if format_ == "json":
        told = json.loads(ran.stdout)
        assert (len(told["replicates"]), told["replicates_asked"]) == (complete, 8)
    else:
        assert f", {complete} permutations" in ran.stdout.splitlines()[0]
        assert "JCT mean" in ran.stdout.splitlines()[1]


def test_nothing_is_printed_once_the_terminal_is_gone() -> None:
    from artist.cli.interruption import Interrupted

    assert not Interrupted(signal.SIGHUP).is_read
    assert Interrupted(signal.SIGTERM).is_read
