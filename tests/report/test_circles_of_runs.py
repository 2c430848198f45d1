"""Does the page show who takes turns on which link, before and after, and what that gains?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from page_reading import embedded
from run_making import make_run, make_taking_turns, rows_of

from artist.report.figure import Figure
from artist.report.figures_of_circles import BINS, demand, most_contended, on_circles
from artist.report.grouping import group
from artist.report.page import page
from artist.report.reader import FileColumns, RecordedRun, read_runs

# On a turn of 400 ms: a iterates in 200 ms, sends for the last 48 and is shifted by 100; b iterates
# in 380 ms alone, 400 on the circle, and sends for a quarter.
CIRCLES = rows_of(
    {"link": ["rack 0"] * 2 + ["rack 1"] * 4, "job_id": ["a", "b", "a", "b", "a", "c"]},
    {
        "time_s": [0, 0, 0, 0, 30, 30], "turn_s": [0.4] * 6,
        "capacity_bytes_per_s": [50 / 8 * 1e9] * 6,
        "score_at_random": [0.9, 0.9, 0.5, 0.5, 0.8, 0.8],
        "iteration_s": [0.2, 0.38, 0.2, 0.38, 0.2, 0.2],
        "on_circle_s": [0.2, 0.4, 0.2, 0.4, 0.2, 0.2],
        "up_s": [0.048, 0.095, 0.048, 0.095, 0.048, 0.048],
        "bytes_per_s": [40 / 8 * 1e9] * 6, "shift_s": [0.1, 0.0, 0.0, 0.0, 0.0, 0.0],
    },
)  # fmt: skip
JOBS = rows_of({"job_id": ["a", "b", "c"], "model": ["vgg16"] * 3}, {"finish_s": [50, 100, 100]})
NOTHING = FileColumns({}, {}, 0)
RUN = RecordedRun("here", {}, {}, {}, JOBS, NOTHING, NOTHING, None, circles=CIRCLES)


def test_demand_is_down_then_up_from_the_shift_on() -> None:
    # 180 bins of 400 ms are 90 per iteration of a; it sends in the last 21.6: from 68.4 on.
    still, shifted = (demand(CIRCLES, 0, after) / 5e9 for after in (False, True))
    assert still.tolist() == [0.0] * 68 + [1.0] * 22 + [0.0] * 68 + [1.0] * 22
    assert np.array_equal(shifted, np.roll(still, 45))
    # b sends for a quarter of the turn, as it does alone.
    assert demand(CIRCLES, 1, False).tolist() == [0.0] * 135 + [5e9] * 45


def test_the_most_contended_link_comes_first_with_its_worst_time() -> None:
    # rack 0 would lose .1 for 100 s; rack 1 .5 for 30 s, then .2 for 70 s.
    first, second = most_contended(RUN, CIRCLES)
    assert (first.link, first.contended_s) == ("rack 1", pytest.approx(15.0))
    assert first.rows.tolist() == [2, 3]
    assert (second.link, second.contended_s) == ("rack 0", pytest.approx(10.0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("turns")
    for policy in ("fifo", "cassini(fifo)"):
        make_taking_turns(folder, policy, policy)
    return folder


def figures_of(folder: Path) -> list[Figure]:
    study = group(read_runs([folder]))
    return list(on_circles(study, study.settings[0]))


def test_a_circle_before_and_after(folder: Path) -> None:
    circle, _ = figures_of(folder)
    assert circle.title == "Jobs that take turns on rack 1 · cassini(fifo)"
    assert circle.parts == ("in step: score 0.55", "shifted: score 1.00")
    assert [series.name for series in circle.series] == ["job a", "job b"]
    before = np.sum([series.y for series in circle.series], axis=0)
    after = np.sum([series.parts[0] for series in circle.series], axis=0)
    assert before.max() > circle.y.top == 50.0
    assert after.max() <= circle.y.top
    assert after.sum() == before.sum()
    assert len(before) == BINS
    iteration_ms, up_ms, shift_ms = circle.series[1].parts[1]
    assert (iteration_ms, shift_ms) == (200.38, 94.625)
    assert up_ms < shift_ms < iteration_ms - up_ms


def test_iteration_times_stand_beside_the_papers_gains(folder: Path) -> None:
    _, times = figures_of(folder)
    assert "cassini(fifo) over fifo: 1.34 x in the mean, 1.34 x in the P99." in times.note
    assert "1.2 to 1.6 x in the mean, 1.6 to 2.2 x" in times.note
    host, cassini = sorted(times.series, key=lambda series: series.name, reverse=True)
    assert host.y[-1] == cassini.y[-1] == 100.0
    assert host.x[-1] == pytest.approx(0.270, abs=0.001)
    assert cassini.x[-1] == pytest.approx(0.2008, abs=0.0001)


def test_only_pages_with_circles_draw_them(folder: Path, tmp_path: Path) -> None:
    content = page(group(read_runs([folder])))
    kinds = [one["kind"] for one in embedded(content)["figures"]]
    assert "circles" in kinds
    assert b"DRAW.circles" in content
    without = page(group(read_runs([folder / "fifo"])))
    assert b"DRAW.circles" not in without
    assert b"DRAW.heat" in without
    plain = make_run(tmp_path / "plain", policy="fifo")
    assert b"DRAW.circles" not in page(group(read_runs([plain])))
