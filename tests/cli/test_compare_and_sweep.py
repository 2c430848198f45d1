"""Do `artist compare` and `artist sweep` print and write what they should?"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from artist.cli.commands.sweep import MOST_ROWS
from artist.cli.comparison_details import print_details
from artist.config import Scenario
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.variants import everyday_policies
from artist.results.statistics.replicate_means import replicate_mean
from artist.results.terms.number_text import short, time_unit

SMALL = ("--racks", "1", "--trace", "tiny-batch", "--backend", "none")


def test_without_policies_ten_are_compared_and_the_work_is_announced(artist) -> None:
    result = artist("compare", *SMALL, "--permutations", "1", "--format", "json")
    told = json.loads(result.stdout)
    assert told["variants"] == everyday_policies()
    # On a busy machine there are lines every ten seconds too.
    lines = [x for x in result.stderr.splitlines() if "so far" not in x and " done" not in x]
    announced, runs, forecast = lines
    assert announced.startswith("comparing 10 policies: dally, fifo, ")
    assert runs == "10 runs"
    assert forecast.startswith("10 runs on ")
    assert " in all" in forecast


def test_all_prints_ranges_words_parts_and_the_bound(capsys) -> None:
    scenario = Scenario(racks=1, jobs=60)
    print_details(compare(scenario, ["fifo", "fifo-backfill"], seeds=1, permutations=5))
    shown = capsys.readouterr().out
    best, against = "Average JCT: fifo-backfill has the lowest, ", "better: fifo-backfill finishes"
    assert 0 < shown.index(best) < shown.index(against)
    assert shown.split(best)[1].splitlines()[0].endswith("surely lower than all others.")
    assert (
        "2 comparisons are judged together (Holm): each policy against fifo, on each metric of the "
        "table.\n"
    ) in shown
    assert "(lower bound)" in shown
    assert "No policy can finish all jobs in less than 233,494 s (lower bound" in shown
    assert "preemption and restarts (s)" in shown
    assert "-0 " not in shown


def test_a_part_has_a_share_only_where_the_verdict_is_sure(capsys) -> None:
    print_details(compare(Scenario(racks=1, jobs=60), ["fifo", "las"], seeds=1, permutations=2))
    *_, row, _ = capsys.readouterr().out.splitlines()
    assert row.split()[0] == "las"
    assert "%" not in row


def test_chosen_metrics_have_table_and_words(artist) -> None:
    asked = ("--policies", "fifo,las", "--metrics", "preemptions", "--all")
    shown = artist("compare", *SMALL, *asked).stdout
    assert "(preemptions; " in shown
    assert "makespan" not in shown
    assert "JCT" not in shown


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_comparison_is_written(artist, tmp_path: Path, suffix: str) -> None:
    asked = ("compare", *SMALL, "--policies", "fifo,las", "--permutations", "1")
    file = tmp_path / f"c.{suffix}"
    assert artist(*asked, "--values", file).returncode == 0
    rows = (
        list(csv.DictReader(file.read_text().splitlines()))
        if suffix == "csv"
        else pq.read_table(file).to_pylist()
    )
    assert {row["policy"] for row in rows if row["metric"] == "jct_mean_s"} == {"fifo", "las"}


def test_a_file_of_another_kind_is_refused_before_any_run(artist) -> None:
    result = artist("compare", *SMALL, "--values", "c.xlsx")
    assert result.stderr == (
        "artist: error: --values c.xlsx: expected a name that ends in .csv or .parquet\n"
    )


def test_a_sweep_prints_its_results(artist, tmp_path: Path) -> None:
    grid = "grid:\n  policy: [fifo, las]\n  racks: [1, 2]\n"
    base = "base: {trace: tiny-batch, backend: none}\n"
    (tmp_path / "e.yaml").write_text(f"name: e\nversion: 1\n{base}{grid}")
    shown = artist("sweep", "e.yaml", "--out", "o").stdout
    heading = next(line for line in shown.splitlines() if "makespan (" in line)
    assert heading.split()[:2] == ["policy", "racks"]
    assert [line.split()[:2] for line in shown.splitlines() if line.split()[:1] == ["las"]] == [
        ["las", "1"],
        ["las", "2"],
    ]
    (tmp_path / "e.yaml").write_text(
        f"name: e\nversion: 1\n{base}grid:\n  policy: [fifo]\n  racks: [1]\n"
    )
    resumed = artist("sweep", "e.yaml", "--out", "o", "--resume")
    assert "3 finished runs in o/runs are not of this grid" in resumed.stderr
    told = artist("report", "o").stderr
    assert "o: 3 runs left out, of an earlier grid of this sweep; give the run directories" in told
    assert "report.html: 1 run, " in told


def test_a_setting_and_a_metric_of_one_name_have_a_column_each(artist, tmp_path: Path) -> None:
    base = "base: {trace: tiny-batch, backend: none, policy: fifo}\n"
    (tmp_path / "often.yaml").write_text(
        "machine: {distribution: exponential, mtbf_s: 5.0e4, repair_s: 1800}\n"
    )
    grid = "grid: {failures: [none, often.yaml], permutation: [0, 1], racks: [1, 2]}\n"
    (tmp_path / "e.yaml").write_text(f"name: e\nversion: 1\n{base}{grid}")
    shown = artist("sweep", "e.yaml", "--out", "o").stdout
    told = [line.split()[:2] for line in shown.splitlines() if line.startswith("often.yaml")]
    assert told == [["often.yaml", "1"], ["often.yaml", "2"]]
    with (tmp_path / "o" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["failures_setting"] for row in rows] == 4 * ["none"] + 4 * ["often.yaml"]
    for row in rows:
        run = json.loads((tmp_path / "o" / "runs" / row["run"] / "summary.json").read_text())
        assert row["failures"] == str(run.get("failures", ""))


def test_a_sweep_over_seeds_ends_with_means_and_the_command_for_differences(
    artist, tmp_path: Path
) -> None:
    base = "name: e\nversion: 1\nbase: {trace: tiny-batch, arrivals: 'poisson:20', backend: none}\n"
    grid = "grid: {seed: [0, 1, 2, 3, 4], policy: [fifo], racks: [1, 2]}\n"
    (tmp_path / "e.yaml").write_text(base + grid)
    shown = artist("sweep", "e.yaml", "--out", "o o").stdout
    assert shown.splitlines()[-1] == (
        "Differences with intervals, and figures: artist report 'o o'"
    )
    assert (
        "# results: geometric means, with 95 % intervals where there are five runs or more" in shown
    )
    two = next(line.split("\t") for line in shown.splitlines() if line.startswith("fifo\t1\t"))
    with (tmp_path / "o o" / "results.csv").open() as file:
        all_rows = list(csv.DictReader(file))
    values = [float(row["jct_mean_s"]) for row in all_rows if row["racks"] == "1"]
    told = replicate_mean(values, list(range(5)), geometric=True)
    heading = next(line.split("\t") for line in shown.splitlines() if "jct_mean (" in line)
    every = [float(row["jct_mean_s"]) for row in all_rows]
    unit = time_unit(min(every))
    assert heading[3] == f"jct_mean ({unit.name})"
    mean, low, high = (short(value / unit.seconds) for value in told)
    assert two[3] == f"{mean} [{low} .. {high}]"
    resumed = artist("sweep", "e.yaml", "--out", "o o", "--resume").stdout
    assert resumed.partition("# results")[2] == shown.partition("# results")[2]


def test_a_long_sweep_says_where_the_rest_is(artist, tmp_path: Path) -> None:
    restarts = list(range(MOST_ROWS + 2))
    base = "name: e\nversion: 1\nbase: {trace: tiny-batch, backend: none}\n"
    (tmp_path / "e.yaml").write_text(f"{base}grid: {{restart_s: {restarts}}}\n")
    shown = artist("sweep", "e.yaml", "--out", "o").stdout
    told = f"The first {MOST_ROWS} of {len(restarts)} runs; o/results.csv has all runs, and every"
    assert told in shown


def test_an_unknown_grid_key_ends_in_one_sentence(artist, tmp_path: Path) -> None:
    (tmp_path / "e.yaml").write_text("name: e\nversion: 1\ngrid:\n  polcy: [fifo]\n")
    result = artist("sweep", "e.yaml", "--out", "o")
    assert result.stderr == (
        "artist: error: e.yaml:4: grid: unknown setting 'polcy' (did you mean 'policy'?)\n"
    )


@pytest.mark.slow
def test_a_comparison_says_why_more_bandwidth_changes_nothing(artist) -> None:
    twice = ("--policies", "fifo", "--vary", "fabric.network.bandwidth=x2", "--permutations", "1")
    ran = artist("compare", "--racks", "2", "--jobs", "40", "--fabric", "dally2025", *twice)
    sentence = "More bandwidth of network changes little: under fifo, "
    assert ran.stdout.count(sentence) == 1, ran.stderr
    told = ran.stdout.split(sentence)[1].splitlines()[0]
    assert re.fullmatch(
        r"communication is \d+ % of the GPU time that jobs hold in one run; "
        r"\d+ % of it belongs to jobs that do not cross network; of the rest, "
        r"\d+ % is latency of hops, .*\d+ % bytes.* and \d+ % .*\.",
        told,
    ), told
    parts = told.split("of the rest, ")[1].partition(" (")[0]
    assert sum(map(int, re.findall(r"(\d+) %", parts))) >= 100
    half = artist(
        "compare",
        "--racks",
        "2",
        "--jobs",
        "40",
        "--policies",
        "fifo",
        "--permutations",
        "1",
        "--vary",
        "fabric.network.bandwidth=1Gbit/s,100Gbit/s",
    )
    assert "changes little" not in half.stdout
    assert re.search(
        r"Under fifo, communication is \d+ % of .* hold in one run; "
        r"\d+ % of it belongs to jobs that do not cross network;",
        half.stdout,
    )
    one_rack = artist("compare", "--racks", "1", "--jobs", "10", *twice)
    assert re.search(
        r"; 100 % of it belongs to jobs that do not cross network "
        r"\(outermost level: rack \d+ %, machine \d+ %",
        one_rack.stdout,
    )


def test_the_command_gives_each_world_what_a_comparison_there_gives(artist, tmp_path) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "2", "--policies", "fifo,las,dally")
    asked += ("--permutations", "5")
    several = artist(*asked, "--across", "t4,dally2025", "--format", "json", code=0)
    printed = json.loads(several.stdout)
    assert list(printed["worlds"]) == ["t4", "dally2025"]
    alone = artist(*asked, "--fabric", "t4", "--format", "json")
    assert printed["worlds"]["t4"] == json.loads(alone.stdout)
    table = artist(*asked, "--across", "t4,dally2025", "--values", "worlds.csv").stdout
    assert table.startswith("# t4: fabric t4, measured")
    assert "\nmetric\tpolicy\tt4\tdally2025\twhere\n" in table
    assert (tmp_path / "worlds.csv").read_text().startswith("world,metric,unit,policy")


def test_rows_of_kept_runs_distinguish_traces_of_one_name(artist, tmp_path: Path) -> None:
    for folder, arrivals in (("a", (0, 5)), ("b", (0, 9))):
        (tmp_path / folder).mkdir()
        rows = "".join(f"{at},{at},1,resnet50,9,1\n" for at in arrivals)
        header = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
        (tmp_path / folder / "t.csv").write_text(header + rows)
    asked = ("compare", "--racks", "1", "--backend", "none", "--policies", "las", "--out", "o")
    artist(*asked, "--permutations", "1", "--vary", "trace=a/t.csv,b/t.csv", code=0)
    with (tmp_path / "o" / "results.csv").open() as file:
        assert [one["trace"] for one in csv.DictReader(file)] == ["a/t.csv", "b/t.csv"]


def test_rows_of_kept_runs_name_their_world_and_settings(artist, tmp_path) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "1", "--backend", "none")
    asked += ("--policies", "las", "--vary", "policy.lease_s=600,3600", "--permutations", "2")
    printed = artist(*asked, "--across", "t4,a100", "--out", "o", "--format", "json").stdout
    with (tmp_path / "o" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    places = {(one["fabric"], one["policy_options"], one["permutation"]) for one in rows}
    assert len(places) == len(rows) == 8
    for fabric, world in json.loads(printed)["worlds"].items():
        for label, values in world["values"].items():
            lease = label.partition("=")[2]
            assert values["jct_mean_s"] == [
                float(one["jct_mean_s"])
                for one in rows
                if (one["fabric"], one["policy_options"]) == (fabric, f"{{'lease_s': {lease}}}")
            ]


def test_assumptions_are_changed_one_at_a_time_and_ranked(artist) -> None:
    asked = ("compare", "--trace", "tiny-batch", "--racks", "1", "--policies", "fifo,las")
    asked += ("--fabric", "dally2025", "--permutations", "2")
    printed = artist(*asked, "--assumptions", "--metrics", "makespan_s,jct_mean_s", code=0)
    assert printed.stderr.startswith(
        "32 runs: 4 in each of 8 worlds: as given; collectives=bucketed, "
    )
    assert "\nmetric\tpolicy\tassumption\tas given\tchanged\tmoved by\tverdict\n" in printed.stdout
    assert "\nToo few replicates for a verdict on jct_mean_s of las.\n" in printed.stdout
    rows = [line.split("\t") for line in printed.stdout.splitlines() if "\tlas\t" in line]
    verdicts = {(row[0], row[-1]) for row in rows}
    assert verdicts == {("makespan_s", "stays"), ("jct_mean_s", "no verdict")}
    found = json.loads(artist(*asked, "--assumptions", "--format", "json").stdout)
    shifts = [one["shift"] for one in found["effects"] if one["metric"] == "makespan_s"]
    assert shifts == sorted(shifts, reverse=True)
    both = artist(*asked, "--assumptions", "--across", "t4,a100", code=2)
    assert "--across and --assumptions cannot be combined" in both.stderr


def test_no_replicate_is_refused_before_runs_are_announced(artist) -> None:
    refused = artist("compare", "--seeds", "-1", code=2).stderr
    assert refused == "artist: error: --seeds -1 --permutations 1: at least 1 of each\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--policies fifo las", "--policies by commas: fifo,las\n"),
        ("--policies fifo, las, srtf --seed 1", "--policies by commas: fifo,las,srtf\n"),
        ("--seed 1 --policies=fifo las srtf", "--policies by commas: fifo,las,srtf\n"),
        ("--vary racks=1 2 4", "--vary by commas: racks=1,2,4\n"),
        ("a.yaml b.yaml", "unexpected extra argument"),
        ("--policies fifo,las --seed 1 a b", "unexpected extra argument"),
    ],
)
def test_blanks_where_commas_belong_are_named(artist, given: str, words: str) -> None:
    ran = artist("compare", *given.split())
    assert (ran.returncode, ran.stderr.count(words)) == (2, 1), ran.stderr
