"""Do figures match calculations by hand, and are lines apart that would hide each other?"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from run_making import damage, make_run, study_of
from run_making import replace as replaced

from artist.report.curves import extremes, job_tones
from artist.report.figure import Figure, FigureAxis, FigureKind, Series, figure_data
from artist.report.figures_of_jobs import (
    difference,
    differences,
    fairness,
    jct_by_size,
    size_class,
    whole_steps,
)
from artist.report.grouping import Setting, Study, group, slugs
from artist.report.page import figures
from artist.report.quantities import Quantity
from artist.report.reader import FileColumns, RecordedRun, read_runs
from artist.results.terms.chief_metrics import parts_of


def run_of(**columns: list[float]) -> RecordedRun:
    """A run of which only the jobs are read."""
    numbers = {name: np.array(values, np.float64) for name, values in columns.items()}
    count = len(next(iter(numbers.values())))
    jobs = FileColumns({"job_id": [str(i) for i in range(count)]}, numbers, count)
    nothing = FileColumns({}, {}, 0)
    return RecordedRun("here", {}, {}, {"jain_index": 0.5}, jobs, nothing, nothing, None)


def one_setting(**runs: RecordedRun) -> tuple[Study, Setting]:
    study = study_of({policy: {(0, 0): run} for policy, run in runs.items()})
    return study, study.settings[0]


def run_with_parts(*parts: float) -> RecordedRun:
    """A run of which only the parts of the mean completion time are read."""
    metrics = parts_of([]).values()
    return replace(run_of(jct_s=[sum(parts)]), summary=dict(zip(metrics, parts, strict=True)))


FIFO = run_with_parts(20.0, 10.0, 0.0, 150.0)
LAS = run_with_parts(5.0, 13.0, 18.0, 150.0)


def test_a_difference_is_the_sum_of_its_parts() -> None:
    # waiting 5 - 20, communication 13 - 10, preemption and restarts 18 - 0, computing the same
    assert difference([LAS], [FIFO], parts_of([])) == [-15.0, 3.0, 18.0, 0.0]
    figure = differences(*one_setting(fifo=FIFO, las=LAS))
    assert figure is not None
    assert [list(series.y) for series in figure.series] == [[-15.0, 3.0, 18.0, 0.0, 6.0]]
    assert list(figure.categories) == [
        "waiting", "communication", "preemption and restarts", "computing", "difference",
    ]  # fmt: skip


def test_checkpoints_are_a_part_where_any_run_writes_some() -> None:
    writing = replace(FIFO, summary={**FIFO.summary, "checkpoint_time_mean_s": 4.0})
    figure = differences(*one_setting(fifo=FIFO, las=writing))
    assert figure is not None
    assert list(figure.series[0].y) == [0.0, 0.0, 0.0, 4.0, 0.0, 4.0]
    assert figure.categories[3] == "checkpoints"


def test_one_policy_has_no_difference() -> None:
    assert differences(*one_setting(fifo=FIFO)) is None


def test_replicates_of_both_policies_are_compared() -> None:
    study, setting = one_setting(fifo=FIFO, las=LAS)
    setting = replace(setting, runs={"fifo": {(0, 0): FIFO}, "las": {(0, 0): LAS, (1, 0): FIFO}})
    figure = differences(study, setting)
    assert figure is not None
    assert figure.series[0].y[-1] == 6.0  # seed 1 has no fifo


def test_parts_of_real_runs_are_their_mean_completion_time(runs: Path) -> None:
    for run in read_runs([runs]):
        parts = [run.metric(metric) for metric in parts_of([run.summary]).values()]
        assert sum(parts) == pytest.approx(run.metric("jct_mean_s"), rel=1e-12)


@given(st.lists(st.lists(st.floats(-1e7, 1e7), min_size=4, max_size=4), min_size=1, max_size=3))
def test_rounded_steps_still_add_up(rows: list[list[float]]) -> None:
    largest = np.abs(np.cumsum(rows, axis=1)).max()
    for steps, exact in zip(whole_steps(rows), rows, strict=True):
        assert sum(steps[:-1]) == pytest.approx(steps[-1], rel=1e-12, abs=1e-12 * largest)
        assert steps[:-1] == pytest.approx(exact, abs=1.01e-4 * largest)


def test_size_classes_are_powers_of_two() -> None:
    gpus = np.array([1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33.0])
    assert size_class(gpus).tolist() == [0, 2, 2, 2, 3, 3, 4, 4, 5, 5, 6]


def test_quantiles_by_size() -> None:
    # 1,001 jobs of 1 GPU take 0, 0.1 ... 100 s; of two jobs with 4 and 2 GPUs, 20 and 40 s.
    run = run_of(gpus=[1] * 1001 + [4, 2], jct_s=[*(x / 10 for x in range(1001)), 20, 40])
    figure = jct_by_size(*one_setting(fifo=run))
    (series,) = figure.series
    assert list(figure.categories) == ["1 GPU · 1,001 jobs", "2 to 4 GPUs · 2 jobs"]
    assert [list(v) for v in (series.low, series.y, series.high)] == [
        [10.0, 22.0], [50.0, 30.0], [90.0, 38.0],
    ]  # fmt: skip


def test_a_policy_without_jobs_of_a_size_has_a_gap() -> None:
    one, two = run_of(gpus=[1, 8], jct_s=[5, 6]), run_of(gpus=[1, 1], jct_s=[5, 6])
    figure = jct_by_size(*one_setting(fifo=one, las=two))
    assert list(figure.categories) == ["1 GPU", "5 to 8 GPUs"]
    assert np.isnan(figure.series[1].y[1])
    assert figure_data(figure)["series"][1]["y"] == [5.5, None]


def test_shares_of_unfair_completion_times() -> None:
    # 1 and what rounding makes of it is not above 1; 2 is not above 2.
    run = run_of(finish_time_fairness=[1, 1 + 1e-9, 2, 2.5, 6])
    curve, bars = fairness(*one_setting(las=run))
    assert list(bars.series[0].y) == [60.0, 40.0, 20.0, 0.0]
    assert list(curve.series[0].y) == [0, 20, 40, 60, 80, 100]
    assert "las 0.50" in curve.note


@given(
    arrays.arrays(np.float64, st.integers(1, 400), elements=st.integers(0, 20)),
    st.integers(1, 20),
)
def test_thinned_steps_keep_the_extremes_and_the_last_value(y: np.ndarray, intervals: int) -> None:
    x = np.cumsum(np.arange(len(y)) % 7).astype(np.float64)
    kept = extremes(x, y, intervals)
    assert len(kept) <= 3 * intervals + 1
    assert kept[0] == 0 and kept[-1] == len(y) - 1
    assert (np.diff(kept) > 0).all()
    edges = np.linspace(x[0], x[-1], intervals + 1)
    edges[-1] = np.inf
    for low, high in pairwise(edges):
        there = np.flatnonzero((x >= low) & (x < high))
        if len(there):
            shown = np.intersect1d(kept, there)
            assert (y[shown].min(), y[shown].max()) == (y[there].min(), y[there].max())
            assert shown[-1] == there[-1]


def test_few_steps_are_all_kept_and_gaps_too() -> None:
    y = np.array([1.0, np.nan, 3.0, 2.0] * 20)
    assert extremes(np.arange(4.0), y[:4], 1).tolist() == [0, 1, 2, 3]
    kept = extremes(np.arange(80.0), y, 2)
    assert np.isnan(y[kept]).any()
    assert {1.0, 2.0, 3.0} >= set(y[kept][~np.isnan(y[kept])].tolist())
    assert np.nanmax(y[kept]) == 3.0


@pytest.mark.parametrize(
    ("count", "apart", "expected"),
    [(4, False, False), (5, False, True), (2, True, True), (1, True, False)],
)
def test_more_than_four_lines_get_panels(count: int, apart: bool, expected: bool) -> None:
    lines = [Series(str(i), f"s{i}", [1.0], [1.0]) for i in range(count)]
    figure = Figure(
        "a",
        FigureKind.LINES,
        "a",
        "cluster",
        FigureAxis("x"),
        FigureAxis("y"),
        lines,
        "",
        apart=apart,
    )
    assert figure.panels is expected
    assert figure_data(figure).get("panels", False) is expected
    assert not replace(figure, kind=FigureKind.ROWS).panels


# Beginnings of names -> which axis has the quantity.
QUANTITIES = {
    Quantity.TIME: {"makespan": "y", "utilization": "x", "fragmentation": "x", "jobs-rem": "x",
                    "queue-length": "x", "gpus-held": "x", "autotuner": "x",
                    "communication-timeline": "x"},
    Quantity.JCT: {"jct-mean": "y", "jct-cdf": "x", "jct-histogram": "x", "jct-by-size": "y",
                   "jct-difference": "y"},
    Quantity.WAITING: {"queue-delay-p95": "y", "queue-delay-p99": "y", "queue-delay-cdf": "x"},
    Quantity.COMMUNICATION: {"comm-time-mean": "y", "communication-by-model": "y"},
    Quantity.TIMER: {"autotuner": "y"},
}  # fmt: skip


@pytest.mark.parametrize("quantity", Quantity)
def test_a_quantity_has_one_unit_on_the_page(runs: Path, quantity: Quantity) -> None:
    study = group(read_runs([runs]))
    shown = figures(study)
    for beginning, axis in QUANTITIES[quantity].items():
        units = {getattr(f, axis).unit for f in shown if f.name.startswith(beginning)}
        assert units == {study.units[quantity].name}, beginning


def test_no_axis_has_a_unit_of_its_own(runs: Path) -> None:
    units = {axis.unit for f in figures(group(read_runs([runs]))) for axis in (f.x, f.y)}
    assert units <= {"", "%", "ms", "s", "min", "h", "d", "GPU-hours"}


def test_the_unit_suits_the_largest_value_of_all_runs(one: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "fifo", policy="fifo")
    edit_delay(one, 1.0)
    for longest_s, unit in (
        (7200.0, (60.0, "min")), (9 * 86400.0, (3600.0, "h")), (10 * 86400.0, (86400.0, "d")),
    ):  # fmt: skip
        edit_delay(other, longest_s)
        assert group(read_runs([one, other])).units[Quantity.WAITING] == unit


def test_no_wait_is_drawn_at_one_second_of_a_logarithmic_axis(one: Path) -> None:
    edit_delay(one, 7200.0)
    shown = figures(group(read_runs([one])))
    waits = next(f for f in shown if f.name.startswith("queue-delay-cdf"))
    drawn = sorted({60 * x for x in waits.series[0].x})
    assert (waits.x.log, waits.x.unit) == (True, "min")
    assert drawn == pytest.approx([1, 7200], rel=1e-4)


def edit_delay(path: Path, longest_s: float) -> None:
    def change(delays: list[float]) -> list[float]:
        return [0.0] * (len(delays) - 1) + [longest_s]

    damage(path, "jobs", replaced("queue_delay_s", change))


def test_names_say_what_and_of_which_group(tmp_path: Path) -> None:
    for trace in ("tiny-poisson", "tiny-batch"):
        for racks in (1, 2):
            make_run(tmp_path / f"{trace}{racks}", policy="dally", trace=trace, racks=racks)
    names = {figure.name for figure in figures(group(read_runs([tmp_path])))}
    # Bars stand for all racks of a trace.
    assert {"makespan_tiny-poisson", "makespan_tiny-batch"} <= names
    assert {"jct-cdf_1-rack-tiny-poisson", "gpus-held_2-racks-tiny-batch"} <= names
    assert any(re.fullmatch("autotuner-(machine|rack)_1-rack-tiny-poisson_dally", n) for n in names)


def test_file_names_of_clusters_paths_and_doubles() -> None:
    labels = [
        "[2x8, [8, 4, 4]]",
        "[[2x8, 8, 4], [4]]",
        "dally (/tmp/some/where/again)",
        "A b",
        "a-b",
    ]
    assert slugs(labels) == ["2x8-and-8-4-4", "2x8-8-4-and-4", "dally-again", "a-b", "a-b-2"]
    assert slugs(["?", "x" * 90]) == ["run", "x" * 60]


def test_an_irregular_cluster_has_its_shape_in_titles(tmp_path: Path) -> None:
    fabric = "h100-quantum2-spectrum4"
    make_run(tmp_path / "a", tree=[[8, 8], [8, 4, 4]], fabric=fabric)
    study = group(read_runs([tmp_path]))
    assert study.settings[0].label == "[2x8, [8, 4, 4]] · tiny-poisson"
    assert study.settings[0].slug == "2x8-and-8-4-4-tiny-poisson"
    make_run(tmp_path / "b", racks=1, fabric=fabric)
    make_run(tmp_path / "c", racks=8, fabric=fabric)
    study = group(read_runs([tmp_path]))
    # By their GPUs: 16, 32 and 128.
    assert [s.label for s in study.settings] == ["1x2x8", "[2x8, [8, 4, 4]]", "8x2x8"]
    bars = next(figure for figure in figures(study) if figure.name == "makespan")
    assert list(bars.categories) == ["1x2x8", "[2x8, [8, 4, 4]]", "8x2x8"]
    # Former summaries have no shape.
    summary = json.loads((tmp_path / "a" / "summary.json").read_text())
    del summary["cluster"]
    (tmp_path / "a" / "summary.json").write_text(json.dumps(summary))
    assert group(read_runs([tmp_path])).settings[1].label == "[[8, 8], [8, 4, 4]]"


def test_settings_that_are_not_set_are_not_part_of_a_title(tmp_path: Path) -> None:
    trace = tmp_path / "own.csv"
    rows = "a,0,1,ResNet-50,100,0.1\nb,0,1,VGG,100,0.1\n"
    trace.write_text("job_id,arrival_s,gpus,model,iterations,compute_s\n" + rows)
    names = {"ResNet-50": "resnet50", "VGG": "vgg16"}
    make_run(tmp_path / "a")
    make_run(tmp_path / "b", trace=str(trace), models=names)

    def labels() -> list[str]:
        return [setting.label for setting in group(read_runs([tmp_path])).settings]

    assert set(labels()) == {f"{trace} · models: ResNet-50=resnet50, VGG=vgg16", "tiny-poisson"}
    # Nothing else tells these two apart.
    shutil.rmtree(tmp_path / "b")
    make_run(tmp_path / "c", jobs=5)
    assert set(labels()) == {"jobs: not set", "jobs: 5"}


def test_the_histogram_says_how_many_jobs_are_beyond_it(tmp_path: Path) -> None:
    make_run(tmp_path / "a", policy="fifo")
    make_run(tmp_path / "b", policy="las")
    study = group(read_runs([tmp_path]))
    (histogram,) = [one for one in figures(study) if one.name.startswith("jct-histogram")]
    times = {p: runs[0, 0].jobs["jct_s"] for p, runs in study.settings[0].runs.items()}
    end = max(np.percentile(some, 95) for some in times.values())
    beyond = {policy: int((some > end).sum()) for policy, some in times.items()}
    assert beyond["fifo"] > 0
    assert f"Beyond it: {beyond['fifo']} of 24 jobs of fifo, " in histogram.note
    shown = {one.name: sum(one.y) for one in histogram.series}
    assert shown["fifo"] == pytest.approx(100 * (1 - beyond["fifo"] / 24), abs=0.01)


def test_a_policy_keeps_its_colour_where_others_are_missing(tmp_path: Path) -> None:
    make_run(tmp_path / "a", policy="dally")
    make_run(tmp_path / "b", policy="fifo")
    make_run(tmp_path / "c", policy="fifo", racks=2)
    shown = figures(group(read_runs([tmp_path])))
    tones = {
        (series.name, series.tone)
        for figure in shown
        if figure.policy is None and figure.kind is not FigureKind.STACK
        for series in figure.series
    }
    assert tones == {("dally", "s0"), ("fifo", "s1")}


def test_a_job_has_its_own_colour_under_every_policy(runs: Path) -> None:
    study = group(read_runs([runs]))
    dally, gandiva = (study.settings[0].firsts[policy] for policy in ("dally", "gandiva"))
    tones = job_tones(dally.jobs)
    assert tones == job_tones(gandiva.jobs)
    assert len(set(list(tones.values())[:10])) == 10  # neighbours in the trace differ
    seen = 0
    for figure in figures(study):
        if figure.name.startswith("communication-timeline") and figure.setting == 0:
            for series in figure.series:
                assert series.tone == tones[series.name.removeprefix("job ")]
                seen += 1
            assert figure.panels or len(figure.series) == 1
    assert seen


def test_panels_and_waterfalls_for_papers() -> None:
    canvas_of = pytest.importorskip("matplotlib.figure").Figure
    from artist.report.drawing import draw, style

    lines = [Series(f"p{i}", f"s{i}", [1.0, i], [1.0, 2.0]) for i in range(5)]
    figure = Figure(
        "a", FigureKind.LINES, "a", "cluster", FigureAxis("x"), FigureAxis("y"), lines, ""
    )
    canvas = canvas_of(figsize=(3.5, 2.3))
    draw(figure, canvas)
    assert [axes.get_title(loc="left") for axes in canvas.axes] == ["p0", "p1", "p2", "p3", "p4"]
    own = [axes.lines[-1] for axes in canvas.axes]
    assert [line.get_color() for line in own] == [style(f"s{i}")[0] for i in range(5)]
    assert [list(line.get_ydata()) for line in own] == [[1.0, i] for i in range(5)]
    assert {len(axes.lines) for axes in canvas.axes} == {5}

    waterfall = differences(*one_setting(fifo=FIFO, las=LAS))
    assert waterfall is not None
    canvas = canvas_of(figsize=(3.5, 2.3))
    draw(waterfall, canvas)
    bars = canvas.axes[0].patches
    assert [(bar.get_x(), bar.get_width()) for bar in bars] == [
        (0, -15), (-15, 3), (-12, 18), (6, 0), (0, 6),
    ]  # fmt: skip
