"""Runs for the tests of reports, and the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import forked
import pytest
from browser import Browser
from run_making import EVIL, damage, edit_json, make_run, replace


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: two policies, two cluster sizes, two seeds of drawn arrivals."""
    folder = tmp_path_factory.mktemp("runs")
    for policy in ("dally", "gandiva"):
        for racks in (1, 2):
            for seed in (0, 1):
                make_run(
                    folder / f"{policy}-{racks}-{seed}",
                    policy=policy, racks=racks, seed=seed, arrivals="poisson:20",
                )  # fmt: skip
    return folder


@pytest.fixture(scope="session")
def _one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("one") / "dally", policy="dally")


@pytest.fixture
def one(_one: Path, tmp_path: Path) -> Path:
    """A copy of one run for each test."""
    return Path(shutil.copytree(_one, tmp_path / "run"))


@pytest.fixture
def evil(one: Path) -> Path:
    """A run whose names are markup."""
    for name, column in (
        ("jobs", "job_id"), ("placements", "job_id"), ("placements", "level"),
        ("placements", "signature"), ("placements", "ended"), ("waits", "job_id"),
        ("waits", "cause"), ("waits", "reason"),
    ):  # fmt: skip
        damage(one, name, replace(column, lambda values: [f"{EVIL}{value}" for value in values]))
    damage(one, "jobs", replace("model", lambda values: [EVIL for _ in values]))
    manifest = json.loads((one / "manifest.json").read_text())
    scenario = manifest["scenario"] | {"policy": EVIL, "trace": EVIL, "fabric": EVIL}
    edit_json(one / "manifest.json", scenario=scenario)
    edit_json(one / "summary.json", policy=EVIL, trace=EVIL, artist_version=EVIL)
    return one


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    browser = Browser(str(shutil.which("chromedriver")), tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which jobs wait, are preempted, and move."""
    return make_run(
        tmp_path_factory.mktemp("busy") / "gandiva", policy="gandiva", arrivals="poisson:200"
    )


@pytest.fixture
def artist(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`artist("report", run)` in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home")}

    def call(*arguments: str | Path, code: int | None = None) -> subprocess.CompletedProcess[str]:
        return forked.run(*arguments, cwd=here, env=environment, code=code)

    return call
