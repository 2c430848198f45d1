"""What notebooks use: do runs come back from their directories, and do plots show their numbers?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import artist
from artist.experiments.comparison.compare import replicates_by_default
from artist.experiments.comparison.comparison_result import Comparison, Widest, compared
from artist.results.statistics.compare_values import ComparedValues

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(scope="module")
def runs() -> dict[str, artist.Result]:
    return {
        policy: artist.simulate(artist.Scenario(trace="tiny-poisson", racks=1, policy=policy))
        for policy in ("fifo", "dally")
    }


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.mark.parametrize("policy", ["fifo", "dally"])
def test_a_saved_run_is_loaded_as_it_was(runs, policy: str, tmp_path: Path) -> None:
    run = runs[policy]
    run.save(tmp_path / "run")
    loaded = artist.load(tmp_path / "run")
    assert loaded.scenario.model_dump() == run.scenario.model_dump()
    assert dict(loaded.summary) == dict(run.summary)
    assert list(loaded.tables) == list(run.tables)
    for name in run.tables:
        pd.testing.assert_frame_equal(loaded.table(name), run.table(name))
    assert (loaded.inputs, loaded.world) == (run.inputs, run.world)
    assert repr(loaded) == repr(run)
    assert loaded._repr_html_() == run._repr_html_()
    loaded.save(tmp_path / "again")
    for table in (tmp_path / "run").glob("*.parquet"):
        assert (tmp_path / "again" / table.name).read_bytes() == table.read_bytes()


def test_a_path_that_is_not_a_run_is_refused_in_a_sentence(runs, tmp_path: Path) -> None:
    with pytest.raises(
        artist.ConfigError, match=r"nowhere: not a run directory \(no manifest\.json"
    ):
        artist.load(tmp_path / "nowhere")
    run = tmp_path / "run"
    runs["fifo"].save(run)
    summary = run / "summary.json"
    whole = summary.read_text()
    for text, words in (("[]", "expected a JSON object"), ("{", "not valid JSON")):
        summary.write_text(text)
        with pytest.raises(artist.TraceError, match=words):
            artist.load(run)
    summary.write_text(json.dumps({"policy": "fifo"}))
    with pytest.raises(artist.TraceError, match="lacks trace; simulate the run again"):
        artist.load(run)
    summary.write_text(whole)
    (run / "jobs.parquet").write_bytes(b"PAR1")
    with pytest.raises(artist.TraceError, match=r"jobs\.parquet: cannot be read as Parquet"):
        _ = artist.load(run).jobs
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["scenario"]["racks"] = -1
    (run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(artist.TraceError, match=r"manifest\.json: scenario: 'racks'"):
        artist.load(run)


def test_the_cdf_has_the_completion_times_in_hours(runs) -> None:
    axes = runs["fifo"].plot.jct_cdf()
    (line,) = axes.lines
    jct_h = np.sort(runs["fifo"].jobs.jct_s) / 3600
    assert np.array_equal(line.get_xdata(), jct_h)
    assert line.get_ydata()[-1] == 1
    assert axes.get_title() == "fifo on tiny-poisson"
    assert [text.get_text() for text in axes.get_legend().texts] == [
        f"fifo: mean {jct_h.mean():.3g} h"
    ]


def test_runs_are_compared_on_the_axes_given(runs) -> None:
    _, axes = pyplot.subplots()
    dally, fifo = runs["dally"], runs["fifo"]
    assert dally.plot.compare(fifo, ax=axes) is axes
    assert [line.get_label().partition(":")[0] for line in axes.lines] == ["dally", "fifo"]
    two = artist.simulate(artist.Scenario(trace="tiny-poisson", racks=2, policy="fifo"))
    for told in (fifo.plot.compare(two), two.plot.jct_cdf(ax=fifo.plot.jct_cdf())):
        names = [x.get_label().partition(":")[0] for x in told.lines]
        assert names == ["fifo, racks 1", "fifo, racks 2"]


def test_a_name_in_place_of_a_run_raises_an_artist_error(runs) -> None:
    with pytest.raises(artist.ArtistError, match=r"compare\('las'\): expected results of other"):
        runs["fifo"].plot.compare("las")


def test_axes_with_several_runs_do_not_carry_the_title_of_one(runs) -> None:
    _, axes = pyplot.subplots()
    runs["dally"].plot.jct_cdf(ax=axes)
    assert axes.get_title() == "dally on tiny-poisson"
    for count in (2, 3):
        runs["fifo"].plot.jct_cdf(ax=axes)
        assert axes.get_title() == f"{count} runs"


def test_the_timeline_has_what_was_held_and_computed(runs) -> None:
    axes = runs["dally"].plot.timeline()
    computing, waiting, gpus = axes.lines
    rows = runs["dally"].timeline
    assert np.array_equal(computing.get_ydata(), rows.gpus_computing)
    assert np.array_equal(waiting.get_ydata(), rows.jobs_waiting)
    assert gpus.get_ydata() == [64, 64]
    assert computing.get_xdata()[-1] == pytest.approx(rows.time_s.iloc[-1] / 3600)


def test_an_undecided_interval_contains_no_difference() -> None:
    """A pair that only the joint test leaves undecided is shown with its joint interval."""
    alone = ComparedValues(0.9, -1.0, 0.82, 0.99, "undecided", 6, 0.03, None, 0.75, 1.08)
    values = {name: {"jct_mean_s": (10.0, 9.0)} for name in ("fifo", "las")}
    told = Comparison(
        ("fifo", "las"), ((0, 0), (1, 0)), values, {"las": {"jct_mean_s": alone}},
        Widest("las", "jct_mean_s", 0.2), 2,
    )  # fmt: skip
    assert "-10.0 % [-25.0 .. +8.0]  undecided" in repr(told)
    assert (told.frame.low[1], told.frame.high[1]) == (0.75, 1.08)


def test_a_comparison_shows_itself() -> None:
    scenario = artist.Scenario(trace="tiny-poisson", racks=1, backend="none")
    told = artist.compare(scenario, ["fifo", "sjf"], seeds=1, permutations=1)
    text = repr(told)
    assert text.startswith("<Comparison: 2 variants, 1 permutation, against fifo, 95 %>\n")
    assert len(text.splitlines()) == 1 + 2 * len(told.metrics)
    html = told._repr_html_()
    assert html.count("<tr>") == 1 + 2 * len(told.metrics)
    assert "<td>baseline</td>" in html
    frame = told.frame
    assert frame.dtypes.astype(str).to_dict() == {
        "metric": "category", "variant": "category", "mean": "float64", "unit": "category",
        "difference": "float64", "ratio": "float64", "low": "float64", "high": "float64",
        "verdict": "category",
    }  # fmt: skip
    row = frame.query("metric == 'jct_mean_s' and variant == 'sjf'").iloc[0]
    first = frame.query("metric == 'jct_mean_s' and variant == 'fifo'").iloc[0]
    values = told.values["sjf"]["jct_mean_s"]
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row.ratio == told.differences["sjf"]["jct_mean_s"].ratio
    assert row.difference == row["mean"] - first["mean"]


def test_means_differences_and_ratios_of_a_frame_agree() -> None:
    pair = [1.0, 8.0, 3.0, 2.0, 5.0], [2.0, 3.0, 9.0, 1.0, 4.0]
    values = {name: {"jct_mean_s": tuple(x)} for name, x in zip(("fifo", "las"), pair, strict=True)}
    replicates = tuple((seed, 0) for seed in range(5))
    frame = compared("policy", values, replicates, 0.02, None).frame
    assert frame["mean"][0] == pytest.approx(240 ** (1 / 5))
    assert frame.difference[1] == frame["mean"][1] - frame["mean"][0]
    assert frame.ratio[1] == pytest.approx(frame["mean"][1] / frame["mean"][0])


def test_python_makes_as_many_replicates_as_the_command() -> None:
    scenario = artist.Scenario(trace="tiny-poisson", racks=1, backend="none")
    alike = artist.compare(scenario, ["fifo", "fifo-backfill"], metrics=["makespan_s"])
    assert 8 <= alike.independent <= 16
    assert replicates_by_default(1, None, None, None) == (8, "decided", 16)
    assert replicates_by_default(5, None, None, None) == (1, None, 100)
    assert replicates_by_default(1, None, 0.02, None) == (8, 0.02, 100)
    assert replicates_by_default(1, 3, None, None) == (3, None, 100)
