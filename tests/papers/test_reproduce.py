"""Can the paper's figures be reproduced by number, with its numbers beside ours?"""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
from pathlib import Path

import forked
import pytest

from artist.cli.commands.reproduce import _print
from artist.errors import ConfigError
from artist.experiments.experiment import runs
from artist.papers.comparing import Judged, claim_rows, judge, latency_rows, value_rows
from artist.papers.definition import Claim, Item, load_paper, paper_names
from artist.papers.reproduce import check_out, experiment_of, reproduce
from artist.policies.table import POLICIES
from artist.report.page import figures
from artist.results.statistics.compare_values import ComparedValues
from artist.results.terms.glossary import find

DALLY = load_paper("dally")
ITEMS = {item.id: item for item in DALLY.items}


def artist(*arguments: str, cwd: Path, code: int | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "ARTIST_CACHE_DIR": str(cwd / "cache")}
    return forked.run(*arguments, cwd=cwd, env=env, code=code)


def test_papers_and_their_items_are_listed(tmp_path: Path) -> None:
    papers = json.loads(artist("reproduce", "--format", "json", cwd=tmp_path).stdout)
    assert [paper["paper"] for paper in papers] == paper_names() == ["dally"]
    shown = artist("reproduce", "dally", cwd=tmp_path).stdout
    for item in DALLY.items:
        assert item.id in shown
    assert "not reproducible: a diagram" in shown
    assert "120 runs, about" in shown


def test_the_paper_has_13_figures_and_3_tables() -> None:
    figures_ = {item.id.split()[1].rstrip("ab") for item in DALLY.items if "figure" in item.id}
    assert figures_ == {str(number) for number in range(1, 14)}
    assert [item.id for item in DALLY.items if "table" in item.id] == [
        "table 1", "table 2", "table 3",
    ]  # fmt: skip


@pytest.mark.parametrize("item", DALLY.items, ids=list(ITEMS))
def test_every_item_can_run_or_says_why_not(item: Item) -> None:
    assert bool(item.reason) != bool(item.runs or item.latencies)
    if item.runs:
        assert len(runs(experiment_of(DALLY, item, 5))) == 5 * item.runs
        assert item.section
    for metric in item.metrics:
        assert find(metric)
    for policy in (*item.policies, *item.values):
        assert POLICIES[policy]
    for claim in item.claims:
        assert claim.metric in item.metrics
        assert claim.rival in item.policies
        assert set(claim.racks or ()) <= set(item.racks)
        assert claim.low is None or (claim.low <= (claim.high or claim.low))
    assert all(len(numbers) == len(item.metrics) for numbers in item.values.values())


def test_figures_of_one_number_come_together() -> None:
    assert [item.id for item in DALLY.items_of("figure", "13")] == ["figure 13a", "figure 13b"]
    assert [item.id for item in DALLY.items_of("figure", "13b")] == ["figure 13b"]
    assert [item.id for item in DALLY.items_of("figure", "1")] == ["figure 1"]


@pytest.mark.parametrize(
    ("kind", "number", "words"),
    [
        ("figure", "3", "cannot be reproduced: it is a diagram"),
        ("figure", "20", "known: 1, 2, 3"),
        ("table", "4", "known: 1, 2, 3"),
        ("figure", ".*", "unknown figure"),
    ],
)
def test_other_numbers_are_refused(kind: str, number: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        DALLY.items_of(kind, number)


def judged(claim: Claim, ratio: float, verdict: str) -> Judged:
    return Judged(claim, 2, ComparedValues(ratio, 0.0, ratio, ratio, verdict, 5, 0.0, None))


RANGE = Claim(metric="m", rival="r", low=-36, high=-19, paper="-19 to -36 %")
BOUND = Claim(metric="m", rival="r", low=-69, paper="up to -69 %")
WORDS = Claim(metric="m", rival="r", paper="less")
WORSE = Claim(metric="m", rival="r", low=39, high=39, less=False, paper="+39 %")


@pytest.mark.parametrize(
    ("claim", "ratio", "verdict", "word", "beside"),
    [
        (RANGE, 0.75, "less", "holds, as large as in the paper", 1.0),
        (RANGE, 0.5, "less", "holds, larger than in the paper", 0.5 / 0.64),
        (RANGE, 0.9, "less", "holds, smaller than in the paper", 0.9 / 0.81),
        (RANGE, 1.2, "more", "opposite", 1.2 / 0.81),
        (RANGE, 0.75, "undecided", "undecided", 1.0),
        (RANGE, 0.75, "no difference", "no difference", 1.0),
        (RANGE, 0.75, "too few replicates", "no verdict: too few replicates", 1.0),
        (BOUND, 0.5, "less", "holds, within the paper's bound", 0.5 / 0.31),
        (BOUND, 0.2, "less", "holds, larger than in the paper", 0.2 / 0.31),
        (WORDS, 0.5, "less", "holds", math.nan),
        (WORSE, 1.2, "more", "holds, smaller than in the paper", 1.2 / 1.39),
        (WORSE, 0.8, "less", "opposite", 0.8 / 1.39),
    ],
)
def test_words_and_ratios_of_a_claim(
    claim: Claim, ratio: float, verdict: str, word: str, beside: float
) -> None:
    one = judged(claim, ratio, verdict)
    assert one.word == word
    assert one.over_paper == pytest.approx(beside, nan_ok=True)


def test_claims_are_judged_on_equal_seeds() -> None:
    item = ITEMS["figure 13a"].model_copy(update={"racks": (4,)})
    values = {
        (4, policy, "jct_mean_s"): tuple(factor * (100 + seed) for seed in range(5))
        for policy, factor in (("dally", 0.7), ("tiresias", 1.0), ("gandiva", 2.0))
    }
    rows = claim_rows(judge(item, values))
    assert [(row["policies"], row["racks"], round(row["ours"], 9)) for row in rows[:2]] == [
        ("dally against tiresias", 4, -0.3),
        ("dally against gandiva", 4, -0.65),
    ]
    assert rows[0]["verdict"] == "holds, as large as in the paper"


def test_a_tables_rows_are_ours_over_the_papers() -> None:
    values = {(8, "dally", "jct_mean_s"): (100.0, 200.0)}
    (row,) = value_rows(ITEMS["table 2"], values)
    assert row == {
        "policy": "dally", "metric": "jct_mean_s", "ours": 150.0, "paper": 2828955.0,
        "ours / paper": 150.0 / 2828955.0,
    }  # fmt: skip


def test_table_1_is_what_the_calibration_fits() -> None:
    rows = latency_rows(ITEMS["table 1"], "dally2025", "dally2025-table1")
    assert len(rows) == 18
    for row in rows:  # the machine column is fitted, and ResNet50's whole row
        if row["level"] == "machine" or row["model"] == "resnet50":
            assert row["ours / paper"] == pytest.approx(1, abs=0.01)
    first = latency_rows(ITEMS["figure 1"], "dally2025", "dally2025-table1")[0]
    assert first["ours"] == 1 + rows[0]["ours"] / 100
    assert first["paper"] == 1.01


SMALL = ITEMS["figure 13a"].model_copy(
    update={"racks": (4,), "policies": ("dally", "tiresias", "gandiva")}
)
TINY = DALLY.model_copy(update={"base": {**DALLY.base, "jobs": 30}})


def test_a_figure_from_runs_to_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    out = tmp_path / "out"
    made = reproduce(TINY, SMALL, out, [], seeds=1, workers=1)
    assert [path.name for path in made.files] == [
        "figure-13a.csv", "figure-13a-paper.csv", "figure-13a.svg", "figure-13a.png",
    ]  # fmt: skip
    assert all(path.stat().st_size for path in made.files)
    svg = (out / "figure-13a.svg").read_text()
    for word in ("4 racks", "ours, against tiresias", "the paper", "JCT mean"):
        assert word in svg
    assert len(list(csv.DictReader((out / "figure-13a.csv").read_text().splitlines()))) == 3
    rows = list(csv.DictReader((out / "figure-13a-paper.csv").read_text().splitlines()))
    assert {row["verdict"] for row in rows} <= {"no verdict: too few replicates", "identical"}
    with pytest.raises(ConfigError, match=r"figure-13a.* already; .* --overwrite"):
        check_out([SMALL], out, overwrite=False)
    check_out([SMALL], out, overwrite=True)
    check_out([ITEMS["figure 1"]], out, overwrite=False)


def test_printed_items_name_the_world_and_only_intervals_that_exist(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = reproduce(TINY, SMALL, tmp_path, [], seeds=1, workers=1)
    _print(DALLY, made, 1)
    shown = " ".join(capsys.readouterr().out.split())
    assert "Ours is a difference of too few replicates to tell;" in shown
    assert "The world: fabric dally2025, imitates" in shown


@pytest.mark.slow
def test_runs_are_shared_between_figures_and_calls(tmp_path: Path) -> None:
    reproduce(TINY, SMALL, tmp_path, [], seeds=1, workers=1)
    before = {path.stat().st_ino for path in tmp_path.glob("sweep/runs/*/manifest.json")}
    tails = ITEMS["figure 8"].model_copy(update={"racks": (4,), "policies": SMALL.policies})
    reproduce(TINY, tails, tmp_path, [], seeds=2, workers=1)
    after = {path.stat().st_ino for path in tmp_path.glob("sweep/runs/*/manifest.json")}
    assert before < after
    assert (len(before), len(after)) == (3, 6)


def test_a_drawn_figure_is_that_of_the_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from artist.report.grouping import group
    from artist.report.reader import read_runs

    # One rack is crowded enough for jobs to move.
    item = ITEMS["figure 12"].model_copy(update={"racks": (1,), "policies": ("dally", "tiresias")})
    made = reproduce(TINY, item, tmp_path, [], seeds=1, workers=1)
    assert any("jobs-remaining" in path.name for path in made.files)
    # Each prefix that items name is one of the report's figures.
    names = [figure.name for figure in figures(group(read_runs([tmp_path / "sweep"])))]
    for item in DALLY.items:
        for prefix in item.drawn:
            assert any(name.startswith(prefix) for name in names), prefix


def test_a_table_by_number_on_the_command_line(tmp_path: Path) -> None:
    result = artist("reproduce", "dally", "--table", "1", "--out", "o", cwd=tmp_path, code=0)
    assert "mobilenetv3\tnetwork\t6,681\t19,592\t0.34" in result.stdout
    again = artist("reproduce", "dally", "--table", "1", "--out", "o", cwd=tmp_path, code=2)
    assert "--overwrite (runs are kept)" in again.stderr


def test_one_of_both(tmp_path: Path) -> None:
    for more in (("--table", "1"), ("--quick", "--seeds", "3")):
        result = artist("reproduce", "dally", "--figure", "7", *more, cwd=tmp_path, code=2)
        assert "give only one" in result.stderr


def test_runs_that_fail_are_handed_on_and_nothing_is_written(tmp_path: Path) -> None:
    # Jobs of eight GPUs do not fit four racks of one GPU.
    one = {"machines_per_rack": 1, "gpus_per_machine": 1}
    narrow = DALLY.model_copy(update={"base": {**TINY.base, **one}})
    made = reproduce(narrow, SMALL, tmp_path, [], seeds=1, workers=1)
    assert [failure.exit_code for failure in made.failures] == [3, 3, 3]
    assert "demands" in made.failures[0].error
    assert made.files == []
    assert not list(tmp_path.glob("figure-13a*"))
