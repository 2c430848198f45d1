"""Do the pages of studies say what their runs say, and do the runs still say it?"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from studies.cassini.study.observations import RUNS as CASSINI
from studies.common.rows import Runs
from studies.failures.study.simulated import RUNS as FAILURES
from studies.llm.study.observations import RUNS as LLM
from studies.loop.study.observations import RUNS as LOOP
from studies.mast.study.observations import RUNS as MAST
from studies.rl.study.observations import RUNS as RL

ROOT = Path(__file__).parents[2]
REPEATED = {
    "cassini": 97,
    "contention": 95,
    "failures": 1,
    "llm": 89,
    "loop": 41,
    "mast": 37,
    "rl": 97,
}
"""One in this many runs is repeated. 95 meets all policies: it shares no divisor with 36."""


def study(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"studies.{name}.study", *arguments],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_the_page_says_what_the_rows_say(name: str) -> None:
    ran = study(name, "page", "--check")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", REPEATED)
def test_the_runs_still_give_their_rows(name: str) -> None:
    ran = study(name, "runs", "--every", str(REPEATED[name]))
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "runs", [CASSINI, FAILURES, LLM, LOOP, MAST, RL], ids=lambda x: x.file.study
)
def test_every_planned_run_has_one_row(runs: Runs) -> None:
    places = [tuple(row[column] for column in runs.place) for row in runs.file.read()]
    assert places == [run.place for run in runs.planned()]
    assert len(set(places)) == len(places)


def test_a_changed_page_is_detected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    command = importlib.import_module("studies.common.command")
    (tmp_path / "studies" / "any").mkdir(parents=True)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    write = lambda folder: (folder / "README.md").write_text("a number")  # noqa: E731
    command.write_page("any", write, False)
    command.write_page("any", write, True)
    (tmp_path / "studies" / "any" / "README.md").write_text("another number")
    with pytest.raises(SystemExit, match=r"README\.md differs; `make study-any` rebuilds it"):
        command.write_page("any", write, True)


def test_an_interrupted_study_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = importlib.import_module("studies.common.rows")
    monkeypatch.setattr(rows, "ROOT", tmp_path)
    file = rows.RowsFile(tmp_path / "results.csv", FAILURES.file.columns, "failures")
    fastest = [run for run in FAILURES.planned() if run.case["run"]["gpus"] == 2048]
    other = FAILURES.planned()[0]
    theirs = {row["case"]: row for row in FAILURES.file.read()}
    # What is done is not done again: no run would give this row.
    done = tmp_path / "build" / "failures" / "rows.csv"
    done.parent.mkdir(parents=True)
    kept = {**theirs[other.place[0]], "outages": "kept"}
    rows.RowsFile(done, file.columns, "failures").write([kept])
    rows.Runs(file, FAILURES.place, lambda: [*fastest, other], FAILURES.row_of).do_all(1)
    assert file.read() == [theirs[fastest[0].place[0]], kept]


def test_rows_with_other_columns_are_refused(tmp_path: Path) -> None:
    rows = importlib.import_module("studies.common.rows")
    (tmp_path / "results.csv").write_text("other\n1\n")
    with pytest.raises(SystemExit, match="`make study-any` rebuilds them"):
        rows.RowsFile(tmp_path / "results.csv", ("seed",), "any").read()
