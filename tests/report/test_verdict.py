"""Does the page open with a verdict that claims no more than the replicates allow?"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from run_making import damage, make_run, replace, study_of

from artist.report.grouping import Study, group
from artist.report.page import page
from artist.report.quantities import Quantity, in_words, metric_unit
from artist.report.reader import FileColumns, RecordedRun, read_run, read_runs
from artist.report.verdict import verdict_section
from artist.report.wait_causes import waited
from artist.results.caveats import times_as_long
from artist.results.terms.chief_metrics import HEADLINES
from artist.results.terms.number_text import DisplayUnit

NOTHING = FileColumns({}, {}, 0)


def run_with(jct_mean_s: float) -> RecordedRun:
    """A run in which only the mean completion time matters."""
    summary = {**dict.fromkeys(HEADLINES, 1.0), "jct_mean_s": jct_mean_s}
    return RecordedRun("here", {}, {}, summary, NOTHING, NOTHING, NOTHING, None)


def on_seeds(*settings: dict[str, list[float]]) -> Study:
    """A study from the mean completion times of replicates (seeds 0, 1, ...)."""
    return study_of(*(
        {policy: {(seed, 0): run_with(v) for seed, v in enumerate(values)}
         for policy, values in one.items()}
        for one in settings
    ))  # fmt: skip


def words(study: Study) -> list[str]:
    """The sentences of the verdict."""
    parts = re.findall(r"<(?:li|p)>(.*?)</(?:li|p)>", verdict_section(study))
    return [re.sub("<[^>]+>", "", part) for part in parts]


def about_jct(study: Study) -> str:
    return next(text for text in words(study) if text.startswith("Average JCT"))


# Six seeds. `slow` takes twice as long on each, give or take 4 %.
FAST = [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]
SLOW = [20.0, 22.4, 23.5, 26.3, 27.7, 30.6]


def test_a_difference_on_every_seed_is_sure() -> None:
    text = about_jct(on_seeds({"slow": SLOW, "fast": FAST}))
    assert text == (
        "Average JCT: fast has the lowest, 12.4 s, 50 % below the next, slow; surely lower than "
        "all others."
    )


def test_one_replicate_may_be_noise() -> None:
    study = on_seeds({"slow": SLOW[:1], "fast": FAST[:1]})
    text = words(study)
    assert text[0].startswith("Untested: with 1 run of each policy and setting, the lowest number ")
    assert about_jct(study).endswith("50 % below the next, slow; untested.")
    assert not any("surely" in sentence.lower() for sentence in text)


def test_copies_of_one_run_are_one_replicate() -> None:
    text = words(on_seeds({"slow": [20.0] * 8, "fast": [10.0] * 8}))[0]
    assert text.startswith(
        "Untested: with 8 runs of each policy and setting (copies of one run, and"
    )


def test_four_replicates_may_be_noise_and_five_need_not() -> None:
    four, five = (on_seeds({"slow": SLOW[:n], "fast": FAST[:n]}) for n in (4, 5))
    assert "untested" in about_jct(four)
    assert "surely lower" in about_jct(five)


@pytest.mark.parametrize(("count", "told"), [(4, "untested."), (5, "exact on this trace.")])
def test_permutations_that_change_nothing_leave_no_noise(count: int, told: str) -> None:
    seeds = on_seeds({"slow": [20.0] * count, "fast": [10.0] * count})
    (setting,) = seeds.settings
    runs = {
        policy: {(0, order): run for (order, _), run in ran.items()}
        for policy, ran in setting.runs.items()
    }
    orders = dataclasses.replace(seeds, settings=(dataclasses.replace(setting, runs=runs),))
    assert about_jct(orders).endswith(told)
    assert any("by chance" in text for text in words(orders)) == (count == 4)
    assert about_jct(seeds).endswith("untested.")  # seeds are other traces


def test_what_varies_more_than_it_differs_is_undecided() -> None:
    other = [11.0, 10.0, 13.5, 12.0, 15.5, 14.0]
    text = about_jct(on_seeds({"other": other, "fast": FAST}))
    assert "undecided against other (about " in text
    assert "surely" not in text


def test_within_2_percent_is_no_difference() -> None:
    nearly = [value * share for value, share in zip(FAST, [1.001, 1.002] * 3, strict=True)]
    text = about_jct(on_seeds({"nearly": nearly, "fast": FAST}))
    # The smallest difference that never changes sign is sure, however small.
    assert "surely lower than all others" in text
    mixed = [value * share for value, share in zip(FAST, [1.002, 0.999] * 3, strict=True)]
    text = about_jct(on_seeds({"mixed": mixed, "fast": FAST}))
    assert "no difference beyond 2 % from mixed" in text


def test_equal_policies_share_the_first_place() -> None:
    text = about_jct(on_seeds({"one": FAST, "two": FAST, "slow": SLOW}))
    told = "Average JCT: one and two have the lowest, 12.4 s, 50 % below the next, slow;"
    assert text.startswith(told)
    text = about_jct(on_seeds({"one": FAST, "two": FAST}))
    assert text == "Average JCT: equal under all, 12.4 s."


def test_all_pairs_of_all_settings_are_one_family() -> None:
    """A difference that is sure alone is not sure if it was picked from many."""
    shares = (1.09, 1.00, 1.08, 1.02, 1.10, 1.01)
    pair = {"b": [a * share for a, share in zip(FAST, shares, strict=True)], "a": FAST}
    assert "surely lower" in about_jct(on_seeds(pair))
    noise = [{"b": [10.5, 10.8, 12.1, 12.8, 14.9, 14.6], "a": FAST} for _ in range(30)]
    assert "Surely lower than every other policy: none." in about_jct(on_seeds(pair, *noise))


def test_settings_are_counted() -> None:
    study = on_seeds({"a": FAST, "b": SLOW}, {"a": SLOW, "b": FAST}, {"a": FAST, "b": SLOW})
    assert about_jct(study) == (
        "Average JCT is lowest under a in 2 of 3 settings and b in 1. Surely lower than every "
        "other policy: a in 2 and b in 1."
    )


def test_settings_in_which_all_are_equal_are_named() -> None:
    one, other = {"a": FAST, "b": SLOW}, {"a": SLOW, "b": FAST}
    same = {"a": FAST, "b": FAST}
    assert about_jct(on_seeds(one, other, same, same)).startswith(
        "Average JCT is lowest under a in 1 of 4 settings and b in 1; equal under all in 2."
    )


def test_policies_without_a_common_replicate_are_not_compared() -> None:
    study = on_seeds({"a": FAST})
    apart = study_of(study.settings[0].runs, {"b": {(9, 0): run_with(1.0)}})
    assert words(apart)[0].startswith("No two policies ran on the same setting and replicate")
    assert words(study)[0] == (
        "All runs have one policy, a, and no two settings of the same work ran on the same "
        "replicate: there is nothing to compare."
    )


def test_settings_of_one_policy_are_compared() -> None:
    def on(trace: str, jct_s: float) -> dict:
        return {"a": {(0, 0): dataclasses.replace(run_with(jct_s), scenario={"trace": trace})}}

    study = study_of(on("one.csv", 100.0), on("one.csv", 70.0))
    told = words(study)
    assert told[0] == "All runs have one policy, a; only their other settings are compared."
    assert about_jct(study) == (
        "Average JCT: setting 1 has the lowest, 70 s, 30 % below the next, setting 0; untested."
    )
    assert any("with 1 run of each setting" in text for text in told)
    other_work = study_of(on("one.csv", 100.0), on("other.csv", 70.0))
    assert "there is nothing to compare" in words(other_work)[0]


def test_a_rare_catastrophe_is_named_in_the_first_lines() -> None:
    makespans = {"las": [6.0, 116.0, 5.6, 6.1, 4.9], "fifo": [6.0, 6.1, 5.7, 6.2, 5.0]}
    told = words(on_seeds(makespans))
    assert any(
        text.startswith("las with seed 1 and permutation 0 has a JCT mean 19.3 times the median of")
        for text in told
    )
    assert any(
        text.startswith("Geometric means over 5 runs of each, each with a seed of its own.")
        for text in told
    )
    assert not any("times the median" in text for text in words(on_seeds({"a": FAST, "b": SLOW})))


def on_own_seeds(**policies: dict[int, float]) -> Study:
    """One setting in which policies ran on seeds of their own."""
    return study_of(
        {p: {(s, 0): run_with(v) for s, v in one.items()} for p, one in policies.items()}
    )


def test_a_pair_that_shares_replicates_is_compared_whatever_a_third_policy_ran_on() -> None:
    fast, slow = (dict(enumerate(values)) for values in (FAST, SLOW))
    study = on_own_seeds(third={9: 1.0}, slow=slow, fast=fast)
    assert about_jct(study) == (
        "Average JCT: fast has the lowest, 12.4 s, 50 % below the next, slow; surely lower than "
        "all others."
    )
    assert (
        "In setting 0, these policies share replicates: slow and fast; third shared no replicate "
        "with another policy."
    ) in words(study)


def test_policies_share_replicates_in_as_few_groups_as_there_are() -> None:
    setting = on_own_seeds(a={0: 1.0, 1: 1.0}, b={2: 1.0}, c={0: 1.0}, d={2: 1.0}).settings[0]
    assert setting.comparable() == [("a", "c"), ("b", "d")]
    setting = on_own_seeds(a={0: 1.0, 1: 1.0}, b={0: 1.0, 2: 1.0}, c={1: 1.0, 2: 1.0}).settings[0]
    assert setting.comparable() == [("a", "b")]
    setting = on_own_seeds(a={0: 1.0, 1: 1.0, 2: 1.0}, b={0: 1.0}, c={1: 1.0, 2: 1.0}).settings[0]
    assert setting.comparable() == [("a", "c")]


def test_groups_of_one_setting_are_no_settings() -> None:
    here, there = dict(enumerate(FAST)), dict(enumerate(SLOW))
    far = {seed + 9: value for seed, value in there.items()}
    near = {seed + 9: value for seed, value in here.items()}
    told = about_jct(on_own_seeds(a=here, b=there, c=far, d=near))
    assert told.startswith(
        "Average JCT is lowest under a in 1 of 2 groups that share replicates and d in 1."
    )


def test_the_family_of_the_verdict_is_named() -> None:
    told = " ".join(words(on_seeds({"slow": SLOW, "fast": FAST}, {"slow": SLOW, "fast": FAST})))
    # Four headline metrics in two settings; only the JCT varies, the others are identical.
    assert "2 comparisons are judged together (Holm): all pairs of policies, on these" in told


def test_one_run_says_who_waited_most_and_why(busy: Path) -> None:
    study = group(read_runs([busy]))
    jobs, waits = (pd.read_parquet(busy / f"{name}.parquet") for name in ("jobs", "waits"))
    text = " ".join(words(study))
    worst = jobs.loc[(jobs["jct_s"] / jobs["alone_s"]).idxmax()]
    assert f"Worst off is job {worst['job_id']} ({worst['model']}, {worst['gpus']} GPU" in text
    theirs = waits[waits["job_id"] == worst["job_id"]]
    assert theirs.loc[theirs["wait_s"].idxmax()]["reason"] in text
    share = 100 * jobs["queue_delay_s"].sum() / jobs["jct_s"].sum()
    assert f"waiting is {share:.0f} % of the completion time" in text
    assert text.endswith("takes several runs of each (artist compare).")


def test_one_run_names_the_job_that_finished_last(busy: Path, tmp_path: Path) -> None:
    jobs = pd.read_parquet(busy / "jobs.parquet")
    last = jobs.loc[jobs["finish_s"].idxmax()]
    text = " ".join(words(group(read_runs([busy]))))
    begins = "The last job to finish was "
    assert f"{begins}{last['job_id']} ({last['model']}, {last['gpus']} GPU" in text
    times = times_as_long(last["run_s"] / last["alone_s"])
    assert re.search(f", {times} in isolation[.:]", text.split(begins)[1])
    makespan_s = jobs["finish_s"].max() - jobs["arrival_s"].min()
    told = f"run is {100 * last['run_s'] / makespan_s:.0f} % of the makespan"
    assert (told in text) == (last["run_s"] > makespan_s / 2)
    # The same run, of which the last job takes just over, or under, a half.
    for share in (0.51, 0.49):
        shorter = shutil.copytree(busy, tmp_path / f"{share}")
        ran_s = [share * makespan_s] * len(jobs)
        damage(shorter, "jobs", replace("run_s", lambda _, ran_s=ran_s: ran_s))
        text = " ".join(words(group(read_runs([shorter]))))
        assert ("run is 51 % of the makespan" in text) == (share > 0.5)


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        (
            ["8", "8/8", "4/4/8"],
            ": for 4 s of that its GPUs were spread over 3 racks.",
        ),
        (["8", "4,4", "8"], ": for 2 s of that its GPUs were spread over 2 machines."),
        (["8", "8", "8"], "."),
    ],
)
def test_a_last_job_that_ran_long_is_named_with_its_placement(
    one: Path, shapes: list[str], told: str
) -> None:
    """Three stays of 1, 2 and 4 s."""
    job = pd.read_parquet(one / "jobs.parquet").sort_values("finish_s").iloc[-1]["job_id"]
    stays = {
        "job_id": [job] * 3, "signature": shapes, "start_s": [0.0, 1.0, 3.0],
        "end_s": [1.0, 3.0, 7.0],
    }  # fmt: skip
    rows = pd.read_parquet(one / "placements.parquet")
    stays |= {name: [rows[name].iloc[0]] * 3 for name in rows if name not in stays}
    pd.DataFrame(stays)[list(rows)].astype(rows.dtypes.to_dict()).to_parquet(
        one / "placements.parquet"
    )
    jobs = pd.read_parquet(one / "jobs.parquet")
    jobs["run_s"] = 2.0 * jobs["alone_s"]
    jobs.to_parquet(one / "jobs.parquet")
    assert f" in isolation{told}" in " ".join(words(group(read_runs([one]))))


@pytest.mark.parametrize(
    ("value", "told"),
    [(5780.0, "1.61 h"), (64_368.0, "17.9 h"), (86_400.0, "1 d"), (0.02, "20 ms"), (0.0, "0 d")],
)
def test_a_short_time_has_a_short_unit(value: float, told: str) -> None:
    study = dataclasses.replace(
        on_seeds({"one": FAST}), units=dict.fromkeys(Quantity, DisplayUnit(86_400.0, "d"))
    )
    assert in_words(study, "jct_mean_s", value) == told


def test_parts_of_a_time_have_the_unit_of_the_whole(busy: Path) -> None:
    study = group(read_runs([busy]))
    text = " ".join(words(study))
    unit = study.units[Quantity.JCT].name
    assert re.search(rf"on average [0-9.,]+ {unit} of [0-9.,]+ {unit}\.", text)
    assert re.search(rf"it took [0-9.,]+ {unit}, .* and waited for [0-9.,]+ {unit}\.", text)
    parts = ["compute_kept_mean_s", "preemption_time_mean_s", "compute_time_mean_s"]
    assert {metric_unit(study, metric, "s").name for metric in parts} == {unit}
    communication = ["comm_time_mean_s", "comm_kept_mean_s"]
    assert len({metric_unit(study, metric, "s") for metric in communication}) == 1
    assert metric_unit(study, "makespan_bound_s", "s") == metric_unit(study, "makespan_s", "s")


def test_both_shares_of_one_run_are_of_all_gpu_time(busy: Path) -> None:
    text = " ".join(words(group(read_runs([busy]))))
    summary = read_run(busy).summary
    held, computed = (100 * summary[f"gpu_{what}_share"] for what in ("allocated", "computing"))
    assert f"Of the cluster's GPU time, jobs held {held:.1f} % (" in text.replace("&#39;", "'")
    assert f" % for as long as any job waited); {computed:.1f} % went into computing." in text


def test_gpus_that_are_held_while_jobs_wait_are_counted_separately(busy: Path) -> None:
    # Jobs wait for the first 10 of 100 s, in which 12 of 16 GPUs are held.
    run = read_run(busy)
    columns = ("time_s", [0, 10, 100]), ("jobs_waiting", [1, 0, 0]), ("gpus_held", [12, 2, 0])
    timeline = FileColumns({}, {name: np.array(rows, float) for name, rows in columns}, 3)
    run = dataclasses.replace(run, timeline=timeline, summary={**run.summary, "gpus": 16})
    assert "(75 % for as long as any job waited)" in " ".join(words(group([run])))


def test_the_causes_of_waiting_have_their_shares(busy: Path) -> None:
    waits = pd.read_parquet(busy / "waits.parquet")
    left = waits["left_free_s"].where(waits["cause"] == "left-free", 0.0)
    due = left.where(waits["cause"] == "left-free", waits["wait_s"])
    seconds = due.groupby(waits["cause"]).sum()
    seconds["order"] += (waits["wait_s"] - due).sum()  # while too few GPUs were left free
    shares = [100 * value / waits["wait_s"].sum() for value in seconds]
    text = next(t for t in words(group(read_runs([busy]))) if "Causes of waiting:" in t)
    shown = [float(number) for number in re.findall(r", (\d+) % ?[.;(]", text)]
    assert shown == sorted(shown, reverse=True)
    assert shown == [round(v) for v in sorted(shares, reverse=True) if v >= 0.5]


def test_gpus_count_as_left_free_only_while_they_were(one: Path) -> None:
    # A wait of 100 s in which enough GPUs were left free for 30 s, and one of 100 s in which never.
    damage(one, "waits", lambda table: table.slice(0, 2))
    for column, values in {
        "cause": ["left-free", "gpus"], "wait_s": [100.0, 100.0], "left_free_s": [30.0, 0.0],
    }.items():  # fmt: skip
        damage(one, "waits", replace(column, lambda _, values=values: values))  # type: ignore[misc]
    (one / "wait_causes.parquet").unlink(missing_ok=True)
    assert waited(read_run(one)).by_cause == {"left-free": 30.0, "order": 70.0, "gpus": 100.0}


def test_a_run_without_waits_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "fifo", policy="fifo", racks=1, machines_per_rack=8)
    assert not np.any(read_run(run).jobs["queue_delay_s"])
    text = words(group(read_runs([run])))
    assert "No job waited." in text


def test_titles_carry_the_shape_of_an_irregular_cluster(tmp_path: Path) -> None:
    tree = [[8, 8], [8, 4, 4]]
    run = make_run(tmp_path / "fifo", policy="fifo", tree=tree)
    text = page(group(read_runs([run]))).decode()
    assert "<h1>fifo on tiny-poisson, cluster [2x8, [8, 4, 4]]</h1>" in text
    assert "24 jobs on 32 GPUs ([2x8, [8, 4, 4]])" in text


def test_titles_of_regular_clusters_are_short(one: Path) -> None:
    text = page(group(read_runs([one]))).decode()
    assert "<h1>dally on tiny-poisson</h1>" in text


@pytest.mark.parametrize("count", [1, 2])
def test_the_page_opens_with_the_verdict(runs: Path, count: int) -> None:
    names = ["dally-1-0", "gandiva-1-0"][:count]
    text = page(group(read_runs([runs / name for name in names]))).decode()
    first = re.search(r"<h2[^>]*>([^<]*)</h2>", text)
    assert first and first[1] == "In short"
    links = re.findall(r'<a href="#([a-z-]+)">', text)
    assert ["verdict", *links] == re.findall(r'<h2 id="([a-z-]+)">', text)
