"""Does what `sacct -a -P` prints become jobs by the rules of `foreign/sacct.py`?"""

from __future__ import annotations

import csv
import gzip
import itertools
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from foreign_samples import SACCT, put
from recordings import SLURM, needs_slurm

from artist.errors import ConfigError, TraceError
from artist.experiments.recorded.recording import runs_of
from artist.io.digests import pseudonym
from artist.trace.foreign import sacct
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.time_units import moment_s
from artist.trace.read import read_trace
from artist.workload.job import Job

SESSIONS = ["fifo-backfill", "preemption", "shares", "topology"]
KEEP = Rules(model="keep", keep_names=True)


def jobs(folder: Path, *lines: str, rules: Rules = KEEP) -> tuple[Job, ...]:
    return read_trace(put(folder, "log.txt", "\n".join(lines) + "\n"), rules=rules).jobs


def one(folder: Path, rules: Rules = KEEP, **cells: str) -> Job:
    """The job in a log of one row with these cells beside the usual ones."""
    usual = {
        "JobID": "5", "State": "COMPLETED", "Submit": "2026-03-01T10:00:00",
        "Start": "2026-03-01T10:00:05", "End": "2026-03-01T10:01:05", "AllocTRES": "gres/gpu=4",
    }  # fmt: skip
    row = {**usual, **cells}
    (job,) = jobs(folder, "|".join(row), "|".join(row.values()), rules=rules)
    return job


def test_columns_may_have_any_order(tmp_path: Path) -> None:
    cells = [line.split("|") for line in SACCT]
    for seed in range(5):
        order = Random(seed).sample(range(len(cells[0])), len(cells[0]))
        turned = ["|".join(row[i] for i in order) for row in cells]
        assert jobs(tmp_path, *turned) == jobs(tmp_path, *SACCT)


def test_people_get_pseudonyms_unless_names_are_to_be_kept(tmp_path: Path) -> None:
    people = [job.user for job in jobs(tmp_path, *SACCT, rules=Rules(model="keep"))]
    assert people == [pseudonym(name) for name in ("ann", "ben", "cem")]
    assert [job.user for job in jobs(tmp_path, *SACCT)] == ["ann", "ben", "cem"]


def test_limits_partitions_and_accounts_are_kept(tmp_path: Path) -> None:
    hints = [job.hints for job in jobs(tmp_path, *SACCT)]
    assert [x["hint_time_limit_s"] for x in hints] == ["1800", "300", ""]
    assert [x["hint_partition"] for x in hints] == ["main", "low", "main"]
    assert [x["hint_gpu_kind"] for x in hints] == ["", "a100", ""]
    job = one(tmp_path, Account="vision", QOS="high", Reservation="night", Timelimit="1-02:03:04")
    assert job.tenant == "vision"
    assert (job.hints["hint_qos"], job.hints["hint_reservation"]) == ("high", "night")
    assert job.hints["hint_time_limit_s"] == "93784"
    assert one(tmp_path, Timelimit="Partition_Limit").hints["hint_time_limit_s"] == ""


@pytest.mark.parametrize(
    ("tres", "gpus", "kind"),
    [
        ("billing=4,cpu=1,gres/gpu=4,node=1", 4, ""),
        ("gres/gpu:a100=3,gres/gpu=3", 3, "a100"),
        ("gres/gpu:h100=2,gres/gpu:a100=3", 5, "a100+h100"),
    ],
)
def test_gpus_are_counted_once(tmp_path: Path, tres: str, gpus: int, kind: str) -> None:
    job = one(tmp_path, AllocTRES=tres)
    assert (job.gpus, job.hints["hint_gpu_kind"]) == (gpus, kind)
    assert one(tmp_path, AllocTRES="", ReqTRES=tres).gpus == gpus


def test_slices_are_parts_of_gpus(tmp_path: Path) -> None:
    tres = "gres/gpu=1,gres/gpu:a100_1g.5gb=1"
    with pytest.raises(TraceError, match="asks for part of a GPU"):
        one(tmp_path, AllocTRES=tres)
    rules = Rules(model="keep", fractional=Fractional.ROUND_UP)
    assert one(tmp_path, rules, AllocTRES=tres).gpus == 1


def test_run_times_come_from_what_is_printed(tmp_path: Path) -> None:
    assert one(tmp_path).ideal_s == 60
    assert one(tmp_path, Elapsed="00:00:40").ideal_s == 40
    assert one(tmp_path, Elapsed="00:00:40", ElapsedRaw="41").ideal_s == 41


def test_zones(tmp_path: Path) -> None:
    night = {"Start": "2026-03-29T01:30:00", "End": "2026-03-29T03:30:00"}
    assert one(tmp_path, **night).ideal_s == 7200
    berlin = Rules(model="keep", time_zone="Europe/Berlin")
    assert one(tmp_path, berlin, **night).ideal_s == 3600
    zoned = {"Start": "2026-03-29T01:30:00+0100", "End": "2026-03-29T03:30:00+0200"}
    assert one(tmp_path, **zoned).ideal_s == 3600
    assert one(tmp_path, Submit="1774740000", Start="1774740000", End="1774740050").ideal_s == 50
    with pytest.raises(ConfigError, match="no such zone"):
        one(tmp_path, Rules(time_zone="Europe/Nowhere"), **night)


def test_models_are_named_by_job_names(tmp_path: Path) -> None:
    rules = Rules(model="keep", models={"nightly-*": "bert-large"})
    assert one(tmp_path, rules, JobName="nightly-7").model == "bert-large"
    assert one(tmp_path, JobName="resnet50").model == "resnet50"
    assert one(tmp_path, JobName="ann-test").model == one(tmp_path).model == "unknown"


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({"AllocTRES": "gres/gpu=four"}, "'AllocTRES' is 'gres/gpu=four'"),
        ({"Start": "yesterday"}, "'Start' is 'yesterday', expected a time"),
        ({"Submit": "Unknown"}, "'Submit' is 'Unknown'"),
        ({"Elapsed": "1 hour"}, "expected a length of time such as 1-02:03:04"),
        (
            {"Elapsed": "00:54:99"},
            "is '00:54:99', expected a length of time such as 1-02:03:04, min",
        ),
        ({"Timelimit": "soon"}, "expected a length of time"),
        ({"End": "2026-03-01T09:00:00"}, "expected a time after Start"),
        ({"ElapsedRaw": "-3"}, "'ElapsedRaw' is '-3'"),
    ],
)
def test_a_broken_cell_is_named(tmp_path: Path, cells: dict[str, str], words: str) -> None:
    with pytest.raises(TraceError) as caught:
        one(tmp_path, **cells)
    assert str(caught.value).startswith(f"{tmp_path / 'log.txt'}:2: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_id_that_recurs_without_a_requeue_is_refused(tmp_path: Path) -> None:
    again = [*SACCT, SACCT[1]]
    with pytest.raises(TraceError, match="its id recurs"):
        jobs(tmp_path, *again)


@pytest.mark.parametrize("state", ["COMPLETED", "OUT_OF_MEMORY"])
def test_an_ended_job_may_be_queued_again(tmp_path: Path, state: str) -> None:
    head = "JobID|User|State|Submit|Start|End|AllocTRES"
    first = f"5|ann|{state}|2026-03-01T10:00:00|2026-03-01T10:00:05|2026-03-01T10:01:05|gres/gpu=4"
    again = "5|ann|COMPLETED|2026-03-01T10:01:05|2026-03-01T10:02:00|2026-03-01T10:02:30|gres/gpu=4"
    both = jobs(tmp_path, head, first, again)
    assert [(x.id, x.arrival_s, x.ideal_s) for x in both] == [("5", 0, 60), ("5:2", 65, 30)]
    assert {x.hints["hint_job_number"] for x in both} == {"5"}
    other = again.replace("ann", "ben")
    nobodys = [x.replace("|ann|", "||") for x in (first, again)]
    with pytest.raises(TraceError, match="its id recurs"):
        jobs(tmp_path, head, *nobodys)
    while_it_ran = again.replace("T10:01:05", "T10:01:04")
    for row in (other, while_it_ran):
        with pytest.raises(TraceError, match="its id recurs"):
            jobs(tmp_path, head, first, row)


Runs = list[tuple[str, float, float]]


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ("PREEMPTED PREEMPTED COMPLETED", [("5_1", 0, 30)]),
        ("FAILED COMPLETED", [("5_1", 0, 10), ("5_1:2", 100, 20)]),
        ("TIMEOUT PREEMPTED NODE_FAIL REQUEUED",
         [("5_1", 0, 10), ("5_1:2", 100, 30), ("5_1:3", 300, 40)]),
        ("PREEMPTED -CANCELLED", [("5_1", 0, 10)]),
        ("PREEMPTED -CANCELLED COMPLETED", [("5_1", 0, 30)]),
        ("FAILED -CANCELLED", [("5_1", 0, 10)]),
        ("FAILED -FAILED COMPLETED", [("5_1", 0, 10), ("5_1:2", 100, 30)]),
    ],
)  # fmt: skip
def test_a_run_that_was_not_preempted_is_a_job(tmp_path: Path, states: str, found: Runs) -> None:
    """The nth run is submitted at 100 n s and lasts for 10 n s; - is one that never started."""
    log = tmp_path / "log.txt"
    lines = ["JobID|JobName|State|Submit|Start|End|AllocTRES"]
    for nth, state in enumerate(states.split(), start=1):
        start = "Unknown" if state[0] == "-" else f"{100 * nth}"
        end = 100 * nth + (0 if state[0] == "-" else 10 * nth)
        lines.append(f"5_1|a|{state.lstrip('-')}|{100 * nth}|{start}|{end}|gres/gpu=4")
    read = jobs(tmp_path, *lines)
    assert [(x.id, x.arrival_s, x.ideal_s) for x in read] == found
    assert list(runs_of(log)[0]) == [x.id for x in read]
    assert all(x.hints["hint_job_number"] == "5" for x in read)


@pytest.mark.parametrize(
    ("id_", "line", "most"),
    [
        ("5_0", "sbatch --array=0-99%4 a.sh", "4"),
        ("5_0", "sbatch -a 1,3-9:2%12 a.sh", "12"),
        ("5_0", "sbatch --array 0-3 a.sh", ""),
        ("5", "sbatch --array=0-99%4 a.sh", ""),
        ("5_0", "sbatch -a 0-9%3 a.sh --array=0-99%4", "3"),
        ("5_0", "sbatch -a 0-9%3 --array=0-99%4 a.sh", "4"),
    ],
)
def test_the_limit_of_simultaneous_array_tasks_is_kept(
    tmp_path: Path, id_: str, line: str, most: str
) -> None:
    assert one(tmp_path, JobID=id_, SubmitLine=line).hints["hint_tasks_at_once"] == most


@pytest.mark.parametrize(
    ("cpus", "nodes", "hints"),
    [
        ("1K", "8", ("1024", "8")), ("1.50K", "2K", ("1536", "2048")), ("64", "?", ("64", "")),
        ("1.5", "1.0001K", ("", "")),
    ],
)  # fmt: skip
def test_numbers_may_have_a_unit(
    tmp_path: Path, cpus: str, nodes: str, hints: tuple[str, str]
) -> None:
    job = one(tmp_path, ReqCPUS=cpus, NNodes=nodes)
    assert (job.hints["hint_cpus"], job.hints["hint_nodes"]) == hints


def test_memory_may_have_a_unit(tmp_path: Path) -> None:
    found = [
        one(tmp_path, AllocTRES=f"gres/gpu=1,mem={text}").memory_mib
        for text in ("2048K", "2000M", "62.50G", "1T", "1.5P")
    ]
    assert found == [2, 2000, 64_000, 2**20, 3 * 2**29]


def test_shards_of_gpus_are_not_reported_as_jobs_without_gpus(tmp_path: Path) -> None:
    head = "JobID|State|Submit|Start|End|AllocTRES"
    times = "COMPLETED|2026-03-01T10:00:00|2026-03-01T10:00:05|2026-03-01T10:01:05"
    held = ("gres/gpu=4", "cpu=4,gres/shard=2", "gres/shard:a100=8", "gres/shard=0", "cpu=4")
    rows = [f"{number}|{times}|{tres}" for number, tres in enumerate(held)]
    trace = read_trace(put(tmp_path, "log.txt", "\n".join([head, *rows]) + "\n"), rules=KEEP)
    assert trace.dropped == {"shards of GPUs": 2, "CPU only": 2}


@pytest.mark.parametrize("missing", ["AllocTRES", "End"])
def test_missing_columns_are_named(tmp_path: Path, missing: str) -> None:
    lines = ["JobID|State|Submit|Start|Eligible", "1|COMPLETED|1|2|3"]
    extra = {"AllocTRES": ("End", "5"), "End": ("AllocTRES", "gres/gpu=1")}[missing]
    with pytest.raises(TraceError, match=f"none of the columns .*{missing}"):
        jobs(tmp_path, f"{lines[0]}|{extra[0]}", f"{lines[1]}|{extra[1]}")


@pytest.mark.parametrize(
    ("line", "requeue"),
    [
        ("sbatch --no-requeue -t 4 train.sh", "0"),
        ("sbatch -t 4 --requeue train.sh", "1"),
        ("sbatch --requeue -t 4 --no-requeue train.sh", "0"),
        ("sbatch -t 4 train.sh --no-requeue-of-data", ""),
        ("salloc -N 1 --gres=gpu:8", "0"),
        ("/usr/bin/srun --requeue python srun.py", "0"),
        ("sbatch srun.sh", ""),
        ("", ""),
    ],
)
def test_the_line_of_sbatch_says_whether_a_job_may_be_requeued(
    tmp_path: Path, line: str, requeue: str
) -> None:
    assert one(tmp_path, SubmitLine=line).hints["hint_requeue"] == requeue


@pytest.mark.parametrize(
    ("line", "nice", "dependency"),
    [
        ("sbatch --nice=5 --nice=-7 -d afterok:3 a.sh", "-7", "afterok:3"),
        ("sbatch --nice -d aftercorr:8 a.sh --dependency=afterok:9", "100", "aftercorr:8"),
        ("sbatch --nice=low a.sh --nice=5", "", ""),
        ("sbatch a.sh -d after.csv", "", ""),
    ],
)
def test_arguments_of_the_script_are_no_options(
    tmp_path: Path, line: str, nice: str, dependency: str
) -> None:
    hints = one(tmp_path, SubmitLine=line).hints
    assert (hints["hint_nice"], hints["hint_dependency"]) == (nice, dependency)


@pytest.mark.parametrize(
    ("line", "got", "nodes"),
    [
        ("sbatch --gpus=12 a.sh", "2", "0"),
        ("sbatch -G 4 a.sh", "1", "0"),
        ("sbatch -G 8 -N 2 a.sh", "2", "2"),
        ("sbatch --gres=gpu:4 a.sh --gpus=4", "1", "1"),
        ("sbatch a.sh", "3", "0"),  # the script has --gpus
        ("sbatch --gres=gpu:2 -N 2-4 a.sh", "4", "4"),
        ("sbatch --gpus-per-node=2 -N 2-4 a.sh", "4", "4"),
        ("sbatch --gres=disk:2 a.sh", "3", "0"),
    ],
)
def test_gpus_without_nodes_may_be_on_any_number_of_machines(
    tmp_path: Path, line: str, got: str, nodes: str
) -> None:
    least = "2" if "-N 2" in line else "1"
    found = one(tmp_path, SubmitLine=line, ReqNodes=least, NNodes=got)
    assert found.hints["hint_nodes"] == nodes


def test_a_singleton_waits_for_earlier_jobs_of_its_user_and_name(tmp_path: Path) -> None:
    """Not for those that had ended when it was submitted."""
    head = "JobID|User|JobName|Submit|Start|End|State|AllocTRES|SubmitLine"
    day = "2026-03-01T10:0"
    rows = [
        f"{number}|{user}|{name}|{day}{submit}|{day}{start}|{day}{end}|COMPLETED|gres/gpu=1|{line}"
        for number, user, name, submit, start, end, line in (
            ("1", "ann", "x", "0:00", "0:00", "0:30", "sbatch a.sh"),
            ("2", "ann", "x", "0:40", "0:40", "2:00", "sbatch a.sh"),
            ("3", "ben", "x", "0:41", "0:41", "2:00", "sbatch a.sh"),
            ("4", "ann", "y", "0:42", "0:42", "2:00", "sbatch a.sh"),
            ("5_1", "ann", "x", "0:43", "2:00", "3:00", "sbatch -d singleton,after:4 a.sh"),
            ("5_2", "ann", "x", "0:43", "3:00", "4:00", "sbatch -d singleton a.sh"),
            ("6", "cem", "x", "0:44", "0:44", "4:00", "sbatch -d singleton a.sh"),
        )
    ]
    waits = ["", "", "", "", "afterany:2,after:4", "afterany:2", ""]
    for order in (rows, rows[::-1]):
        found = {x.id: x.hints["hint_dependency"] for x in jobs(tmp_path, head, *order)}
        assert [found[row.partition("|")[0]] for row in rows] == waits


def test_the_end_of_a_job_is_read_once_for_all_singletons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = "JobID|User|JobName|Submit|Start|End|State|AllocTRES|SubmitLine"
    row = "ann|x|2026-03-01T10:00:00|2026-03-01T10:00:00|2026-03-01T10:01:00|COMPLETED|gres/gpu=1"
    read = list[str]()
    monkeypatch.setattr(sacct, "moment_s", lambda text: read.append(text) or moment_s(text))
    jobs(tmp_path, head, *(f"{n}|{row}|sbatch -d singleton a.sh" for n in range(100)))
    assert len(read) < 1000


def test_tasks_of_an_array_arrive_with_the_first_that_was_eligible(tmp_path: Path) -> None:
    """With %N, Slurm calls a task eligible when others have ended."""
    head = "JobID|User|Submit|Eligible|Start|End|State|AllocTRES|SubmitLine"
    day = "2026-03-01T10:0"

    def arrivals(array: str) -> list[float]:
        rows = [
            f"{id_}|ann|{day}0:00|{day}{eligible}|{day}{eligible}|{day}{end}|{state}|gres/gpu=1|"
            f"sbatch --array={array} a.sh"
            for id_, eligible, end, state in (
                ("7_2", "2:00", "3:00", "FAILED"),
                ("7_0", "1:00", "2:00", "COMPLETED"),
                ("7_1", "1:30", "3:00", "COMPLETED"),
                ("7_2", "4:00", "5:00", "COMPLETED"),  # requeued
            )
        ]
        return [x.arrival_s for x in jobs(tmp_path, head, *rows)]

    assert sorted(arrivals("0-2%1")) == [0, 0, 0, 180]
    assert sorted(arrivals("0-2")) == [0, 30, 60, 180]


def test_options_after_a_name_or_a_comment_of_several_words_count(tmp_path: Path) -> None:
    """Slurm keeps no quotes around values, and sacct prints others as backticks."""
    line = 'sbatch -J a "b" c --comment=for (\\1 me --nice=5 a.sh'
    found = one(tmp_path, SubmitLine=line, JobName="a `b` c", Comment="for (\\1 me")
    assert found.hints["hint_nice"] == "5"


@needs_slurm
@pytest.mark.parametrize("session", SESSIONS)
def test_recorded_sessions_become_what_was_submitted(tmp_path: Path, session: str) -> None:
    folder = SLURM / session
    log = gzip.decompress((folder / "sacct.txt.gz").read_bytes())
    full = put(tmp_path, "all.txt", log.decode())
    trace = read_trace(full, rules=KEEP)
    # The short log lacks the columns ReqCPUS and SubmitLine.
    only = (
        "hint_cpus",
        "hint_tasks_per_node",
        "hint_nice",
        "hint_dependency",
        "hint_requeue",
        "hint_tasks_at_once",
    )
    short = [replace(x, hints={**x.hints, **dict.fromkeys(only, "")}) for x in trace.jobs]
    assert short == list(read_trace(folder / "sacct_short.txt", rules=KEEP).jobs)
    read = {
        of: list(group) for of, group in itertools.groupby(trace.jobs, lambda x: x.id.split("_")[0])
    }
    ids = {row["n"]: row["job_id"] for row in _rows(folder / "ids.csv")}
    for asked in _rows(folder / "submitted.csv"):
        for job in read[ids[asked["n"]]]:
            assert job.gpus == int(asked["gpus"])
            assert (job.user, job.tenant) == (asked["user"], asked["account"])
            assert job.hints["hint_time_limit_s"] == str(60 * int(asked["limit_min"]))
            assert job.hints["hint_partition"] == asked["partition"]
            assert job.hints["hint_qos"] == asked["qos"]
            if not asked["extra"] and session != "preemption":
                assert abs(job.ideal_s - float(asked["duration_s"])) <= 2


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
