"""Can every number on the page be traced to the rows that its figure names?

Each figure is recomputed with pandas from the files and columns that its source line names. A
figure with an unknown source line fails: add a check for it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from artist.report.figure import Figure, FigureKind, Series
from artist.report.grouping import group
from artist.report.page import figures, page
from artist.report.reader import read_runs
from artist.results.terms.number_text import plain

SECONDS = {"": 1.0, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
CLOSE = {"rel": 2e-4, "abs": 1e-9}  # figures carry five digits


class Source:
    """The files of the runs of one setting and policy: `{policy}-{racks}-{seed}`."""

    def __init__(self, folder: Path, setting: int, policy: str) -> None:
        self.runs = [folder / f"{policy}-{setting + 1}-{seed}" for seed in (0, 1)]

    def summaries(self, key: str) -> list[float]:
        return [json.loads((run / "summary.json").read_text())[key] for run in self.runs]

    def pooled(self, table: str) -> pd.DataFrame:
        return pd.concat([pd.read_parquet(run / f"{table}.parquet") for run in self.runs])

    def first(self, table: str) -> pd.DataFrame:
        return pd.read_parquet(self.runs[0] / f"{table}.parquet")


def close(shown: float, expected: float) -> bool:
    return shown == pytest.approx(expected, **CLOSE)


def points(series: Series) -> list[tuple[float, float]]:
    return [p for p in zip(series.x, series.y, strict=True) if not np.isnan(p[1])]


def check_bars(folder: Path, figure: Figure, key: str) -> None:
    for series in figure.series:
        for index, shown in enumerate(zip(series.low, series.y, series.high, strict=True)):
            values = Source(folder, index, series.name).summaries(key)
            geometric = figure.note.startswith("Geometric")
            mean = np.exp(np.mean(np.log(values))) if geometric else np.mean(values)
            for end, expected in zip(shown, (min(values), mean, max(values)), strict=True):
                assert close(end * SECONDS[figure.y.unit], expected)


def check_cdf(source: Source, figure: Figure, series: Series, column: str) -> None:
    # A logarithmic axis has no 0: waits below 1 s are drawn there.
    least_s = 1.0 if column == "queue_delay_s" else 0.0
    values = source.pooled("jobs")[column].clip(least_s).to_numpy() / SECONDS[figure.x.unit]
    assert series.y[0] == 0 and close(series.y[-1], 100)
    for x, y in points(series)[1:]:
        assert np.isclose(values, x, rtol=2e-4, atol=1e-9).any()
        assert 100 * np.mean(values < x * 0.9995 - 1e-9) - 1e-2 <= y
        assert y <= 100 * np.mean(values <= x * 1.0005 + 1e-9) + 1e-2


def check_histogram(source: Source, figure: Figure, series: Series, column: str) -> None:
    values = source.pooled("jobs")[column].to_numpy() / SECONDS[figure.x.unit]
    for low, high, share in zip(series.x, series.x[1:], series.y, strict=False):
        inner = np.mean((values >= low * 1.0005) & (values < high * 0.9995))
        outer = np.mean((values >= low * 0.9995) & (values < high * 1.0005 + 1e-9))
        assert 100 * inner - 1e-2 <= share <= 100 * outer + 1e-2


def check_by_model(source: Source, figure: Figure, series: Series) -> None:
    means = source.pooled("jobs").groupby("model")["comm_s"].mean()
    for model, shown in zip(figure.categories, series.y, strict=True):
        assert close(shown * SECONDS[figure.y.unit], means.get(model, 0.0))


def check_levels(folder: Path, figure: Figure, series: Series) -> None:
    assert figure.setting is not None
    for policy, shown in zip(figure.categories, series.y, strict=True):
        source = Source(folder, figure.setting, policy)
        if figure.source.startswith("summary.json"):
            assert close(shown, np.mean(source.summaries(f"placements_{series.name}")))
            continue
        rows = source.pooled("placements")
        there = rows[rows["level"] == series.name]
        hours = (there["gpus"] * (there["end_s"] - there["start_s"])).sum() / 3600
        assert close(shown, hours / len(source.runs))


def check_shares(
    source: Source, figure: Figure, series: Series, shown: Sequence[float], column: str
) -> None:
    """The mean of each interval, from the integral of the timeline's steps."""
    rows = source.first("timeline")
    time, value = rows["time_s"].to_numpy(), rows[column].to_numpy().astype(float)
    area = np.append(0.0, np.cumsum(value[:-1] * np.diff(time)))
    edges = np.array(series.x) * SECONDS[figure.x.unit]
    held = np.interp(edges, time, area) + np.maximum(edges - time[-1], 0) * value[-1]
    gpus = source.summaries("gpus")[0]
    total = 100 * (held[-1] - held[0]) / (edges[-1] - edges[0]) / gpus
    assert np.mean(shown) == pytest.approx(total, rel=1e-3, abs=1e-6)


def check_steps(source: Source, figure: Figure, series: Series, columns: Sequence[str]) -> None:
    """Every point is a row of the timeline, and no row lies beyond the points."""
    rows = source.first("timeline")
    times = rows["time_s"].to_numpy() / SECONDS[figure.x.unit]
    values = sum(rows[column] for column in columns).to_numpy()
    for x, y in points(series):
        assert y in values[np.isclose(times, x, rtol=2e-4, atol=1e-9)]
    assert (min(series.y), max(series.y)) == (values.min(), values.max())


def check_sizes(source: Source, figure: Figure, series: Series) -> None:
    jobs = source.pooled("jobs")
    for category, *shown in zip(figure.categories, series.low, series.y, series.high, strict=True):
        sizes = [int(word) for word in re.findall(r"[0-9]+", category.split("·")[0])]
        there = jobs[jobs["gpus"].between(sizes[0], sizes[-1])]
        assert int(category.split("·")[1].split()[0]) == len(there)
        for quantile, value in zip((0.1, 0.5, 0.9), shown, strict=True):
            assert close(value * SECONDS[figure.y.unit], there["jct_s"].quantile(quantile))


def check_groups(source: Source, figure: Figure, series: Series, column: str) -> None:
    jobs = source.pooled("jobs")
    assert len(figure.categories) == jobs[column].nunique()
    for category, *shown in zip(figure.categories, series.low, series.y, series.high, strict=True):
        there = jobs[jobs[column] == category.split(" · ")[0]]
        for quantile, value in zip((0.1, 0.5, 0.9), shown, strict=True):
            assert close(value * SECONDS[figure.y.unit], there["jct_s"].quantile(quantile))


def check_same_jobs(folder: Path, figure: Figure, series: Series) -> None:
    """Each point is a job's time over its time under the baseline, in the same replicate."""
    assert figure.setting is not None
    ours, theirs = (Source(folder, figure.setting, p).runs for p in (series.name, "dally"))
    ratios = []
    for our, their in zip(ours, theirs, strict=True):
        both = [
            pd.read_parquet(run / "jobs.parquet").set_index("job_id")["jct_s"]
            for run in (our, their)
        ]
        ratios += (both[0] / both[1]).tolist()
    values = np.array(ratios)
    assert (series.y[0], series.y[-1]) == (0, 100)
    for x, y in points(series)[1:]:
        assert np.isclose(values, x, rtol=2e-4).any()
        assert 100 * np.mean(values < x * 0.9995) - 1e-2 <= y
        assert y <= 100 * np.mean(values <= x * 1.0005) + 1e-2


def check_difference(folder: Path, figure: Figure, series: Series) -> None:
    """The metrics of the runs, mean over them; their sum is the difference of the mean JCTs."""
    assert figure.setting is not None
    ours, theirs = (
        Source(folder, figure.setting, policy).pooled("jobs") for policy in (series.name, "dally")
    )
    shown = np.array(series.y) * SECONDS[figure.y.unit]
    waiting, total = (
        ours[part].mean() - theirs[part].mean() for part in ("queue_delay_s", "jct_s")
    )
    assert shown[[0, -1]] == pytest.approx([waiting, total], abs=2e-4 * np.abs(shown).max())
    assert shown[:-1].sum() == pytest.approx(total, abs=2e-4 * np.abs(shown).max())


def check_fairness(source: Source, figure: Figure, series: Series) -> None:
    ratios = source.pooled("jobs")["finish_time_fairness"].to_numpy()
    for shown, multiple in zip(series.y, (1, 2, 5, 10), strict=True):
        assert close(shown, 100 * np.mean(ratios > multiple * (1 + 1e-6)))


def check_timers(source: Source, figure: Figure, series: Series) -> None:
    rows = source.first("autotuner")
    demand = int(series.name.split()[0])
    level = figure.source.rsplit(maxsplit=1)[-1]
    there = rows[(rows["gpus"] == demand) & (rows["level"] == level)]
    times = there["time_s"].to_numpy() / SECONDS[figure.x.unit]
    timers = there["timer_s"].to_numpy() / SECONDS[figure.y.unit]
    for x, y in points(series)[:-1]:  # the last one holds until the end
        near = np.isclose(times, x, rtol=2e-4, atol=1e-9)
        assert any(close(y, timer) for timer in timers[near])


def check_communication(source: Source, figure: Figure, series: Series) -> None:
    name = series.name.removeprefix("job ")
    jobs = source.first("jobs").set_index("job_id").loc[name]
    rows = source.first("placements")
    there = rows[rows["job_id"] == name]
    shown = 1e3 * (there["iteration_s"] - jobs["ideal_s"] / jobs["iterations"]).clip(lower=0)
    for _, y in points(series):
        assert any(y == pytest.approx(value, rel=1e-3, abs=1e-6) for value in shown)


def check(folder: Path, figure: Figure) -> None:
    file, _, columns = figure.source.partition(": ")
    if figure.kind is FigureKind.BARS and file == "summary.json":
        return check_bars(folder, figure, columns)
    for series in figure.series:
        assert figure.setting is not None
        if figure.kind is FigureKind.STACK:
            check_levels(folder, figure, series)
            continue
        policy = series.name if figure.policy is None else ("dally", "gandiva")[figure.policy]
        source = Source(folder, figure.setting, policy)
        if columns in ("jct_s", "queue_delay_s", "finish_time_fairness"):
            check_times = check_histogram if figure.kind is FigureKind.ROWS else check_cdf
            check_times(source, figure, series, columns)
        elif figure.kind is FigureKind.WATERFALL:
            check_difference(folder, figure, series)
        elif columns == "jct_s of the same job_id":
            check_same_jobs(folder, figure, series)
        elif columns == "jct_s by model":
            check_groups(source, figure, series, "model")
        elif figure.kind is FigureKind.RANGES:
            check_sizes(source, figure, series)
        elif columns == "finish_time_fairness above 1, 2, 5, 10":
            check_fairness(source, figure, series)
        elif columns == "comm_s by model":
            check_by_model(source, figure, series)
        elif columns.endswith(" over summary.json: gpus"):
            first, *others = columns.removesuffix(" over summary.json: gpus").split(", ")
            check_shares(source, figure, series, series.y, first)
            for values, column in zip(series.parts, others, strict=True):
                check_shares(source, figure, series, values, column)
        elif columns in ("jobs_running + jobs_waiting", "jobs_waiting", "gpus_held"):
            check_steps(source, figure, series, columns.split(" + "))
        elif file == "autotuner.parquet":
            check_timers(source, figure, series)
        elif columns.startswith("iteration_s - "):
            check_communication(source, figure, series)
        else:
            pytest.fail(f"{figure.name}: nobody checks {figure.source!r}")
    return None


def test_every_figure_is_what_its_source_says(runs: Path) -> None:
    shown = figures(group(read_runs([runs])))
    assert len({figure.name for figure in shown}) == len(shown) > 20
    for figure in shown:
        check(runs, figure)


POLICIES = ("dally", "gandiva")
UNITS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "ms": 1e-3, "GPU-hours": 3600.0}


def test_every_cell_of_the_comparison_is_a_mean_of_summaries(runs: Path) -> None:
    text = page(group(read_runs([runs]))).decode()
    text = text[text.index('id="comparison"') :]
    comparison = text[text.index('<div data-setting="') : text.index(">Configuration</h2>")]
    blocks = comparison.split('<div data-setting="')[1:]
    assert [block[0] for block in blocks] == ["0", "1"]
    for block in blocks:
        rows = re.findall(
            r"<tr><th[^>]*><code>(\w+)</code>.*?</small></th>(.*?)</tr>", block, re.DOTALL
        )
        assert len(rows) > 20
        for key, cells in rows:
            both = [Source(runs, int(block[0]), policy).summaries(key) for policy in POLICIES]
            positive = min(value for values in both for value in values) > 0
            shown = [text.split() for text in re.findall(r"<td>([^<]*)", cells)]
            for values, (number, *unit) in zip(both, shown, strict=True):
                assert bool(unit) == key.endswith("_s")
                # The geometric mean, of which the differences beside it are ratios.
                mean = np.exp(np.mean(np.log(values))) if positive else np.mean(values)
                size = UNITS[unit[0]] if unit else 1.0
                told, expected = (
                    float(text.replace(",", "")) for text in (number, plain(float(mean) / size))
                )
                assert told == expected, key
