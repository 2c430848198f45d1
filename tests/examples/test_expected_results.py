"""Do the shipped experiments still result in what was written down, to the last digit?"""

from __future__ import annotations

import csv

import pytest
from expected import FOLDERS, NAMES, experiment, known, rows

from artist.experiments.experiment import load_experiment, runs
from artist.run import simulate
from artist.settings import load_scenario

LARGE = {"dally-paper": 60, "what-if-fabric": 20}  # roughly their seconds


@pytest.mark.parametrize(
    "example", [pytest.param(x, marks=[pytest.mark.slow] * (x in LARGE)) for x in NAMES]
)
def test_an_experiment_results_in_what_was_written_down(example: str) -> None:
    after, before = rows(example), known(example)
    assert len(after) == len(before)
    for index, (now, then) in enumerate(zip(after, before, strict=True)):
        changed = {key: (then.get(key), now[key]) for key in now if now[key] != then.get(key)}
        assert not changed, f"{example}, row {index + 1}: (written down, now) {changed}"
        assert list(now) == list(then)


@pytest.mark.parametrize("example", NAMES)
def test_every_run_has_its_row(example: str) -> None:
    """This includes experiments that are too large to run here."""
    cells = runs(load_experiment(experiment(example)))
    before = known(example)
    assert [[str(v) for _, v in cell.point] for cell in cells] == [
        [row[key] for key, _ in cells[0].point] for row in before
    ]
    assert all(row["jobs_finished"] == row["jobs_total"] for row in before)


def test_the_page_tells_the_quickstarts_results() -> None:
    page = (FOLDERS["quickstart"].parent / "README.md").read_text()
    told = {
        (row["policy"], row["racks"]): f"{float(row['jct_mean_s']) / 3600:.0f} hours"
        for row in known("quickstart")
    }
    for which in (("fifo", "1"), ("fifo", "2"), ("dally", "1")):
        assert told[which] in page, which


def test_the_scenario_is_the_experiments_first_run() -> None:
    scenario = load_scenario(FOLDERS["quickstart"] / "scenario.yaml", {}, [])
    summary = simulate(scenario).summary
    first = known("quickstart")[0]
    assert (first["policy"], first["racks"]) == (scenario.policy, str(scenario.racks))
    assert {key: str(summary[key]) for key in first if key != "racks"} == {
        key: value for key, value in first.items() if key != "racks"
    }


def test_the_command_gives_the_same_figures(tmp_path) -> None:
    """`artist sweep` and the written rows agree in all they share."""
    from typer.testing import CliRunner

    from artist.cli.main import application

    out = tmp_path / "out"
    arguments = ["sweep", str(experiment("quickstart")), "--out", str(out), "--quiet"]
    ran = CliRunner().invoke(application(), [*arguments, "--workers", "1"])
    assert ran.exit_code == 0, ran.output
    with (out / "results.csv").open(newline="") as file:
        swept = list(csv.DictReader(file))
    for now, then in zip(swept, known("quickstart"), strict=True):
        assert {key: now[key] for key in then} == then
