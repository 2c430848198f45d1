"""Does `artist policy new` write a policy that works, and does `--policy FILE.py:CLASS` run it?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = ("--trace", "tiny-batch", "--racks", "1", "--backend", "none")


def test_what_new_writes_passes_its_test_and_the_linter(artist, tmp_path: Path) -> None:
    ran = artist("policy", "new", "my_policy", code=0)
    assert "artist sim --policy my_policy.py:MyPolicy" in ran.stdout
    rules = ("--isolated", "--select", "E,F,W,I,B,D1,N,UP", "--ignore", "D107,D103")
    for command in (
        ("pytest", "-q", "test_my_policy.py"),
        ("ruff", "check", *rules, "."),
        ("ruff", "format", "--isolated", "--check", "."),
        ("ruff", "format", "--isolated", "--line-length", "100", "--check", "."),
    ):
        tried = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert tried.returncode == 0, (command, tried.stdout + tried.stderr)


def test_each_command_that_new_prints_works(artist) -> None:
    printed = artist("policy", "new", "patience").stdout
    commands = [line.split()[1:] for line in printed.splitlines() if line.startswith("  artist ")]
    assert [command[0] for command in commands] == ["policy", "sim", "compare"]
    for command in commands:
        ran = artist(*command)
        assert ran.returncode == 0, (command, ran.stderr)
        assert "patience.py:Patience" in ran.stdout


def test_new_overwrites_nothing(artist, tmp_path: Path) -> None:
    (tmp_path / "test_patience.py").write_text("precious")
    ran = artist("policy", "new", "patience", code=2)
    assert "test_patience.py: exists already" in ran.stderr
    assert (tmp_path / "test_patience.py").read_text() == "precious"
    assert not (tmp_path / "patience.py").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../patience", "expected a module's name"),
        ("Patience", "expected a module's name"),
        ("class", "expected a module's name"),
        ("test_mine", "expected a module's name"),
        ("random", "would hide the module 'random'"),
        ("artist", "would hide the module 'artist'"),
    ],
)
def test_new_refuses_names_that_would_not_work(artist, name: str, words: str) -> None:
    ran = artist("policy", "new", name)
    assert (ran.returncode, words in ran.stderr) == (2, True), ran.stderr


def test_check_finds_a_policy_that_reads_names(artist, tmp_path: Path) -> None:
    artist("policy", "new", "patience")
    file = tmp_path / "patience.py"
    file.write_text(file.read_text().replace("exact_key(-wait, job.job.gpus)", "job.job.id"))
    ran = artist("policy", "check", "patience.py:Patience", code=5)
    assert "not insensitive to names" in ran.stderr
    file.write_text(file.read_text().replace("job.job.id", "job.nothing"))
    ran = artist("policy", "check", "patience.py:Patience", code=5)
    assert "AttributeError" in ran.stderr and "patience.py:45" in ran.stderr


def test_check_takes_options(artist) -> None:
    artist("policy", "new", "patience")
    ran = artist("policy", "check", "patience.py:Patience", "--set", "policy.placement=any", code=0)
    ran = artist(
        "policy", "check", "patience.py:Patience", "--set", "policy.placement=anny", code=2
    )
    assert "placement" in ran.stderr


def test_check_gives_the_policy_prices(artist) -> None:
    pytest.importorskip("scipy")
    cost = ("policy", "check", "gavel", "--set", "policy.objective=cost")
    assert "price" in artist(*cost, code=2).stderr
    artist(*cost, "--set", "prices=2", code=0)


@pytest.mark.slow
def test_workers_of_compare_and_sweep_load_the_file(artist, tmp_path: Path) -> None:
    artist("policy", "new", "patience")
    ran = artist(
        "compare", "--policies", "patience.py:Patience,las", *TINY, "--workers", "2",
        "--permutations", "2", "--format", "json",
    )  # fmt: skip
    assert json.loads(ran.stdout)["variants"] == ["patience.py:Patience", "las"], ran.stderr
    (tmp_path / "e.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: tiny-batch, backend: none, racks: 1}\n"
        "grid: {policy: [las, 'patience.py:Patience'], seed: [0, 1]}\n"
    )
    ran = artist("sweep", "e.yaml", "--out", "out", "--workers", "2", code=0)
    names = sorted(path.name for path in (tmp_path / "out" / "runs").iterdir())
    assert len(names) == 4
    assert sum(name.startswith("patience.py-Patience_") for name in names) == 2
    rows = (tmp_path / "out" / "results.csv").read_text()
    assert rows.count(",patience.py:Patience,") == 2
    file = tmp_path / "patience.py"
    file.write_text(file.read_text() + "# changed\n")
    ran = artist("sweep", "e.yaml", "--out", "out", "--resume", code=2)
    assert "read another policy patience.py:Patience than there is now" in ran.stderr
