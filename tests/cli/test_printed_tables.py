"""Do printed tables show their cells unchanged, with units, plurals and medians?"""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from artist.cli.comparison_details import _how_narrow, _spread, _verdict
from artist.cli.output import print_facts, print_table
from artist.config import Scenario
from artist.experiments.comparison.compare import compare
from artist.experiments.comparison.comparison_result import Comparison, Widest
from artist.report.comparison_table import MetricCell
from artist.report.metric_text import interval_text
from artist.results.statistics.compare_values import ComparedValues


@pytest.mark.parametrize("terminal", [False, True])
def test_square_brackets_are_text_and_no_markup(terminal: bool, capsys, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    print_table("runs[1]", ("loss[bold]", "policy"), [("las[2].csv", "[red]fifo")])
    shown = capsys.readouterr().out
    assert ("─" in shown, "\t" in shown) == (terminal, not terminal)
    for text in ("runs[1]", "loss[bold]", "las[2].csv", "[red]fifo"):
        assert text in shown


def test_a_redirected_table_is_not_padded(capsys) -> None:
    rows = [("a", 1234.5, ""), ("b\tc\nd", 2, None)]
    print_table("two  runs", ("name", "long heading", ""), rows)
    print_facts("one", {"key": "value", "longer key": ["x", 0.5]})
    shown = capsys.readouterr().out
    assert shown == (
        "# two  runs\nname\tlong heading\na\t1,234\nb c d\t2\n"
        "# one\nkey\tvalue\nlonger key\tx, 0.500\n"
    )


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((4.0, 1.0, 3.0, 2.0), "2.5 [1 .. 4]"),  # of an even number: between the middle two
        ((9.0, 1.0, 2.0), "2 [1 .. 9]"),
        ((123_456.0, 0.012, 1000.5), "1,000 [0.012 .. 123,456]"),
    ],
)
def test_medians_of_a_comparison(values: tuple[float, ...], shown: str) -> None:
    assert _spread(values) == shown


def compared(verdict: str, *numbers: float) -> ComparedValues:
    """A comparison with a ratio, a difference, and the ends of an interval."""
    return ComparedValues(*numbers, verdict, 5, 0.01, None)


def test_a_sure_difference_within_the_equivalence_says_both() -> None:
    tiny = compared("less", 0.995, -1.0, 0.994, 0.996)
    assert _verdict(tiny, "seeds", 0.05) == "less; by less than 5 %"
    assert _verdict(tiny, "seeds", 0.004) == "less"


def test_a_cell_of_the_report_says_both() -> None:
    cell = MetricCell(9.95, 9.9, 10.0, 5, "s", compared("less", 0.995, -1.0, 0.994, 0.996))
    assert cell.against.endswith("] less; by less than 2 %")


@pytest.mark.parametrize(
    ("metric", "shown"),
    [
        ("preemptions", "+3 [+2 .. +4]"),
        ("comm_time_mean_s", "+3 s [+2 .. +4]"),
        ("iteration_time_mean_s", "+3 s [+2 .. +4]"),
    ],
)
def test_a_difference_without_a_ratio_has_the_unit_of_its_metric(metric: str, shown: str) -> None:
    assert interval_text(metric, compared("more", math.nan, 3.0, 2.0, 4.0)) == shown


def test_a_difference_of_shares_is_not_rounded_to_nothing() -> None:
    one = compared("less", math.nan, -0.034, -0.04, 0.03)
    assert interval_text("comm_time_share", one) == "-0.034 [-0.04 .. +0.03]"


def test_copies_have_no_interval_that_could_be_narrow() -> None:
    small = Scenario(racks=1, trace="tiny-batch", backend="none")
    copies = compare(small, ["sjf", "srtf"], seeds=1, permutations=1, until=0.02)
    text = _how_narrow(copies, 0.02)
    assert text.startswith("every other interval reaches at most 2 % from its middle; ")
    assert text.endswith("have no interval: their replicates are copies of one")


def test_what_the_budget_left_open_names_what_is_counted() -> None:
    seeds = tuple((seed, seed) for seed in range(8))

    def text(until: float) -> str:
        widest = Widest("las", "jct_mean_s", 0.1)
        return _how_narrow(Comparison(("fifo", "las"), seeds, {}, {}, widest, 8, until), until)

    assert text(0.05).endswith(" more seeds would make it 5 %")
    assert "; more than 10,000 seeds" in text(0.0001)


ONE_OF_MANY = re.compile(
    r"(?<![\d.,])1 (jobs|GPUs|runs|machines|racks|times|outages|rows|seeds|permutations|replicates"
    r"|orders|policies|worlds|columns|levels|links|files|figures|stops|differences)\b"
)


@pytest.mark.parametrize(
    "command",
    [
        ("sim",),
        ("sim", "--contention", "mean", "--failures", "f.yaml", "--measure-until", "1h"),
        ("compare", "--policies", "fifo,las", "--permutations", "1", "--all"),
        ("compare", "--vary", "racks=1,2", "--policies", "fifo", "--permutations", "1"),
        ("sweep", "one.yaml", "--out", "runs"),
        ("trace", "stats", "one.csv"),
        ("cluster", "show"),
    ],
)
def test_one_of_anything_has_no_plural(artist, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "one.csv").write_text(
        "job_id,num_gpus,submit_time,duration,model\nx,1,0,60,resnet50\n"
    )
    (tmp_path / "f.yaml").write_text(
        "outages: [{kind: machine, unit: 0, at_s: 5, duration_s: 5}]\n"
    )
    (tmp_path / "one.yaml").write_text(
        "name: e\nversion: 1\nbase: {trace: one.csv, racks: 1}\ngrid: {policy: [fifo]}\n"
    )
    sizes = ("--racks", "1", "--machines-per-rack", "1", "--gpus-per-machine", "1")
    where = {"sweep": (), "trace": (), "cluster": sizes}
    ran = artist(*command, *where.get(command[0], (*sizes, "--trace", "one.csv")), code=0)
    assert not ONE_OF_MANY.findall(ran.stdout + ran.stderr)


def test_a_report_of_one_job_has_no_plural(artist, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(
        "job_id,num_gpus,submit_time,duration,model\nx,1,0,60,resnet50\n"
    )
    sizes = ("--racks", "1", "--machines-per-rack", "1", "--gpus-per-machine", "1")
    artist("sim", *sizes, "--trace", "one.csv", "--failures", "meta-rsc", "--out", "run")
    artist("report", "run", "--out", "one.html")
    page = re.sub(r"<script.*?</script>", "", (tmp_path / "one.html").read_text(), flags=re.DOTALL)
    text = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "1 job on 1 GPU" in text
    assert {*ONE_OF_MANY.findall(text)} <= {"outages"}  # a name of the glossary after the unit 1
