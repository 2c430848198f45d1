"""Does the page about MAST's Table 1 say what its runs say, and do the runs still say it?"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from study_scripts import import_study, run_study

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "studies" / "mast" / "study"


def study(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_study(SCRIPT, *arguments)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The scripts by name."""
    return import_study(SCRIPT, ("workloads", "plan", "observations", "wording"), monkeypatch)


def test_the_page_says_what_the_rows_say() -> None:
    ran = study("page", "--check")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_the_runs_still_say_it() -> None:
    ran = study("runs", "--every", "37")
    assert ran.returncode == 0, ran.stderr


def test_every_planned_run_has_one_row(modules: dict[str, ModuleType]) -> None:
    observations, plan = modules["observations"], modules["plan"]
    places = [tuple(row[x] for x in observations.PLACE) for row in observations.read()]
    assert places == [run.place for run in plan.planned()]


def test_the_workloads_have_the_published_quantiles(modules: dict[str, ModuleType]) -> None:
    workloads = modules["workloads"]
    made = [job for seed in range(12) for job in workloads.jobs(workloads.PAPER, 1.3, seed, 2688)]
    gpus = np.percentile([job.gpus for job in made], [50, 90, 99])
    assert gpus.tolist() == [16, 64, 128]
    run_s = [job.iterations * job.compute_s for job in made]
    assert np.percentile(run_s, 50) == pytest.approx(20 * 60, rel=0.1)
    assert np.percentile(run_s, 90) == pytest.approx(6.7 * 3600, rel=0.1)


def test_the_load_is_met_on_average(modules: dict[str, ModuleType]) -> None:
    workloads = modules["workloads"]
    hours = workloads.WARM_H + workloads.COUNTED_H
    loads = [
        sum(
            x.gpus * x.iterations * x.compute_s
            for x in workloads.jobs(workloads.URGENT, 1.5, s, 2688)
        )
        / (2688 * hours * 3600)
        for s in range(12)
    ]
    assert np.mean(loads) == pytest.approx(1.5, rel=0.05)
