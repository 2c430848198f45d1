"""Do jobs start only where their data is, and when it is there?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from regions_and_tables import CLUSTER, DATA, times
from support import SELF_SUFFICIENT

from artist.errors import ConfigError, PolicyError, TraceError
from artist.results.result import Result
from artist.results.terms.columns import TABLES

Run = Callable[..., Result]
FULL = "full,0,4,any,100,1.0,"
"""It has all GPUs of region east for 100 s."""
NEVER = {"data_options": {"replicate": "never"}}


def test_a_job_elsewhere_than_its_table_waits_for_a_copy_of_it(run: Run) -> None:
    result = run(FULL, "late,1,4,any,20,1.0,ads")
    assert times(result, "start_s")["late"] == 1 + 10  # 10 GB at a gigabyte per second
    assert times(result, "finish_s")["late"] == 31
    assert result.summary["data_copies"] == 1
    assert result.summary["data_copied_bytes"] == 10 * 10**9
    assert result.summary["data_refused_jobs"] == 1
    copies = result.tables["copies"]
    assert list(copies) == [term.name for term in TABLES["copies"]]
    assert (copies["source"], copies["target"]) == (["east"], ["west"])
    assert (copies["start_s"], copies["end_s"]) == ([1.0], [11.0])


def test_why_it_waits_is_written(run: Run) -> None:
    (reason,) = run(FULL, "late,1,4,any,20,1.0,ads").tables["waits"]["reason"]
    assert reason.startswith("10 GB of its tables are on the way to region west")


@pytest.mark.parametrize(
    ("rows", "start_s", "copies"),
    [
        (["early,1,4,any,20,1.0,ads"], {"early": 1}, 0),
        ([FULL, "b,1,4,any,20,1.0,ads", "c,1,4,any,20,1.0,user"], {"full": 0, "b": 21, "c": 21}, 2),
        ([FULL, "b,1,4,any,20,1.0,ads", "c,5,4,any,20,1.0,ads"], {"full": 0, "b": 11, "c": 11}, 1),
    ],
    ids=["in the region of its table", "two copies on one link", "the copy of an earlier job"],
)
def test_a_job_starts_once_its_tables_are_there(
    run: Run, rows: list[str], start_s: dict[str, float], copies: int
) -> None:
    result = run(*rows)
    assert times(result, "start_s") == start_s
    assert result.summary["data_copies"] == copies


def test_tables_that_no_region_holds_together_go_where_the_fewest_bytes_are_missing(
    run: Run,
) -> None:
    """East lacks 10 GB of logs and west 20; north is too small for the job."""
    result = run("both,2,4,any,20,1.0,ads logs")
    assert result.tables["copies"]["target"] == ["east"]
    assert times(result, "start_s")["both"] == 12


def test_a_region_without_room_gets_no_copy(run: Run) -> None:
    """West has 200 GB and the table 300, so that the job waits for east."""
    result = run(FULL, "late,1,4,any,20,1.0,big", data=DATA + "big,,300GB,east\n")
    assert times(result, "start_s")["late"] == 100
    (reason,) = result.tables["waits"]["reason"]
    assert reason.startswith("region west has no room for its tables")


def test_what_is_on_the_way_takes_room(run: Run) -> None:
    """West has room for one of two tables of 150 GB. The second job waits for east."""
    data = DATA + "big,,150GB,east\nlarge,,150GB,east\n"
    rows = (FULL.replace("100", "500"), "b,1,4,any,20,1.0,big", "c,2,4,any,20,1.0,large")
    assert times(run(*rows, data=data), "start_s") == {"full": 0, "b": 151, "c": 500}


def test_a_job_reads_a_partition_or_all_of_a_table(run: Run) -> None:
    data = DATA + "logs,2,30GB,north\n"
    (one,) = run("a,0,4,any,1,1.0,logs/1", data=data).tables["copies"]["bytes"]
    (both,) = run("a,0,4,any,1,1.0,logs", data=data).tables["copies"]["bytes"]
    assert (one, both) == (10 * 10**9, 40 * 10**9)


def test_without_replication_a_job_waits_for_the_region_that_holds_its_table(run: Run) -> None:
    result = run(FULL, "late,1,4,any,20,1.0,ads", **NEVER)
    assert times(result, "start_s")["late"] == 100
    assert result.summary["data_copies"] == 0


def test_without_replication_a_job_that_can_run_nowhere_is_refused(run: Run) -> None:
    words = (
        r"^job 'both' wants 4 GPUs and reads 'ads, logs': no region holds all of them and "
        r"data.replicate=never, so it can never run; place the tables in region east or region "
        r"west, or let data move with data.replicate=on-demand$"
    )
    with pytest.raises(TraceError, match=words):
        run("both,2,4,any,20,1.0,ads logs", **NEVER)


@pytest.mark.parametrize("policy", ["fifo", "mast", "quota(fifo)"])
def test_a_job_that_its_region_is_too_small_for_is_refused_at_once(run: Run, policy: str) -> None:
    """North has two GPUs."""
    with pytest.raises(TraceError, match=r"only north \(2 GPUs\) holds them and data.replicate=ne"):
        run("late,1,4,any,20,1.0,small", policy=policy, data=DATA + "small,,1GB,north\n", **NEVER)


@pytest.mark.parametrize("policy", ["fifo", "mast", "quota(fifo)"])
def test_a_job_whose_table_has_room_nowhere_else_is_refused_at_once(run: Run, policy: str) -> None:
    """Only west has seven GPUs, and it has 200 GB."""
    words = (
        "no region with that many GPUs has room for the 300 GB that it lacks.*region west more s"
    )
    with pytest.raises(TraceError, match=words):
        run("late,1,7,any,20,1.0,big", policy=policy, data=DATA + "big,,300GB,east\n")


def test_a_job_is_refused_once_others_have_taken_the_room(run: Run) -> None:
    """Only west has eight GPUs. The first job's table leaves 50 GB there."""
    data = DATA + "big,,150GB,east\nlarge,,150GB,east\n"
    with pytest.raises(TraceError, match=r"job 'b' wants 8 GPUs .* room for the 150 GB"):
        run("a,0,8,any,20,1.0,big", "b,5,8,any,20,1.0,large", data=data)


def test_a_job_as_large_as_all_regions_that_may_hold_its_tables_runs(run: Run) -> None:
    assert times(run("a,0,14,any,20,1.0,ads"), "start_s") == {"a": 10 + 10}
    everywhere = DATA + "all,,1GB,east west north\n"
    assert times(run("a,0,14,any,20,1.0,all", data=everywhere, **NEVER), "start_s")
    with pytest.raises(TraceError, match=r"only east \(4 GPUs\) and north \(2 GPUs\) hold them"):
        run("a,0,12,any,20,1.0,two", data=DATA + "two,,1GB,east north\n", **NEVER)


INSISTS = """
from artist.cluster.placement import Placement
from artist.contract import BasePolicy, Start, Wake


class Insists(BasePolicy):
    def decide(self, view):
        starts = [Start(handle, Placement((3,), (1,))) for handle in view.waiting]
        return [*starts, Wake(view.now + 10**9)]
"""


def test_a_policy_that_insists_on_a_wrong_region_is_stopped_soon(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "insists.py"
    file.write_text(INSISTS, encoding="utf-8")
    words = (
        r"Insists left job 'a' waiting 2,000 times .* reads 'ads', which east holds, and no data"
    )
    with pytest.raises(PolicyError, match=words):
        run("a,0,1,any,20,1.0,ads", policy=f"{file}:Insists", **NEVER)


def test_a_policy_that_waits_for_nothing_learns_why_its_job_waits(run: Run) -> None:
    """Two GPUs fit north best, and FIFO looks at no table."""
    with pytest.raises(PolicyError, match=r"Classic left 1 job.*region north does not hold all"):
        run("late,1,2,any,20,1.0,w", data=DATA + "w,,1GB,west\n", **NEVER)


@pytest.mark.parametrize("policy", SELF_SUFFICIENT)
def test_every_policy_finishes_its_jobs_with_their_data(run: Run, policy: str) -> None:
    tables = ("", "ads", "user", "logs", "ads logs")
    rows = [f"j{i},{i},{1 + i % 4},vgg11,{50 + 30 * i},1.0,{tables[i % 5]}" for i in range(12)]
    result = run(*rows, policy=policy)
    assert result.summary["jobs_finished"] == 12
    assert result.summary["data_copies"] > 0


def test_names_change_nothing(run: Run) -> None:
    rows = [f"j{i},{i},4,any,40,1.0,{name}" for i, name in enumerate(("", "ads", "user logs"))]
    first = run(*rows)
    cluster, data = CLUSTER, DATA
    for old, new in (("east", "zulu"), ("west", "alfa"), ("ads", "zzz"), ("user", "aaa")):
        cluster, data = cluster.replace(old, new), data.replace(old, new)
    rows = [row.replace("ads", "zzz").replace("user", "aaa") for row in rows]
    second = run(*rows, cluster=cluster, data=data)
    for column in ("start_s", "finish_s"):
        assert times(first, column) == times(second, column)
    assert first.tables["copies"]["end_s"] == second.tables["copies"]["end_s"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            "ads,,10GB,easter",
            r"data.csv:2: region 'easter' is not in the cluster: did you mean 'east'",
        ),
        ("ads,,300GB,west", r"data.csv:2: with 'ads' region 'west' holds 300 GB, more than its s"),
        ("a,,150GB,west\nb,,60GB,west", r"data.csv:3: with 'b' region 'west' holds 210 GB, more"),
        ("ads,,10GB,east\nads,,1GB,west", r"data.csv:3: 'ads' is described twice"),
        ("ads,,10GB,east\nads,1,1GB,east", r"data.csv:3: 'ads/1' is described twice"),
        ("ads,1,10GB,east\nads,2,1GB,west", r"data.csv:3: table 'ads' has its home in region 'ea"),
        ("ads,,10 gigs,east", r"data.csv:2: field 'size' is '10 gigs', expected whole bytes"),
        ("ads,,10GB,", r"data.csv:2: field 'regions': expected its home"),
        ("ads,,10GB", r"data.csv:2: 3 cells, expected 4"),
        ("a b,,10GB,east", r"data.csv:2: name 'a b': expected a name without spaces"),
        ("table,sise,regions", r"data.csv:1: unknown or repeated column 'sise': did you"),
        ("table,size", r"data.csv:1: column 'regions' is missing"),
    ],
)
def test_a_bad_data_file_is_refused_with_its_line(run: Run, rows: str, message: str) -> None:
    header = "" if rows.startswith("table") else "table,partition,size,regions\n"
    with pytest.raises(TraceError, match=message):
        run("a,0,1,any,1,1.0,", data=f"{header}{rows}\n")


def test_a_job_that_reads_an_unknown_table_is_refused(run: Run) -> None:
    with pytest.raises(TraceError, match=r"job 'a' reads table 'adz'.*did you mean 'ads'"):
        run("a,0,1,any,1,1.0,adz")


def test_data_needs_regions_and_a_network_between_them(run: Run) -> None:
    without = "\n".join(x for x in CLUSTER.splitlines() if not x.startswith("wide_area")) + "\n"
    with pytest.raises(ConfigError, match="states no wide_area, so no data can move"):
        run("a,0,1,any,1,1.0,ads", cluster=without)
    run("a,0,4,any,1,1.0,ads", cluster=without, **NEVER)
    with pytest.raises(ConfigError, match="needs regions; give a cluster file"):
        run("a,0,1,any,1,1.0,ads", tree=[[4]], fabric="hgx-h100", without=("cluster",))


def test_tables_in_too_small_a_region_come_also_if_the_job_finds_no_room_at_first(run: Run) -> None:
    """North has two GPUs. All others are taken, for longer than a pass, when the job comes."""
    rows = ("east,0,4,any,500,1.0,", "west,0,8,any,500,1.0,", "late,1,4,any,20,1.0,small")
    result = run(*rows, policy="mast", data=DATA + "small,,1GB,north\n")
    start = times(result, "start_s")
    assert start["west"] == 0
    assert start["late"] == 500  # they were asked for when it came, not when there was room


def test_a_gang_over_regions_takes_no_gpus_while_its_tables_are_on_the_way(
    run: Run, tmp_path: Path
) -> None:
    """12 GPUs span all three regions: 10 s for a copy to north, and then 10 s for one to west."""
    trace = tmp_path / "urgent.csv"
    trace.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,tables,priority\n"
        "small,0,8,any,300,1.0,,5\ngang,10,12,any,20,1.0,ads,1\n"
    )
    result = run(policy="mast", trace=str(trace), without=("trace",))
    start, finish = times(result, "start_s"), times(result, "finish_s")
    assert start["gang"] == pytest.approx(30)
    assert finish["small"] == pytest.approx(300 + 20)  # it did not stop before
    assert result.summary["preemptions"] == 1
