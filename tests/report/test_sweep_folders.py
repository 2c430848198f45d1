"""Does a report of a sweep show the runs that its present grid has?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.experiments.experiment import Experiment
from artist.experiments.sweep import sweep
from artist.report.reader import read_runs


def experiment(policies: list[str]) -> Experiment:
    return Experiment(
        name="tiny", version=1, base={"trace": "tiny-batch", "backend": "none", "racks": 1},
        grid={"policy": policies},
    )  # fmt: skip


@pytest.fixture
def smaller(tmp_path: Path) -> Path:
    """A sweep of three policies whose grid has two now."""
    out = tmp_path / "out"
    sweep(experiment(["fifo", "las", "sjf"]), out, [], workers=1)
    sweep(experiment(["fifo", "sjf"]), out, [], workers=1, resume=True)
    return out


@pytest.mark.parametrize("below", [".", "runs", ".."])
def test_runs_that_left_the_grid_are_left_out(smaller: Path, below: str) -> None:
    told: list[tuple[str, int]] = []
    shown = read_runs([smaller / below], lambda folder, count: told.append((folder.name, count)))
    assert [run.scenario["policy"] for run in shown] == ["fifo", "sjf"]
    assert [count for _, count in told] == [1]


def test_a_run_that_is_named_is_shown(smaller: Path) -> None:
    folders = sorted((smaller / "runs").iterdir())
    assert len(read_runs(folders, lambda *_: pytest.fail("left out"))) == 3


def test_a_grid_that_cannot_be_read_leaves_out_nothing(smaller: Path) -> None:
    (smaller / "experiment.json").write_text("{")
    assert len(read_runs([smaller])) == 3


def test_a_grid_of_which_no_run_is_known_leaves_out_nothing(smaller: Path) -> None:
    # As after a change of artist's settings: then runs have other names.
    (smaller / "experiment.json").write_text(experiment(["srtf"]).model_dump_json())
    assert len(read_runs([smaller])) == 3
