"""Does "In short" name the world, the share of communication, and what makes the difference?"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from run_making import damage, edit_json, make_run, replace, rows_of, study_of

from artist.config import Scenario
from artist.report.explanation import explanation
from artist.report.grouping import Study, group
from artist.report.page import page
from artist.report.reader import FileColumns, RecordedRun, read_run, read_runs
from artist.report.wait_causes import causes_in_words, half_of_the_waiting, waited
from artist.run.world import world

NOTHING = FileColumns({}, {}, 0)
SUMMARY = {
    "queue_delay_mean_s": 0.0, "comm_kept_mean_s": 10.0, "preemption_time_mean_s": 0.0,
    "compute_kept_mean_s": 100.0, "gpu_allocated_share": 0.5, "gpu_communicating_share": 0.1,
}  # fmt: skip


def run_with(
    levels: dict[str, float] | None = None, causes: dict[str, float] | None = None, **summary: float
) -> RecordedRun:
    """A run of two jobs: hours on each level, seconds of one wait for each cause."""
    whole = SUMMARY | summary
    parts = ("queue_delay_mean_s", "comm_kept_mean_s", "preemption_time_mean_s")
    whole["jct_mean_s"] = sum(whole[key] for key in (*parts, "compute_kept_mean_s"))
    levels, causes = levels or {"machine": 1.0}, causes or {}
    jobs = rows_of(
        {"job_id": ["a", "b"], "model": ["vgg11", "resnet50"]},
        {
            "comm_s": [30.0, 10.0],
            **{key: [1.0, 1.0] for key in ("gpus", "gpus_min", "gpus_max")},
            "queue_delay_s": [0.0, 0.0],
        },
    )
    ends = [3600 * hours for hours in levels.values()]
    placements = rows_of(
        {"level": list(levels)},
        {"gpus": [1.0] * len(ends), "start_s": [0.0] * len(ends), "end_s": ends},
    )
    zeros = [0.0] * len(causes)
    waits = rows_of(
        {"job_id": ["a"] * len(causes), "cause": list(causes), "began": ["arrived"] * len(causes)},
        {"start_s": zeros, "wait_s": list(causes.values()), "left_free_s": zeros},
    )
    scenario = {"policy": "p", "fabric": "t4"}
    return RecordedRun("here", scenario, {}, whole, jobs, placements, NOTHING, waits=waits)


def text_of(study: Study) -> list[str]:
    return re.findall(r"<p>(.*?)</p>", explanation(study))


def compared(**policies: RecordedRun) -> list[str]:
    return text_of(study_of({name: {(0, 0): run} for name, run in policies.items()}))


# -- what makes the difference ---------------------------------------------------------


def test_waiting_is_explained_by_the_cause_that_differs_most() -> None:
    calm = run_with(causes={"gpus": 58.0, "order": 2.0}, queue_delay_mean_s=30.0)
    busy = run_with(causes={"gpus": 60.0, "order": 42.0}, queue_delay_mean_s=51.0)
    assert compared(busy=busy, calm=calm)[0] == (
        "A job takes 21 s longer under busy than under calm on average: 21 s more waiting. "
        "Waits differ most in one cause: free GPUs went to other jobs, 21 s a job under busy, 1 s "
        "under calm."
    )


def test_communication_is_explained_by_the_level_of_placements() -> None:
    near = run_with({"machine": 3.0, "network": 1.0})
    far = run_with({"machine": 1.0, "network": 3.0}, comm_kept_mean_s=40.0, queue_delay_mean_s=3.0)
    assert compared(near=near, far=far)[0] == (
        "A job takes 33 s longer under far than under near on average: 30 s more communication "
        "and 3 s more waiting. Jobs over several racks took 75 % of the GPU time under far, 25 % "
        "under near."
    )


def test_the_lowest_is_held_against_the_next_and_the_highest() -> None:
    waits = {name: run_with(queue_delay_mean_s=s) for name, s in (("c", 60), ("a", 10), ("b", 30))}
    told = [text for text in compared(**waits) if "longer under" in text]
    assert [text.split(" on average")[0] for text in told] == [
        "A job takes 20 s longer under b than under a",
        "A job takes 50 s longer under c than under a",
    ]


def test_levels_of_a_cluster_file_keep_their_names() -> None:
    near, far = run_with({"machine": 4.0}), run_with({"network": 3.0}, comm_kept_mean_s=40.0)
    far.scenario["cluster"] = "pods.yaml"  # what lies below its root need not be racks
    assert "Placements on the level network took 100 % of" in compared(near=near, far=far)[0]


def test_a_smaller_part_is_described_as_less() -> None:
    slow = run_with(queue_delay_mean_s=30.0, comm_kept_mean_s=5.0)
    (text, *_) = compared(slow=slow, fast=run_with())
    assert text.endswith("on average: 30 s more waiting and 5 s less communication.")


@pytest.mark.parametrize("more_s", [0.0, 0.4])
def test_policies_that_hardly_differ_are_not_contrasted(more_s: float) -> None:
    text = compared(one=run_with(), other=run_with(comm_kept_mean_s=10.0 + more_s))
    assert not any("longer under" in sentence for sentence in text)


def test_policies_without_a_common_replicate_are_not_contrasted() -> None:
    study = study_of({"one": {(0, 0): run_with()}, "two": {(1, 0): run_with(comm_kept_mean_s=90)}})
    assert not any("longer under" in sentence for sentence in text_of(study))


def test_each_of_several_settings_has_its_sentences() -> None:
    one = {"a": {(0, 0): run_with()}, "b": {(0, 0): run_with(comm_kept_mean_s=90.0)}}
    study = study_of(one, {"a": {(0, 0): run_with()}})
    starts = [text.split(":")[0] for text in text_of(study) if text.startswith("setting")]
    assert starts == ["setting 0", "setting 1"]
    assert 'data-setting="1"' in explanation(study)


# -- communication and world -----------------------------------------------------------


def test_communication_is_a_share_of_the_gpu_time_that_jobs_held() -> None:
    more = run_with(gpu_communicating_share=0.4)
    assert compared(more=more, less=run_with())[0] == (
        "Communication took 80 % of the GPU time that jobs held under more and 20 % under less; "
        "vgg11 jobs account for 75 % of the communication."
    )


def test_a_small_share_is_not_called_none() -> None:
    text = compared(one=run_with(gpu_communicating_share=0.001), other=run_with())[0]
    assert text.startswith("Communication took 0.2 % of the GPU time that jobs held under one and")


def test_communication_is_reported_where_no_model_makes_half_of_it() -> None:
    even = rows_of(
        {"job_id": ["a", "b", "c"], "model": ["vgg11", "resnet50", "gpt2"]},
        {
            "comm_s": [1.0] * 3,
            **{key: [1.0] * 3 for key in ("gpus", "gpus_min", "gpus_max")},
            "queue_delay_s": [0.0] * 3,
        },
    )
    run = dataclasses.replace(run_with(), jobs=even)
    told = compared(one=run)[0]
    assert told == "Communication took 20 % of the GPU time that jobs held under one."


def test_of_many_policies_the_least_and_the_most_communicating_are_named() -> None:
    shares = {f"p{n}": run_with(gpu_communicating_share=0.05 * n) for n in range(1, 7)}
    text = next(one for one in compared(**shares) if one.startswith("Communication"))
    assert "10 % of the GPU time that jobs held under p1 and 60 % under p6, the least and" in text


def test_a_run_records_its_world_and_the_page_shows_it(one: Path) -> None:
    told = json.loads((one / "manifest.json").read_text())["world"]
    assert told == world(Scenario(**read_run(one).scenario))
    shown = page(group(read_runs([one]))).decode()
    assert f"<p>The world: {told}; jobs do not compete on links.</p>" in shown.replace("&#39;", "'")
    edit_json(one / "manifest.json", world=None)  # an earlier version
    name = read_run(one).scenario["fabric"]
    assert f"The world: fabric {name}; jobs" in page(group(read_runs([one]))).decode()


@pytest.mark.parametrize("saving", [{}, {"checkpoint": {"interval_s": 70, "cost_s": 1}}])
def test_a_world_without_a_network_says_so(saving: dict[str, object], tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", backend="none", policy="fifo", **saving)
    text = text_of(group(read_runs([run])))
    assert "No job waited for communication." in text
    assert any("no network: communication takes no time" in sentence for sentence in text)


@pytest.mark.parametrize(
    ("window", "told"),
    [
        ({"measure_from_s": 60}, "measured from 60 s on: of the jobs"),
        ({"measure_until_s": 120}, "measured from 0 s to 120 s: of the jobs"),
        ({}, None),
    ],
)
def test_the_page_says_of_which_jobs_its_metrics_are(
    tmp_path: Path, window: dict[str, float], told: str | None
) -> None:
    run = make_run(tmp_path / "run", policy="fifo", arrivals="poisson:200", **window)
    shown = " ".join(page(group(read_runs([run]))).decode().split())
    assert (told is None) == ("Metrics of summary.json" not in shown)
    assert told is None or f"Metrics of summary.json are {told} that arrive then" in shown


# -- causes of waiting -----------------------------------------------------------------


@pytest.fixture
def timed(tmp_path: Path) -> Path:
    """A run in which jobs wait for delay timers."""
    return make_run(tmp_path / "dally", policy="dally", arrivals="poisson:200")


def test_a_wait_has_the_seconds_of_each_cause_that_the_policy_stated(timed: Path) -> None:
    told, waits = (pd.read_parquet(timed / f"{name}.parquet") for name in ("wait_causes", "waits"))
    by_cause = waited(read_run(timed)).by_cause
    assert by_cause["timer"] == pytest.approx(told["cause_s"][told["cause"] == "timer"].sum())
    assert sum(by_cause.values()) == pytest.approx(waits["wait_s"].sum())


def test_waits_for_other_jobs_are_distinguished_by_how_they_began(busy: Path) -> None:
    run = read_run(busy)
    by_cause, after_start_s = waited(run)
    share = 100 * after_start_s / by_cause["order"]
    assert any(
        f"({share:.0f} % of that while waiting to resume)" in t for t in causes_in_words(run)
    )
    waits = pd.read_parquet(busy / "waits.parquet")
    again = waits[(waits["began"] != "arrived") & (waits["cause"].isin(["order", "left-free"]))]
    assert after_start_s == pytest.approx((again["wait_s"] - again["left_free_s"]).sum())


@pytest.mark.parametrize(
    ("waits_s", "told"),
    [
        ([50.0, 10.0, 10.0, 10.0, 10.0, 0.0], "1 job (17 %) accounts for half of the waiting"),
        ([10.0, 10.0, 10.0, 10.0], ""),
        ([0.0, 0.0], ""),
    ],
)
def test_few_jobs_may_do_half_of_the_waiting(waits_s: list[float], told: str) -> None:
    jobs = rows_of({"job_id": ["a"] * len(waits_s)}, {"queue_delay_s": waits_s})
    run = dataclasses.replace(run_with(), jobs=jobs)
    assert half_of_the_waiting(run) == told


def test_waits_shorter_than_the_time_left_free_are_explained(one: Path) -> None:
    damage(one, "waits", replace("cause", lambda values: ["left-free"] * len(values)))
    damage(one, "waits", replace("wait_s", lambda values: [0.0] * len(values)))
    damage(one, "waits", replace("left_free_s", lambda values: [30.0] * len(values)))
    assert causes_in_words(read_run(one)) == ["GPUs were left free, 100 %"]


def test_stays_that_take_no_time_have_no_level(one: Path) -> None:
    ends = read_run(one).placements["end_s"].tolist()
    damage(one, "placements", replace("start_s", lambda _: ends))
    run = read_run(one)
    slow = dataclasses.replace(run, summary={**run.summary, "jct_mean_s": 1e9})
    more = {"comm_kept_mean_s": 1e9}
    slow = dataclasses.replace(slow, summary={**slow.summary, **more})
    assert compared(slow=slow, fast=run)


def test_waits_without_a_table_of_causes_have_one_cause_each(timed: Path) -> None:
    (timed / "wait_causes.parquet").unlink()
    damage(timed, "waits", replace("cause", lambda values: ["timer"] * len(values)))
    damage(timed, "waits", replace("left_free_s", lambda values: [0.0] * len(values)))
    assert list(waited(read_run(timed)).by_cause) == ["timer"]
