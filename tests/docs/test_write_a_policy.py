"""Does docs/write-a-policy.md work as written, and does the reference list the whole view?"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest

import artist
from artist.contract import ClusterView, JobView
from artist.policies.run_times import knows_run_times
from artist.workload.job import Job

PAGE = Path(__file__).parents[2] / "docs" / "write-a-policy.md"
REFERENCE = PAGE.with_name("policy-reference.md")


def test_the_commands_of_the_how_to_work_and_write_what_it_shows(tmp_path: Path) -> None:
    text = PAGE.read_text()
    commands = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0].splitlines()
    assert [command.split()[1] for command in commands] == ["policy", "policy", "sim", "compare"]
    for command in [*(line.split() for line in commands), ["pytest", "-q", "test_patience.py"]]:
        run_module(command, tmp_path)
    for name, code in python_files():
        if name != "shortest.py":
            assert (tmp_path / name).read_text() == code


def run_module(command: list[str], folder: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def python_files() -> list[tuple[str, str]]:
    """Name and text of each file that the page shows."""
    files = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert [name for name, _ in files] == ["patience.py", "shortest.py", "test_patience.py"]
    return files


def test_the_second_example_works_as_typed_and_is_sjf(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "shortest.py").write_text(dict(python_files())["shortest.py"])
    commands = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)[1].splitlines()
    assert [command.split()[1] for command in commands] == ["policy", "sim"]
    for command in commands:
        run_module(command.split(), tmp_path)
    monkeypatch.chdir(tmp_path)
    ours, theirs = (
        artist.simulate(
            artist.Scenario(racks=1, trace="sensetime-batch-500", backend="none", policy=policy),
            cache=False,
        )
        for policy in ("shortest.py:Shortest", "sjf")
    )
    for column, values in theirs.tables["placements"].items():
        assert list(ours.tables["placements"][column]) == list(values), column
    assert knows_run_times("shortest.py:Shortest")


@pytest.mark.parametrize(
    ("which", "class_"), [("view", ClusterView), ("job", JobView), ("submitted", Job)]
)
def test_the_tables_of_what_a_policy_sees_are_the_classes(which: str, class_: type) -> None:
    text = REFERENCE.read_text().partition(f"<!-- tested against the classes: {which} -->")[2]
    cells = re.findall(r"^\| (`.*?) \|", text.partition("\n\n")[0], re.MULTILINE)
    shown = re.findall(r"`(\w+)(?:\(.*?\))?`", " ".join(cells))
    inherited = {*dir(tuple), *dir(Protocol)}
    assert sorted(shown) == sorted(
        name for name in dir(class_) if not name.startswith("_") and name not in inherited
    )
