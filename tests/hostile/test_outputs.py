"""Does an output that cannot be written or read end with one sentence, and leave nothing behind?"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SIM = ("sim", "--trace", "tiny-batch", "--racks", "1", "--quiet")
LARGER = ("sim", "--trace", "sensetime-batch-500", "--racks", "2", "--quiet")
SYNTH = ("trace", "synth", "--load", "1", "--gpus", "64", "--jobs")


def ended(process, code: int, *words: str) -> str:
    output, errors = process.communicate(timeout=120)
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    for word in words:
        assert word in errors
    return output or ""


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Whatever happens inside, the folder holds the same names afterwards."""
    before = sorted(path.name for path in folder.iterdir())
    yield
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.fixture
def run(start, tmp_path: Path) -> Path:
    ended(start(*SIM, "--out", "run"), 0)
    return tmp_path / "run"


@pytest.mark.slow
def test_a_full_disk(start, disk, run: Path, tmp_path: Path) -> None:
    full = disk("size=64k")
    for command in (
        (*LARGER, "--out", full / "run"),
        ("report", run, "--out", full / "r.html"),
        (*SYNTH, "5000", "--out", full / "t.csv"),
    ):
        with nothing_left(full):
            ended(start(*command), 2, "cannot be written", "No space left")


@pytest.mark.slow
def test_a_disk_that_fills_up_during_a_sweep(start, disk, tmp_path: Path) -> None:
    """The runs that fit are kept, the others are reported, and a resume goes on from there."""
    (tmp_path / "e.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: tiny-batch, racks: 1, backend: none}\n"
        "grid: {policy: [fifo, las, srtf, sjf, srsf]}\n"
    )
    full = disk("size=96k")
    sweep = ("sweep", "e.yaml", "--workers", "1", "--out", full / "out")
    ended(start(*sweep), 2, "No space left")
    kept = {path: (path / "manifest.json").read_bytes() for path in (full / "out/runs").iterdir()}
    assert 0 < len(kept) < 5
    assert not [path for path in (full / "out").rglob(".*") if path.name != ".lock"]
    subprocess.run(["mount", "-o", "remount,size=1m", full], check=True)
    ended(start(*sweep, "--resume"), 0)
    assert (full / "out/results.csv").read_text().count("\n") == 6
    assert all((path / "manifest.json").read_bytes() == data for path, data in kept.items())


@pytest.mark.slow
def test_a_read_only_disk(start, disk, run: Path, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("name: e\nversion: 1\nbase: {trace: tiny-batch}\n")
    fixed = disk("ro")
    for command in (
        (*SIM, "--out", fixed / "run"),
        ("report", run, "--out", fixed / "r.html"),
        ("report", run, "--figures", fixed / "figures"),
        ("sweep", "e.yaml", "--out", fixed / "out"),
        (*SYNTH, "5", "--out", fixed / "t.csv"),
    ):
        ended(start(*command), 2, str(fixed), "writ")


def test_a_cache_that_cannot_be_written_costs_time_only(start, disk) -> None:
    for options in ("ro", "size=16k"):
        environment = {"PATH": os.environ["PATH"], "ARTIST_CACHE_DIR": str(disk(options) / "cache")}
        ran = start(*SIM, "--format", "json", env=environment)
        assert json.loads(ended(ran, 0))["jobs_finished"] == 20


@pytest.mark.parametrize("command", [SIM, ("list", "policies"), ("explain", "makespan")])
def test_standard_output_on_a_full_disk(start, command) -> None:
    with Path("/dev/full").open("w") as full:
        ended(start(*command, stdout=full), 2, "No space left")


@pytest.mark.slow
@pytest.mark.parametrize("read", [0, 1])
def test_standard_output_without_a_reader(start, read: int) -> None:
    """Like before `| head -1`: silent, whichever library meets the closed pipe first."""
    for command in (SIM, ("list", "models"), ("sim", "--help"), ("schema", "scenario")):
        process = start(*command)
        assert len(process.stdout.read(read)) == read
        process.stdout.close()
        errors = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 0
        assert errors == ""


def test_notes_without_a_reader_do_not_change_the_exit_code(start) -> None:
    for command, code in ((SIM, 0), (("sim", "--racks", "none"), 2), (("sim", "--racks", "0"), 2)):
        process = start(*command)
        process.stderr.close()
        process.stdout.read()
        process.stdout.close()
        assert process.wait(60) == code


def test_standard_output_that_is_closed(start) -> None:
    """Like `>&-` in a shell."""
    for close in ((1,), (1, 2)):
        process = start(*SIM, "--out", f"run{len(close)}", close_fds=False,
                        preexec_fn=lambda close=close: [os.close(fd) for fd in close])  # fmt: skip
        ended(process, 0)


def test_a_terminal_that_knows_ascii_only(start, tmp_path: Path) -> None:
    (tmp_path / "t\u00e4glich.csv").write_text("job_id,arrival_s,gpus\n")
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ended(start("sim", "--trace", "t\u00e4glich.csv", env=environment), 3, "t\\xe4glich.csv")


@pytest.mark.parametrize("there", ["file", "other", "link"])
def test_an_output_that_exists_is_not_touched(start, tmp_path: Path, there: str) -> None:
    out = tmp_path / "out"
    if there == "file":
        out.write_text("years of work")
    elif there == "other":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    else:
        out.symlink_to(tmp_path / "nowhere" / "at all")
    (tmp_path / "e.yaml").write_text("name: e\nversion: 1\nbase: {trace: tiny-batch}\n")
    (tmp_path / "home").mkdir()
    with nothing_left(tmp_path):
        ended(start(*SIM, "--out", out), 2, f"{out}: ")
        ended(start("sweep", "e.yaml", "--out", out), 2, f"{out}: ")
    assert there == "link" or "work" in (out if there == "file" else out / "thesis.tex").read_text()


def test_two_runs_into_one_folder(start, tmp_path: Path) -> None:
    """One run is there, whole. The other command replaces it or says that it could not."""
    both = [start(*SIM, "--out", "run", "--policy", policy) for policy in ("fifo", "las")]
    codes, errors = [], ""
    for process in both:
        errors += process.communicate(timeout=120)[1]
        codes.append(process.returncode)
    assert 0 in codes and set(codes) <= {0, 2}
    assert codes == [0, 0] or "another" in errors
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert summary["policy"] == manifest["scenario"]["policy"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".run")] == []
