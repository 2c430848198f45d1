"""Does the page say how busy links were, who lost most to contention, and beside whom?"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_reading import embedded
from run_making import EVIL, damage, make_competing, replace, rows_of, study_of

from artist.errors import TraceError
from artist.report.figures_of_links import BINS, on_links
from artist.report.grouping import Setting, Study, group
from artist.report.losses import losers, lost_to_others
from artist.report.page import page
from artist.report.reader import FileColumns, RecordedRun, read_runs

# By hand. Job a takes iterations of 2 s instead of 1 s for 10 s (it loses 5 s), of 1.25 s for 4 s
# (.8 s), stands still for 2 s and takes 2 s again for 4 s (2 s).
PLACEMENTS = rows_of(
    {"job_id": ["a", "b", "a", "a"]},
    {
        "start_s": [0, 0, 10, 14], "end_s": [10, 20, 14, 20], "stalled_s": [0, 0, 0, 2],
        "iteration_s": [2, 1.25, 1.25, 2], "alone_iteration_s": [1, 1, 1, 1],
    },
)  # fmt: skip
LINKS = rows_of(
    {"link": ["machine 0 up", "rack 0 up", "rack 0 down", *["rack 1 up"] * 3]},
    {
        "start_s": [0, 0, 5, 8, 10, 16], "end_s": [20, 8, 10, 10, 14, 20],
        "jobs": [2, 2, 2, 3, 3, 1], "utilisation": [0.5, 0.9, 0.8, 0.7, 0.7, 0.2],
        "demand": [0.9, 1.5, 1.5, 1.2, 1.2, 1.2],
    },
    job_ids=[["a", "d"], ["a", "b"], ["a", "b"], ["a", "c", "e"], ["a", "c", "e"], ["a"]],
)  # fmt: skip
JOBS = rows_of(
    {"job_id": ["a", "b", "c"], "model": ["vgg11", "vgg11", "gpt2"]},
    {
        "gpus": [8, 8, 4], "contention_lost_s": [7.8, 4.0, 0.0],
        "contention_slowdown": [7.8 / 10.2, 0.25, 0.0],
    },
)  # fmt: skip
NOTHING = FileColumns({}, {}, 0)
RUN = RecordedRun(
    "here", {"contention": "mean"}, {}, {}, JOBS, PLACEMENTS, NOTHING, None, None, LINKS
)


def one_setting(*runs: RecordedRun) -> tuple[Study, Setting]:
    study = study_of({"las": {(i, 0): run for i, run in enumerate(runs)}})
    return study, study.settings[0]


@pytest.fixture(scope="module")
def _competing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_competing(tmp_path_factory.mktemp("competing"), "run")


@pytest.fixture
def competing(_competing: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(_competing, tmp_path / "competing"))


def page_of(*runs: Path) -> bytes:
    return page(group(read_runs(runs)))


def text_of(content: bytes) -> str:
    """The words of the page between the heading of links and the next one."""
    part = re.search(rb'<h2 id="links">(.*?)<h2 id="jobs">', content, re.S)
    assert part
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", part[1].decode()))


def test_a_job_loses_beside_those_on_links_that_carry_less_than_all_want() -> None:
    # With b until 10 s, on two links for some of it; with c and e from 8 to 14 s. The machine of d
    # carries all, and b is beside a when it loses a fifth of 10 s.
    others = lost_to_others(RUN, ["a", "b"])
    assert others["a"] == [("b", 5.0), ("c", pytest.approx(1.8)), ("e", pytest.approx(1.8))]
    assert others["b"] == [("a", pytest.approx(2.0))]


def test_a_job_that_stands_still_loses_nothing() -> None:
    links = rows_of(
        {"link": ["rack 0 up"]},
        {"start_s": [14], "end_s": [18], "jobs": [2], "utilisation": [1], "demand": [2]},
        job_ids=[["a", "b"]],
    )
    run = RecordedRun("here", {}, {}, {}, JOBS, PLACEMENTS, NOTHING, None, None, links)
    assert lost_to_others(run, ["a"])["a"] == [("b", 1.0)]


def test_jobs_come_by_what_they_lost() -> None:
    assert [(one.job_id, one.lost_s) for one in losers(RUN, 10)] == [("a", 7.8), ("b", 4.0)]
    assert [one.job_id for one in losers(RUN, 1)] == ["a"]


def test_cells_are_means_over_time_of_the_busier_direction() -> None:
    figure, _ = on_links(*one_setting(RUN))
    # Racks come before machines. 20 s in 160 bins are 8 bins a second.
    assert [series.name for series in figure.series] == ["rack 0", "rack 1", "machine 0"]
    rack_0, rack_1, machine = figure.series
    assert figure.series[0].x[-1] == 20.0
    assert len(rack_0.y) == BINS == len(rack_0.x) - 1
    assert rack_0.y == [90.0] * 64 + [80.0] * 16 + [0.0] * 80
    assert rack_1.y == [0.0] * 64 + [70.0] * 48 + [0.0] * 16 + [20.0] * 32
    # On rack 0, a loses a half and b a fifth of its time, together .7 of 2 s per second.
    assert rack_0.parts == [[2.0] * 80 + [0.0] * 80, [35.0] * 80 + [0.0] * 80]
    # On rack 1, a loses a half, then a fifth; c and e lose nothing. Alone, a loses nothing.
    jobs, lost = rack_1.parts
    assert jobs == [0.0] * 64 + [3.0] * 48 + [0.0] * 16 + [1.0] * 32
    assert lost == [0.0] * 64 + [17.0] * 16 + [7.0] * 32 + [0.0] * 48
    # Two jobs on the machine's links, which carry what both want.
    assert machine.parts == [[2.0] * 160, [0.0] * 160]


def test_links_where_jobs_never_meet_are_left_out() -> None:
    alone = LINKS.numbers | {"jobs": np.array([1.0, 2, 2, 3, 3, 1])}
    links = FileColumns(LINKS.text, alone, LINKS.count, LINKS.lists)
    run = RecordedRun(
        "here", {"contention": "mean"}, {}, {}, JOBS, PLACEMENTS, NOTHING, None, None, links
    )
    figure, _ = on_links(*one_setting(run))
    assert [series.name for series in figure.series] == ["rack 0", "rack 1"]


def test_of_many_links_those_stay_whose_jobs_lost_most() -> None:
    names = [f"rack {unit} up" for unit in range(40)]
    links = rows_of(
        {"link": names},
        {
            "start_s": [0] * 40, "end_s": [10] * 39 + [1], "jobs": [2] * 40,
            "utilisation": [0.01 * unit for unit in range(39)] + [0],
            "demand": [2.0] + [0.5] * 38 + [2.0],
        },
        job_ids=[["a", "b"]] * 40,
    )  # fmt: skip
    run = RecordedRun(
        "here", {"contention": "mean"}, {}, {}, JOBS, PLACEMENTS, NOTHING, None, None, links
    )
    figure, _ = on_links(*one_setting(run))
    # Jobs lose time on racks 0 and 39, on the latter little; of the others the busiest 30 stay.
    assert [series.name for series in figure.series] == [
        "rack 0", *(f"rack {unit}" for unit in range(9, 40)),
    ]  # fmt: skip
    assert "32 of 40 uplinks" in figure.note


def test_longer_iterations_weigh_by_running_time() -> None:
    # 14 s at 100 % above alone, 20 + 4 s at 25 %: 24 of 38 s are at most 25 % above.
    _, figure = on_links(*one_setting(RUN))
    (series,) = figure.series
    assert list(series.x) == [25.0, 25.0, 100.0]
    assert list(series.y) == [0.0, pytest.approx(100 * 24 / 38, abs=1e-3), 100.0]
    assert "running time" in figure.y.label


def test_a_few_very_long_iterations_do_not_squeeze_the_others() -> None:
    # A hundredth of the running time at 900 %, and half of that at 4,900 %.
    placements = rows_of(
        {"job_id": ["a", "a", "a"]},
        {
            "start_s": [0, 985, 995], "end_s": [985, 995, 1000], "stalled_s": [0, 0, 0],
            "iteration_s": [1, 10, 50], "alone_iteration_s": [1, 1, 1],
        },
    )  # fmt: skip
    run = RecordedRun("here", RUN.scenario, {}, {}, JOBS, placements, NOTHING, None, None, None)
    (figure,) = on_links(*one_setting(run))
    assert list(figure.series[0].x) == [0.0, 0.0, 900.0]
    assert list(figure.series[0].y) == [0.0, 98.5, 99.5]
    assert "the largest is 4,900 %" in figure.note


def test_replicates_are_pooled() -> None:
    idle = FileColumns(
        PLACEMENTS.text,
        PLACEMENTS.numbers | {"iteration_s": PLACEMENTS["alone_iteration_s"]},
        PLACEMENTS.count,
    )
    undisturbed = RecordedRun("there", RUN.scenario, {}, {}, JOBS, idle, NOTHING, None, None, LINKS)
    *maps, figure = on_links(*one_setting(RUN, undisturbed))
    assert len(maps) == 1
    assert list(figure.series[0].x) == [0.0, 0.0, 25.0, 100.0]
    assert figure.series[0].y[1] == 50.0


def test_the_page_says_who_lost_what_to_whom(competing: Path) -> None:
    content = page_of(competing)
    said = text_of(content)
    # docs/contention.md: a loses 23 s, 17 % of its running time alone; c shares nothing.
    assert (
        "2 of 3 jobs lost 0.00703 job-hours to other jobs on links or to their own full uplinks."
        in said
    )
    assert "job model GPUs lost (s) slowdown (%) lost to (s)" in said
    assert "a vgg11 24 23.1 17 b (23.1) b bert-large 24 2.23 2.2 a (2.23)" in said
    figures = {
        one["name"]: one for one in embedded(content)["figures"] if one["section"] == "links"
    }
    assert [one["kind"] for one in figures.values()] == ["heat", "lines"]
    heat = next(iter(figures.values()))
    assert [one["name"] for one in heat["series"]] == ["rack 0", "rack 1", "rack 2"]
    assert [one["y"][0] for one in heat["series"]] == [57, 86, 28]
    # The mean of the two on rack 1: a loses 22 % of its time, b 2 %.
    assert [max(one["parts"][1]) for one in heat["series"]] == [0, 12, 0]


def test_without_links_the_page_says_how_to_get_them(competing: Path) -> None:
    (competing / "links.parquet").unlink()
    content = page_of(competing)
    said = text_of(content)
    assert f"time was lost, but is not in {competing}." in said
    assert "--links" in said
    assert "lost to (" not in said
    assert "a vgg11 24 23.1 17 b bert-large" in said
    kinds = [one["kind"] for one in embedded(content)["figures"] if one["section"] == "links"]
    assert kinds == ["lines"]


def test_without_contention_there_is_no_section(one: Path, competing: Path) -> None:
    plain = page_of(one)
    assert b'id="links"' not in plain
    assert b"heat" not in plain
    shutil.copy(competing / "links.parquet", one)
    assert page_of(one) == plain


def test_settings_with_and_without_contention(tmp_path: Path) -> None:
    runs = [make_competing(tmp_path, name, contention=name) for name in ("none", "mean")]
    said = text_of(page_of(*runs))
    assert said.count("In this setting jobs do not compete on links") == 1
    assert said.count("2 of 3 jobs lost") == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda table: table.drop_columns(["demand"]), "lacks the column 'demand'"),
        (replace("utilisation", lambda v: [-1.0 for _ in v]), "'utilisation' holds -1 in row 0"),
        (replace("job_ids", lambda v: [7 for _ in v]), "'job_ids' should hold lists"),
    ],
)
def test_damaged_links_are_refused(competing: Path, change: Any, said: str) -> None:
    damage(competing, "links", change)
    with pytest.raises(TraceError, match=re.escape("links.parquet")) as error:
        read_runs([competing])
    assert said in str(error.value)


def test_a_file_that_is_no_parquet_ends_in_one_sentence(artist, competing: Path) -> None:
    (competing / "links.parquet").write_bytes(b"nothing of use")
    ran = artist("report", competing, "--out", "page.html", code=3)
    assert "links.parquet: cannot be read as Parquet" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert not (competing.parent / "here" / "page.html").exists()


def test_a_run_without_losses_says_so(competing: Path) -> None:
    for column in ("contention_lost_s", "contention_slowdown"):
        damage(competing, "jobs", replace(column, lambda values: [0.0 for _ in values]))
    assert "fifo: no job lost time on links." in text_of(page_of(competing))


def test_names_are_no_markup(competing: Path) -> None:
    for name, column in (("jobs", "job_id"), ("placements", "job_id"), ("waits", "job_id")):
        damage(competing, name, replace(column, lambda values: [f"{EVIL}{v}" for v in values]))
    damage(competing, "links", replace("link", lambda values: [f"{EVIL} {v}" for v in values]))
    evil = replace("job_ids", lambda values: [[f"{EVIL}{v}" for v in ids] for ids in values])
    damage(competing, "links", evil)
    content = page_of(competing)
    assert EVIL.encode() not in content
    assert b"&lt;script&gt;document.title=" in content
