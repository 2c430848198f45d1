"""Who won and who lost: is each job compared with itself, and are the right ones named?"""

from __future__ import annotations

import re

import numpy as np
import pytest
from run_making import rows_of, study_of

from artist.report.figures_by_group import by_group
from artist.report.grouping import Study
from artist.report.reader import FileColumns, RecordedRun
from artist.report.same_jobs import of_same_jobs, same_jobs, same_jobs_section

NOTHING = FileColumns({}, {}, 0)


def run_with(jct_s: dict[str, float], **texts: list[str]) -> RecordedRun:
    """A run in which only completion times matter."""
    text = {"job_id": list(jct_s), "model": [f"of {name}" for name in jct_s]} | texts
    gpus = [4.0] * len(jct_s)
    jobs = rows_of(text, {"jct_s": list(jct_s.values()), "gpus": gpus})
    return RecordedRun("here", {}, {}, {}, jobs, NOTHING, NOTHING)


def study_with(**policies: dict[str, float]) -> Study:
    return study_of({name: {(0, 0): run_with(times)} for name, times in policies.items()})


def cells(study: Study) -> list[list[str]]:
    rows = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", same_jobs_section(study))
    return [re.split(r"(?:</t[hd]>(?:<td>)?)+", row)[:-1] for row in rows]


TEN = {f"j{n}": 100.0 for n in range(10)}


def test_jobs_are_matched_by_name_whatever_their_order() -> None:
    pair = same_jobs(run_with({"a": 1.0, "b": 2.0, "c": 3.0}), run_with({"c": 30.0, "a": 10.0}))
    assert pair.rows == [0, 2]
    assert pair.ours_s.tolist() == [1.0, 3.0]
    assert pair.theirs_s.tolist() == [10.0, 30.0]


def test_those_that_won_and_lost_most_are_named_with_both_times() -> None:
    other = TEN | {"j3": 50.0, "j7": 250.0, "j8": 102.0}
    study = study_with(base=TEN, other=other)
    assert cells(study) == [
        ["j3", "of j3", "4", "100 s", "50 s", "-50 s", "-50 %"],
        ["j8", "of j8", "4", "100 s", "102 s", "+2 s", "+2 %"],
        ["j7", "of j7", "4", "100 s", "250 s", "+150 s", "+150 %"],
    ]
    hours = study_with(base=TEN | {"j3": 36_000.0}, other=TEN | {"j3": 120.0, "j7": 200.0})
    assert cells(hours)[0][3:6] == ["10 h", "0.0333 h", "-9.97 h"]
    text = " ".join(same_jobs_section(study).split())
    assert "Under other, 1 of 10 jobs finish sooner than under base and 2 later" in text


def test_jobs_of_all_replicates_are_counted_and_those_of_the_first_listed() -> None:
    policies = {"base": TEN, "other": TEN | {"j3": 50.0}}
    runs = {
        name: {(seed, 0): run_with(jct_s) for seed in (0, 1)} for name, jct_s in policies.items()
    }
    text = " ".join(same_jobs_section(study_of(runs)).split())
    assert "2 of 20 jobs finish sooner" in text
    assert "alike. Jobs of all replicates are counted, and those of the first are listed." in text
    assert text.count("of j3") == 1


@pytest.mark.parametrize(("time_s", "sooner"), [(99.5, 0), (98.5, 1)])
def test_times_within_a_percent_are_alike(time_s: float, sooner: int) -> None:
    text = same_jobs_section(study_with(base=TEN, other=TEN | {"j0": time_s}))
    assert f"Under other, {sooner} of 10 jobs" in text


def test_at_most_five_won_and_five_lost() -> None:
    other = {f"j{n}": 100.0 + n - 9.5 for n in range(20)}
    base = dict.fromkeys(other, 100.0)
    assert [row[0] for row in cells(study_with(base=base, other=other))] == [
        "j0", "j1", "j2", "j3", "j4", "j15", "j16", "j17", "j18", "j19",
    ]  # fmt: skip


def test_policies_without_a_common_replicate_are_not_compared() -> None:
    study = study_of({"one": {(0, 0): run_with(TEN)}, "two": {(1, 0): run_with(TEN)}})
    assert list(of_same_jobs(study, study.settings[0])) == []
    assert same_jobs_section(study) == ""


def test_the_figure_has_the_ratio_of_each_job() -> None:
    study = study_with(base={"a": 10.0, "b": 10.0}, other={"b": 20.0, "a": 5.0})
    (figure,) = of_same_jobs(study, study.settings[0])
    (line,) = figure.series
    assert list(line.x) == [0.5, 0.5, 2.0]
    assert list(line.y) == [0.0, 50.0, 100.0]


# -- by model and by tenant ------------------------------------------------------------


def test_tenants_have_their_completion_times() -> None:
    run = run_with({"a": 10.0, "b": 30.0, "c": 7.0}, model=["vgg11"] * 3, tenant=["us", "us", ""])
    study = study_of({"one": {(0, 0): run}})
    (figure,) = by_group(study, study.settings[0])  # one model is no group
    assert figure.categories == ["us · 2 jobs", "none · 1 job"]
    (series,) = figure.series
    assert list(series.y) == [20.0, 7.0]
    assert (series.low[0], series.high[0]) == (12.0, 28.0)


def test_of_many_groups_those_with_most_jobs_are_shown() -> None:
    names = [f"m{n:02}" for n in range(12) for _ in range(12 - n)]
    run = run_with({str(n): float(n + 1) for n in range(len(names))}, model=names)
    study = study_of({"one": {(0, 0): run}})
    (figure,) = by_group(study, study.settings[0])
    assert len(figure.categories) == 10
    assert figure.categories[0] == "m00 · 12 jobs"
    assert "2 are left out" in figure.note
    assert np.isfinite(figure.series[0].y).all()
