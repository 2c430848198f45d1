"""Do damaged runs and bad requests end in one sentence, the right exit code, and no file?"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from run_making import damage, edit_json, make_run, replace

from artist.errors import ArtistError
from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import read_runs


def drop(column):
    return lambda table: table.drop_columns([column])


def first(value):
    return lambda values: [value, *values[1:]]


DAMAGES = {
    "noise": (lambda run: (run / "jobs.parquet").write_bytes(b"PAR1 noise"), "jobs.parquet"),
    "cut": (
        lambda run: (run / "placements.parquet").write_bytes(
            (run / "placements.parquet").read_bytes()[:2000]
        ),
        "placements.parquet",
    ),
    "gone": (lambda run: (run / "timeline.parquet").unlink(), "timeline.parquet"),
    "column": (lambda run: damage(run, "jobs", drop("jct_s")), "lacks the column 'jct_s'"),
    "words": (
        lambda run: damage(run, "jobs", replace("jct_s", lambda v: ["soon" for _ in v])),
        "'jct_s' should hold numbers",
    ),
    "null": (
        lambda run: damage(run, "jobs", replace("jct_s", first(None))),
        "'jct_s' has no number in row 0",
    ),
    "no text": (
        lambda run: damage(run, "jobs", replace("model", first(None))), "'model' should hold text",
    ),
    "before": (
        lambda run: damage(run, "jobs", replace("jct_s", first(-5.0))),
        "'jct_s' holds -5 in row 0, expected more than 0",
    ),
    "never": (
        lambda run: damage(run, "jobs", replace("queue_delay_s", first(-5.0))),
        "'queue_delay_s' holds -5 in row 0, expected 0 or more",
    ),
    "infinite": (
        lambda run: damage(run, "timeline", replace("time_s", first(float("inf")))), "row 0",
    ),
    "astronomic": (
        lambda run: damage(run, "timeline", replace("time_s", first(1e300))), "row 0",
    ),
    "backwards": (
        lambda run: damage(run, "placements", replace("start_s", first(1e9))),
        "row 0 starts at 1e+09 s, after its end at",
    ),
    "empty": (lambda run: damage(run, "jobs", lambda t: t.slice(0, 0)), "nothing to plot"),
    "place": (
        lambda run: damage(run, "placements", replace("placement", first("0:x"))), "'0:x'",
    ),
    "holdings": (
        lambda run: damage(run, "placements", replace("placement", first("0:0"))), "'0:0'",
    ),
    "json": (lambda run: (run / "summary.json").write_text("{"), "summary.json"),
    "list": (lambda run: (run / "summary.json").write_text("[]"), "expected a JSON object"),
    "metric": (lambda run: edit_json(run / "summary.json", makespan_s="long"), "makespan_s"),
    "scenario": (lambda run: edit_json(run / "manifest.json", scenario=None), "no scenario"),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_runs(one: Path, name: str) -> None:
    change, words = DAMAGES[name]
    change(one)
    with pytest.raises(ArtistError) as caught:
        page(group(read_runs([one])))
    assert caught.value.exit_code == 3
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_run_writes_nothing(artist, one: Path, tmp_path: Path) -> None:
    (one / "jobs.parquet").write_bytes(b"noise")
    for arguments in (("report", one), ("export", one), ("report", one, "--figures", "figures")):
        ran = artist(*arguments, code=3)
        assert "jobs.parquet: cannot be read as Parquet" in ran.stderr
        assert "Traceback" not in ran.stderr
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("report", "nowhere"), "nowhere: does not exist"),
        (("report", "{run}/summary.json"), "is a file"),
        (("report", "{here}"), "not a run directory and holds none"),
        (("report", "{run}", "--out", "{here}"), "is a folder"),
        (("report", "{run}", "--out", "no/where/report.html"), "not a writable folder"),
        (("report", "{run}", "--figures", "{run}/summary.json"), "is a file"),
        (("report", "{run}", "--baseline", "daly"), "did you mean 'dally'"),
        (("report", "{run}", "--figures", "x", "--figure-format", "bmp"), "bmp"),
        (("export", "{run}", "--out", "{here}"), "is a folder"),
        (("export", "{run}", "--format", "csv"), "csv"),
        (("report",), "DIR"),
    ],
)
def test_bad_requests(artist, one: Path, tmp_path: Path, arguments, words: str) -> None:
    here = tmp_path / "here"
    ran = artist(*(a.format(run=one, here=here) for a in arguments), code=2)
    assert words in ran.stderr.replace("\n", " ")
    assert "Traceback" not in ran.stderr
    assert list(here.iterdir()) == []


def test_export_of_a_folder_asks_for_one_run(artist, runs: Path) -> None:
    ran = artist("export", runs, code=2)
    assert "holds 8 runs" in ran.stderr


def test_half_written_runs_are_not_read(one: Path, tmp_path: Path) -> None:
    shutil.copytree(one, tmp_path / "sweep" / "whole")
    shutil.copytree(one, tmp_path / "sweep" / ".half-x1")
    assert [Path(run.name).name for run in read_runs([tmp_path / "sweep"])] == ["whole"]


def test_the_same_run_is_read_once(one: Path) -> None:
    assert len(read_runs([one, one, one.parent])) == 1


def test_a_policy_without_timers_is_not_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path / "fifo", policy="fifo", backend="none")
    assert b"autotuner.parquet" not in page(group(read_runs([run]))).split(b"<script>")[0]
