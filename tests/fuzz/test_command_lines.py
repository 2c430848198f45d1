"""Absurd command lines end in a result or a named error, soon, and leave the user's files alone."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest
from campaign import CASES, MEMORY_MIB, SEED
from command_lines import BASES, MINE, broken_line, changed, commands, ended_well, prepare

REST = {"train", "measure", "replay", "whatif", "forecast", "doctor", "astra", "policy check",
        "calibrate profile", "calibrate machine", "calibrate goodput", "cache verify",
        "cache clear"}  # fmt: skip
"""Commands that need an extra, an engine or files of their own; `astra` ends as ASTRA-sim does."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the command lines are run."""
    monkeypatch.setenv("ARTIST_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    prepare(tmp_path / "here")
    return tmp_path / "here"


def campaign(folder: Path, name: str, cases: int, seed: int) -> int:
    """How many of the command lines ended well.

    Raises:
        AssertionError: names the command line that did not end as it should.
    """
    mine, good = {name: (folder / name).read_bytes() for name in MINE}, 0
    for case in range(cases):
        line = broken_line(name, random.Random(f"{seed}.{case}"))
        try:
            good += ended_well(line)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}, case {case}: {line}") from error
        asked = {*line} if "--overwrite" in line else set()
        assert {*changed(folder, mine)} <= asked, f"{name}, seed {seed}, case {case}: {line}"
    used_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert used_mib < MEMORY_MIB, f"{name}, seed {seed}: {used_mib:.0f} MiB"
    return good


def test_every_command_has_a_line() -> None:
    assert {*BASES} | REST == {*commands()}


@pytest.mark.parametrize("name", BASES)
def test_the_lines_end_well_as_they_are(folder: Path, name: str) -> None:
    assert ended_well([*name.split(), *BASES[name]])


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_a_few_absurd_lines(folder: Path, name: str) -> None:
    assert campaign(folder, name, 10, seed=0) < 10


@pytest.mark.slow
@pytest.mark.parametrize("name", BASES)
def test_many_absurd_lines(folder: Path, name: str) -> None:
    assert campaign(folder, name, CASES // 10, SEED) < CASES // 10
