"""Does the page carry every job, its stays and its waits, and say what it leaves out?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from page_reading import embedded, unpack
from run_making import damage, make_competing, make_run, replace

from artist.errors import TraceError
from artist.report import page as page_module
from artist.report.grouping import group
from artist.report.packing import pack_jobs, pack_waits, pack_work
from artist.report.page import page, places
from artist.report.quantities import in_words
from artist.report.reader import read_run, read_runs


def near(shown, expected) -> bool:
    return shown == pytest.approx(list(expected), rel=6e-5, abs=1e-9)


def test_the_table_has_the_columns_of_jobs(busy: Path) -> None:
    run, rows = read_run(busy), pd.read_parquet(busy / "jobs.parquet")
    work, table = unpack(pack_work(run)), unpack(pack_jobs(run))
    assert work["jobs"] == list(rows["job_id"])
    assert [work["models"][code] for code in work["model"]] == list(rows["model"])
    assert work["gpus"] == list(rows["gpus"])
    assert near(work["arrival"], rows["arrival_s"])
    assert near(work["alone"], rows["alone_s"]) and work["measure"] == "alone_s"
    assert near(table["wait"], rows["queue_delay_s"])
    assert near(table["run"], rows["run_s"])
    # The page adds the two.
    assert near([a + b for a, b in zip(table["wait"], table["run"], strict=True)], rows["jct_s"])
    restarts = rows["preemptions"] + rows["migrations"]
    assert table["restarts"] == list(restarts)
    assert restarts.sum() > 0


@pytest.mark.parametrize("kind", ["busy", "competing"])
def test_a_stay_is_time_on_one_placement(kind: str, busy: Path, tmp_path: Path) -> None:
    """Jobs that compete on links also have intervals at several speeds in one stay."""
    folder = busy if kind == "busy" else make_competing(tmp_path, "run")
    run, rows = read_run(folder), pd.read_parquet(folder / "placements.parquet")
    table = unpack(pack_jobs(run))
    for number, (name, there) in enumerate(rows.groupby("job_id", sort=False)):
        number = run.jobs.text["job_id"].index(name)
        there = there.sort_values(["start_s", "end_s"])
        begins = (there["placement"] != there["placement"].shift()) | (
            there["start_s"] != there["end_s"].shift()
        )
        shapes = list(there["signature"][begins])
        assert table["stays"][number] == len(shapes)
        named = table["ways"][table["way"][number]].split(" \u2192 ")
        assert named[:4] == shapes[:4]
        assert named[4:] == ([f"+{len(shapes) - 4} more"] if len(shapes) > 4 else [])
        tiers = {table["levels"][code] for code in table["tiers"][table["tier"][number]]}
        assert tiers == set(there["level"])


def test_the_waits_are_those_of_the_file(busy: Path) -> None:
    run, rows = read_run(busy), pd.read_parquet(busy / "waits.parquet")
    waits = unpack(pack_waits(run))
    assert waits["kept"] is None
    names = run.jobs.text["job_id"]
    shown = [
        (
            names[waits["job"][i]], waits["reasons"][waits["reason"][i]],
            [names[other] for other in waits["groups"][waits["holders"][i]]], waits["free"][i],
        )
        for i in range(len(waits["job"]))
    ]  # fmt: skip
    listed = rows.apply(
        lambda row: (row["job_id"], row["reason"], list(row["waited_for"]), row["free_gpus_max"]),
        axis=1,
    )
    assert len(shown) > 10
    assert sorted(shown) == sorted(listed)


def test_the_longest_wait_gives_the_cause(busy: Path) -> None:
    run, rows = read_run(busy), pd.read_parquet(busy / "waits.parquet")
    table = unpack(pack_jobs(run))
    longest = rows.loc[rows.groupby("job_id")["wait_s"].idxmax()].set_index("job_id")["cause"]
    words = {
        "policy": "the policy's reason", "left-free": "GPUs were left free",
        "order": "free GPUs went to other jobs", "gpus": "too few GPUs",
    }  # fmt: skip
    for name, code in zip(run.jobs.text["job_id"], table["cause"], strict=True):
        assert table["causes"][code] == (words[longest[name]] if name in longest else "")


def test_if_not_all_waits_fit_those_of_the_worst_jobs_stay(busy: Path) -> None:
    run, rows = read_run(busy), pd.read_parquet(busy / "jobs.parquet")
    whole = pack_waits(run)
    text = pack_waits(run, 0.7 * len(whole))
    assert 0.4 * len(whole) < len(text) <= 0.7 * len(whole)
    kept = unpack(text)["kept"]
    ratios = rows["jct_s"] / rows["alone_s"]
    assert kept == list(ratios.sort_values(ascending=False, kind="stable").index[: len(kept)])
    assert 0 < len(kept) < len(rows)
    assert set(unpack(text)["job"]) <= set(kept)
    assert pack_waits(run, 30) == ""


def test_runs_of_one_trace_share_their_jobs(runs: Path) -> None:
    data = embedded(page(group(read_runs([runs]))))
    assert len(data["runs"]) == len(data["jobs"]) == 8
    # Seeds differ in arrivals, and alone_s is the same on one and on two racks.
    assert len(data["work"]) == 2
    assert {tuple(unpack(text)["jobs"]) for text in data["work"]} == {
        tuple(read_run(runs / "dally-1-0").jobs.text["job_id"])
    }


def test_a_job_has_one_number_in_all_timelines(runs: Path) -> None:
    study = group(read_runs([runs]))
    data = embedded(page(study))
    for place in places(study):
        if place.first:
            timeline = unpack(data["packs"][f"{place.setting}-{place.policy}"])
            assert timeline["jobs"] == place.run.jobs.text["job_id"]


def test_the_room_goes_to_jobs_then_timelines_then_waits(
    busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = group(read_runs([busy]))
    data = embedded(page(study))
    kinds = ("jobs", "packs", "waits")
    sizes = [sum(len(str(part)) for part in data[kind].values()) for kind in kinds]
    whole = len(page(study))
    for left in range(3):
        monkeypatch.setattr(page_module, "PAGE_BYTES", whole - sum(sizes[left:]) + 100)
        there = [kind for kind in kinds if embedded(page(study))[kind]]
        assert there == list(kinds[:left])


def test_without_alone_s_the_page_says_so(busy: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "fifo", policy="fifo")
    damage(run, "jobs", lambda table: table.drop_columns(["alone_s"]))
    data = embedded(page(group(read_runs([run]))))
    assert unpack(data["work"][0])["measure"] == "ideal_s"


def test_runs_without_waits_are_shown(one: Path) -> None:
    (one / "waits.parquet").unlink()
    data = embedded(page(group(read_runs([one]))))
    assert not data["runs"][0]["waits"]
    assert data["waits"] == {}


def test_a_damaged_list_of_jobs_is_named(busy: Path, tmp_path: Path) -> None:
    run = make_run(tmp_path / "fifo", policy="fifo", arrivals="poisson:200")
    damage(run, "waits", replace("waited_for", lambda values: [1 for _ in values]))
    with pytest.raises(TraceError, match=r"waits.parquet: the column 'waited_for' should hold"):
        read_run(run)


def test_one_unit_for_each_quantity(runs: Path) -> None:
    study = group(read_runs([runs]))
    data = embedded(page(study))
    for metric, kind in (("jct_mean_s", "jct"), ("queue_delay_p95_s", "waiting")):
        assert in_words(study, metric, 1e5).split()[1] == data["units"][kind]["name"]
