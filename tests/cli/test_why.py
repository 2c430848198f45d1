"""Does `artist why` tell why a job waited, in words and as JSON, and refuse what it cannot read?"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artist as library
from artist.cli.commands.why import _print_story
from artist.engine.rows import EndReason
from artist.errors import ArtistError
from artist.results.terms.number_text import DAY, NO_DAYS, column_unit, time_text, time_unit
from artist.results.waiting.job_story import (
    CAUSE_WORDS,
    ENDED_WORDS,
    causes_text,
    ended_words,
    job_story,
    waited_by_cause,
    worst_waits,
)
from artist.results.waiting.waits import CAUSES

TINY = {"trace": "tiny-batch", "racks": 1, "policy": "fifo", "backend": "none"}

STORY = """\
# job 18: resnet50 on 4 GPUs, arrived at 0 h
from h to h took what why, where
0.000 1.272 1.27 h waits free GPUs went to other jobs: it stood behind 15 (8 GPUs), \
which headed the queue for 22.3 min, and no job passes the head; \
it wanted 4, and for 8.2 min of 76.3 min that many stayed free; \
for 68.1 min no GPU did; 18 other jobs got GPUs meanwhile, all before it in the trace; \
most GPU time was held by \
jobs 4, 10, 12, 13, 15
1.272 13.916 12.6 h runs on 4 4, tier machine, 1.000 x its isolated time; it finished
It finished 13.9 h after its arrival, 1.101 x the 12.6 h of its isolated run.
It waited 1.27 h (9.1 %) and ran 12.6 h (90.9 %); of this run time 12.6 h was \
computing, 0 h was exposed communication and 0 h stood still; 0 h of it was lost work.
Why it waited: free GPUs went to other jobs 68.1 min (89.3 %), GPUs were left free 8.2 min (10.7 %).
"""


@pytest.mark.parametrize(
    ("least_s", "unit"), [(DAY, "d"), (17 * 3600.0, "h"), (20.0, "min"), (2.0, "s"), (0.0, "d")]
)
def test_a_column_of_times_has_one_unit(least_s: float, unit: str) -> None:
    assert column_unit([5 * DAY, least_s]).name == unit
    assert column_unit([-5 * DAY, least_s], days=NO_DAYS).name == ("h" if unit == "d" else unit)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    library.simulate(library.Scenario(**TINY), cache=False).save(folder)  # type: ignore[arg-type]
    return folder


def test_a_story_states_the_first_start_separately(tmp_path: Path, capsys) -> None:
    """A first start costs the same for all jobs of a trace, or each job its own restart."""
    for name, cost in (("number", 120.0), ("restart", "restart")):
        scenario = library.Scenario(**TINY, restart_s=120.0, first_start_s=cost)  # type: ignore[arg-type]
        library.simulate(scenario, cache=False).save(tmp_path / name)
        story = job_story(tmp_path / name, "18")
        assert (story["first_start_s"], story["stalled_s"]) == (120, 120)
        _print_story(story)
        assert "2 min stood still (2 min for its first start)" in capsys.readouterr().out


def test_a_story_says_what_checkpoints_took(tmp_path: Path, capsys) -> None:
    checkpoint = {"interval_s": 600, "cost_s": 30}
    scenario = library.Scenario(**TINY, checkpoint=checkpoint)  # type: ignore[arg-type]
    library.simulate(scenario, cache=False).save(tmp_path / "run")
    story = job_story(tmp_path / "run", "18")
    assert story["checkpoint_s"] > 0
    _print_story(story)
    assert " went into checkpoints and " in capsys.readouterr().out


def test_the_parts_of_a_failed_jobs_run_add_up_to_it(tmp_path: Path, capsys) -> None:
    """Lost work was computing, communication and checkpoints before, so it is no further part."""
    (tmp_path / "one.csv").write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s\na,0,2,vgg16,2000,1\n"
    )
    (tmp_path / "log.csv").write_text("unit,from,until\nmachine 0,900,1000\n")
    library.simulate(
        library.Scenario(
            trace=str(tmp_path / "one.csv"), racks=1, machines_per_rack=2, gpus_per_machine=1,
            policy="fifo", failures=str(tmp_path / "log.csv"), restart_s=60,
            checkpoint={"interval_s": 600, "cost_s": 30},
        ),
        cache=False,
    ).save(tmp_path / "run")  # fmt: skip
    story = job_story(tmp_path / "run", "a")
    parts = ("compute_s", "comm_s", "checkpoint_s", "stalled_s")
    assert min(story["lost_s"], *(story[part] for part in parts)) > 0
    assert sum(story[part] for part in parts) == pytest.approx(story["run_s"])
    _print_story(story)
    told = capsys.readouterr().out
    assert "was computing, " in told and " of it was lost work." in told


@pytest.fixture
def told_of_b(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str, str], str]:
    """The story of job b on four old and four new GPUs, under a policy that gets these rows."""

    def told(policy: str, rows: str) -> str:
        machines = "[{gpus: 4, kind: old}, {gpus: 4, kind: new}]"
        (tmp_path / "two.yaml").write_text(
            "name: two\nsummary: s\nlevels: [rack, machine]\n"
            f"tree: {{count: 1, machine: {machines}}}\n"
        )
        (tmp_path / "jobs.csv").write_text(
            f"job_id,arrival_s,gpus,model,iterations,compute_s,gpu_kinds\n{rows}"
        )
        files = {"cluster": str(tmp_path / "two.yaml"), "trace": str(tmp_path / "jobs.csv")}
        scenario = library.Scenario(**files, backend="none", policy=policy)  # type: ignore[arg-type]
        library.simulate(scenario, cache=False).save(tmp_path / "run")
        _print_story(job_story(tmp_path / "run", "b"))
        return " ".join(capsys.readouterr().out.split())

    return told


def test_a_wait_for_a_kind_says_what_holds_also_once_no_other_gpus_are_free(told_of_b) -> None:
    """Job a has all new GPUs until 100. The old ones are free until c takes them at 20."""
    rows = "a,0,4,vgg16,100,1,new\nb,10,2,vgg16,100,1,new\nc,20,4,vgg16,100,1,old\n"
    told = told_of_b("fifo-backfill", rows)
    assert "the kinds of free GPUs: 0 of 2 GPUs with room were GPUs of kind" in told
    assert "most GPU time was held by jobs a, c" in told
    assert "other kinds" not in told


def test_a_job_that_accepts_all_kinds_is_not_said_to_accept_some(told_of_b) -> None:
    """gavel mixes no kinds: b would need a GPU of each until the others leave."""
    rows = "a,0,3,vgg16,100,1,\nc,0,3,vgg16,100,1,\nb,1,2,vgg16,100,1,\n"
    told = told_of_b("gavel", rows)
    assert "the kinds of free GPUs: 2 GPUs were free, but at most 1 of one kind" in told
    assert "accept" not in told


def test_no_reason_says_that_too_few_gpus_were_free_where_enough_were() -> None:
    scenario = library.Scenario(racks=1, jobs=60, policy="tiresias")
    waits = library.simulate(scenario, cache=False).waits
    assert waits["reason"].str.contains("stayed free for the last").any()
    for gpus, reason in zip(waits["gpus"], waits["reason"], strict=True):
        most = re.search(r"from then on at most (\d+)|^at most (\d+)", reason)
        assert most is None or int(most[1] or most[2]) < gpus


@pytest.fixture
def damaged(tiny: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a run, one table of which is written again."""

    def damage(name: str, change: Callable[[pd.DataFrame], object]) -> Path:
        folder = shutil.copytree(tiny, tmp_path / "damaged")
        frame = pd.read_parquet(folder / f"{name}.parquet")
        pq.write_table(
            pa.Table.from_pandas(change(frame), preserve_index=False), folder / f"{name}.parquet"
        )
        return folder

    return damage


def plain(text: str) -> str:
    """Without the spaces and the line that lay out a table."""
    lines = (" ".join(line.split()) for line in text.splitlines() if not set(line) <= set(" ─"))
    return "\n".join(lines) + "\n"


def in_hours(causes: Mapping[str, float]) -> str:
    """The seconds of a timer, in the unit that suits all causes; days are told as hours."""
    return time_text(causes["timer"], time_unit(sum(causes.values()), days=NO_DAYS))


def test_the_story_of_a_job_in_words(artist, tiny: Path) -> None:
    ran = artist("why", tiny, "18")
    assert (plain(ran.stdout), ran.stderr, ran.returncode) == (STORY, "", 0)


def test_the_story_of_a_job_as_json(artist, tiny: Path) -> None:
    story = json.loads(artist("why", tiny, "18", "--format", "json").stdout)
    jobs = pd.read_parquet(tiny / "jobs.parquet").set_index("job_id")
    assert story["queue_delay_s"] == jobs.loc["18", "queue_delay_s"]
    assert story["slowdown"] == story["jct_s"] / story["alone_s"]
    assert [(wait["start_s"], wait["cause"]) for wait in story["waits"]] == [(0.0, "order")]
    assert story["waits"][0]["waited_for"] == ["4", "10", "12", "13", "15"]
    assert [(stay["signature"], stay["slowdown"]) for stay in story["stays"]] == [("4", 1.0)]


def test_seconds_by_cause_add_up_to_what_a_job_waited(artist, tmp_path: Path) -> None:
    settings = {"jobs": 100, "racks": 2, "policy": "dally", "backend": "none"}
    result = library.simulate(library.Scenario(**settings), cache=False)  # type: ignore[arg-type]
    result.save(tmp_path / "run")
    told = result.table("wait_causes")
    timers = told[told["cause"] == "timer"]
    story = json.loads(artist("why", "run", timers["job_id"].iloc[0], "--format", "json").stdout)
    assert sum(story["causes"].values()) == pytest.approx(story["queue_delay_s"])
    for wait in story["waits"]:
        assert sum(wait["causes"].values()) == pytest.approx(wait["wait_s"])
    mine = timers[timers["job_id"] == story["job_id"]]
    assert story["causes"]["timer"] == pytest.approx(mine["cause_s"].sum())
    shown = artist("why", "run", story["job_id"]).stdout
    assert f"a delay timer {in_hours(story['causes'])} (" in shown
    causes = waited_by_cause(tmp_path / "run")
    assert sum(causes.values()) == pytest.approx(result.waits["wait_s"].sum())
    assert causes["timer"] == pytest.approx(timers["cause_s"].sum())
    totals = f"All waits of the run: {causes_text(causes)}."
    assert f"a delay timer {in_hours(causes)} (" in totals
    assert totals in plain(artist("why", "run").stdout)
    settings_of_run = ("--jobs", 100, "--racks", 2, "--policy", "dally", "--backend", "none")
    assert totals in plain(artist("sim", *settings_of_run).stdout)
    for of_result in (result.waited_by_cause(), library.load(tmp_path / "run").waited_by_cause()):
        assert of_result == pytest.approx(causes)


def test_the_worst_waits_are_the_longest_or_those_of_the_slowest_jobs(artist, tiny: Path) -> None:
    shown = artist("why", tiny, "--by", "wait")
    assert "the longest waits" in shown.stdout
    assert f"artist why {tiny} --by slowdown lists waits of the jobs with the" in shown.stdout
    assert "--by wait lists the longest waits." in artist("why", tiny, "--by", "slowdown").stdout
    longest = json.loads(artist("why", tiny, "--by", "wait", "--format", "json").stdout)
    # The slowdown decides between 18 and 19, which wait equally long.
    assert [wait["job_id"] for wait in longest] == ["19", "18", "17", "15", "16"]
    ran = artist("why", tiny, "--by", "slowdown", "--format", "json")
    assert [wait["job_id"] for wait in json.loads(ran.stdout)] == ["19", "18", "17", "15", "16"]
    assert "largest slowdown" in artist("why", tiny, "--by", "slowdown").stdout


def test_unasked_jobs_are_ranked_by_all_that_they_waited(artist, tmp_path: Path) -> None:
    settings = {"trace": "tiny-batch", "racks": 1, "machines_per_rack": 2, "policy": "las"}
    scenario = library.Scenario(**settings, backend="none")  # type: ignore[arg-type]
    result = library.simulate(scenario, cache=False)
    result.save(tmp_path / "run")
    jobs = result.jobs.sort_values("queue_delay_s", ascending=False, kind="stable").head(10)
    by_wait = result.waits.sort_values("wait_s", ascending=False, kind="stable")
    assert by_wait["job_id"].iloc[0] != jobs["job_id"].iloc[0]  # the rankings differ
    told = json.loads(artist("why", "run", "--format", "json").stdout)
    assert [one["job_id"] for one in told] == jobs["job_id"].tolist()
    assert [one["queue_delay_s"] for one in told] == jobs["queue_delay_s"].tolist()
    longest = result.waits.groupby("job_id")["wait_s"].max()
    assert [one["wait_s"] for one in told] == [longest[one["job_id"]] for one in told]
    worst = told[0]
    shown = artist("why", "run").stdout
    assert "the jobs that waited longest in all, each with its longest wait" in shown
    assert f"{time_text(worst['queue_delay_s'])} in {worst['waits']} waits" in plain(shown)


def test_lengths_have_the_unit_of_the_instants_beside_them(capsys) -> None:
    """Instants are in hours, so no length is in days."""
    days = {"start_s": 0.0, "end_s": 12 * DAY, "gpus": 2, "signature": "2", "level": "machine",
            "ended": "finished", "slowdown": None}  # fmt: skip
    wait = {"start_s": 0.0, "end_s": 0.0, "reason": "r", "cause": "gpus", "waited_for": [],
            "overtaken_by": [], "began": "arrived"}  # fmt: skip
    zero = ("arrival_s", "queue_delay_s", "compute_s", "comm_s", "stalled_s", "lost_s")
    story = dict.fromkeys(zero, 0.0)
    _print_story({
        **story, "gpus": 2, "model": "vgg16", "job_id": "a", "finish_s": 12 * DAY, "waits": [wait],
        "jct_s": 12 * DAY, "run_s": 12 * DAY, "alone_s": DAY, "stays": [days], "slowdown": 12.0,
        "causes": {"gpus": 11 * DAY, "timer": DAY},
    })  # fmt: skip
    shown = capsys.readouterr().out
    assert " d" not in shown.replace(" delay", "")
    assert "finished 288 h after its arrival, 12.000 x the 24 h of its isolated run" in shown
    assert "too few GPUs 264 h (91.7 %), a delay timer 24 h (8.3 %)" in shown


def test_every_cause_and_every_end_has_words() -> None:
    assert tuple(CAUSE_WORDS) == CAUSES
    assert tuple(ENDED_WORDS) == tuple(EndReason)
    assert ended_words("preempted: for a: b") == "it was preempted: for a: b"


def test_ten_waits_are_listed_by_slowdown_before_length(tmp_path: Path) -> None:
    settings = {"trace": "tiny-poisson", "racks": 1, "machines_per_rack": 2, "policy": "las"}
    scenario = library.Scenario(**settings, backend="none")  # type: ignore[arg-type]
    result = library.simulate(scenario, cache=False)
    result.save(tmp_path / "run")
    slowdown = (result.jobs["jct_s"] / result.jobs["alone_s"]).set_axis(result.jobs["job_id"])
    waits = result.waits.assign(slowdown=slowdown.loc[result.waits["job_id"]].to_numpy())
    for by, keys in (("wait", ["wait_s", "slowdown"]), ("slowdown", ["slowdown", "wait_s"])):
        expected = waits.sort_values(keys, ascending=False, kind="stable").head(10)
        told = worst_waits(tmp_path / "run", by)
        assert [(one["job_id"], one["start_s"]) for one in told] == list(
            zip(expected["job_id"], expected["start_s"], strict=True)
        )


def test_an_iteration_on_half_the_gpus_is_worth_half(damaged) -> None:
    run = damaged("placements", lambda frame: frame.assign(gpus=frame["gpus"].replace(4, 2)))
    assert [stay["slowdown"] for stay in job_story(run, "18")["stays"]] == [2.0]


@pytest.mark.parametrize(("batch", "slowdown"), [(0, 2.0), (64, None)])
def test_what_a_step_with_a_batch_is_worth_is_not_guessed(damaged, batch, slowdown) -> None:
    run = damaged("placements", lambda frame: frame.assign(gpus=2, batch=batch))
    assert [stay["slowdown"] for stay in job_story(run, "18")["stays"]] == [slowdown]


def test_a_run_in_which_nobody_waits(artist, tmp_path: Path) -> None:
    scenario = library.Scenario(**{**TINY, "racks": 16})  # type: ignore[arg-type]
    library.simulate(scenario, cache=False).save(tmp_path / "empty")
    assert "No job waited" in artist("why", "empty").stdout
    assert job_story(tmp_path / "empty", "18")["waits"] == []
    assert json.loads(artist("why", "empty", "--format", "json").stdout) == []


def test_an_unknown_job_gets_the_nearest_name(artist, tiny: Path) -> None:
    ran = artist("why", tiny, "181", code=2)
    assert ran.stderr == (
        "artist: error: unknown job '181': did you mean '18'? (the run has 20 jobs, such as '0')\n"
    )


def test_a_cause_of_less_than_a_microsecond_is_not_shown() -> None:
    told = causes_text({"left-free": 470.0, "timer": 1e-6, "order": 2e-9})
    assert told.startswith("GPUs were left free 7.83 min (100.0 %), a delay timer ")
    assert "other jobs" not in told


def test_rounding_to_nanoseconds_is_not_shown(tiny: Path, capsys) -> None:
    """Such rounding occurs where a policy holds a job until an instant between two ticks."""
    story = job_story(tiny, "18") | {"stalled_s": 1e-9, "lost_s": 1e-6}
    _print_story(story)
    assert "and 0 h stood still; 0.001 ms of it was lost work" in capsys.readouterr().out


def test_a_run_of_an_earlier_version_says_what_to_do(artist, tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(tiny, tmp_path / "old", ignore=shutil.ignore_patterns("waits.parquet"))
    for arguments in (("why", "old"), ("why", "old", "18")):
        ran = artist(*arguments, code=3)
        assert ran.stderr == (
            "artist: error: old/waits.parquet: is missing, since an earlier version wrote the run; "
            "simulate its scenario again (artist sim --out DIR), which manifest.json holds\n"
        )


def test_a_folder_of_runs_is_not_a_run(artist, tiny: Path) -> None:
    ran = artist("why", tiny.parent, code=2)
    assert f"holds 1 runs; name one of them, e.g. {tiny}" in ran.stderr
    assert artist("why", "nowhere").returncode == 2


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("waits", lambda frame: frame.drop(columns="reason"), "lacks the column 'reason'"),
        ("waits", lambda frame: frame.assign(wait_s="long"), "'wait_s' should hold numbers"),
        ("waits", lambda frame: frame.assign(cause=3), "'cause' should hold text"),
        ("waits", lambda frame: frame.assign(waited_for="4"), "'waited_for' should hold lists of"),
        ("waits", lambda frame: frame.assign(reason=None), "'reason' should hold text"),
        ("placements", lambda frame: frame.assign(gpus=0), "'gpus' holds 0 in row 0, expected"),
        ("jobs", lambda frame: frame.assign(jct_s=float("inf")), "'jct_s' has no number in row 0"),
        ("jobs", lambda frame: frame.iloc[:0], "unknown job '18'"),
    ],
)
def test_a_damaged_table_ends_in_one_sentence(damaged, name: str, change, words: str) -> None:
    with pytest.raises(ArtistError) as caught:
        job_story(damaged(name, change), "18")
    assert words in str(caught.value)


def test_a_file_that_is_no_parquet_ends_in_one_sentence(artist, damaged) -> None:
    run = damaged("waits", lambda frame: frame)
    (run / "waits.parquet").write_bytes(b"PAR1 and nothing more")
    ran = artist("why", run, code=3)
    assert "waits.parquet: cannot be read as Parquet" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_repeated_reason_refers_to_the_earlier_wait() -> None:
    from artist.cli.commands.why import _wait_texts
    from artist.results.terms.number_text import HOUR, DisplayUnit

    wait = {"reason": "at most 2 GPUs were free", "cause": "gpus", "waited_for": ["b"],
            "overtaken_by": [], "overtakers": 0}  # fmt: skip
    began = ("arrived", "lease-ended", "lease-ended")
    waits = [{**wait, "start_s": 3600.0 * at, "began": how} for at, how in enumerate(began)]
    waits.append({**waits[2], "waited_for": ["c"]})
    text = "at most 2 GPUs were free; most GPU time was held by job "
    assert list(_wait_texts(waits, DisplayUnit(HOUR, "h"))) == [
        f"too few GPUs: {text}b",
        "(its lease ended) too few GPUs: as in the wait from 0.000 h",
        "(its lease ended) too few GPUs: as in the wait from 0.000 h",
        f"(its lease ended) too few GPUs: {text}c",
    ]
