"""Are starts forecast from the queue of a recorded Slurm, and the run times in its log?"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from recordings import SLURM, needs_slurm
from typer.testing import CliRunner

from artist.cli.commands.forecast import _basis, _rows
from artist.cli.commands.forecast import forecast as command
from artist.cli.main import application
from artist.errors import ArtistError, ConfigError, TraceError
from artist.experiments.recorded.forecast import (
    FEW,
    Forecast,
    StartForecast,
    calibration,
    forecast,
)
from artist.experiments.recorded.futures import Asked, Futures
from artist.experiments.recorded.queue_at import queue_at, read_log, tasks
from artist.experiments.recorded.recording import log_of
from artist.experiments.recorded.run_time_law import Observed, RunTimes
from artist.slurm.queue_text import expected_starts
from artist.trace.foreign.sacct import READ
from artist.trace.read import read_trace

SCHEDULER = "bf_interval=5,sched_interval=5,batch_sched_delay=1"
HEADER = (
    "JobID|JobName|User|Account|Submit|Eligible|Start|End|State|ReqTRES|AllocTRES|NodeList|"
    "Timelimit|ReqNodes\n"
)
QUEUE = "JOBID|START_TIME|STATE\n12|2026-01-02T00:30:00|PENDING\n11|2026-01-02T00:10:00|RUNNING\n"


def clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    return f"2026-01-02T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}"


def row(number: int, submit: float, start: float | None, end: float | None, user: str) -> str:
    started = "Unknown" if start is None else clock(start)
    ended = "Unknown" if end is None else clock(end)
    state = "PENDING" if start is None else "RUNNING" if end is None else "COMPLETED"
    held = "" if start is None else "gres/gpu=8"
    node = "None assigned" if start is None else "g1"
    return (
        f"{number}|train-{number}|{user}|lab|{clock(submit)}|{clock(submit)}|{started}|{ended}|"
        f"{state}|gres/gpu=8|{held}|{node}|00:10:00|1\n"
    )


def one_machine(path: Path, runs_s: list[float], waiting: int = 1) -> Path:
    """Jobs one after the other; the last one runs for 40 s, and others wait for it."""
    path.mkdir(exist_ok=True)
    (path / "nodes.txt").write_text("NodeName=g1 CPUTot=64 Gres=gpu:8 State=IDLE\n")
    (path / "config.txt").write_text(f"ClusterName = mine\nSchedulerParameters = {SCHEDULER}\n")
    text, at = HEADER, 0.0
    for number, run_s in enumerate(runs_s, start=1):
        text += row(number, at, at, at + run_s, "ann")
        at += run_s + 10
    text += row(len(runs_s) + 1, at, at, None, "ann")
    for number in range(waiting):
        text += row(len(runs_s) + 2 + number, at + 40, None, None, "ann")
    (path / "sacct.txt").write_text(text)
    return path


def asked(path: Path, **more: object) -> Forecast:
    return forecast(path, path / "inputs", futures=10, **more)  # type: ignore[arg-type]


def test_a_job_waits_for_what_is_left_of_the_one_that_runs(tmp_path: Path) -> None:
    found = asked(one_machine(tmp_path, [100.0] * 10), job="12")
    (one,) = found.jobs
    # All jobs ran for 100 s, and the one that runs has for 40 s. A cycle may pass beyond that.
    assert all(60 <= x <= 60 + found.cycle_s + 1 for x in one.starts_s)
    assert (one.gpus, one.never, one.waited_s) == (8, 0.0, 0.0)
    assert one.group == "user, name and limit (11)"


def test_an_unknown_account_is_refused(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 3)
    with pytest.raises(ConfigError, match=r"^--account 'labb': did you mean 'lab'\?$"):
        asked(path, asked=Asked(8, 600.0, account="labb"))
    assert len(asked(path, asked=Asked(8, 600.0, account="lab")).jobs) == 1


def test_a_limit_that_no_partition_allows_is_refused(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 3)
    texts = ("p Default=YES MaxTime=01:00:00", "q MaxTime=02:00:00", "r MaxTime=UNLIMITED")
    lines = "".join(f"PartitionName={text} Nodes=g1\n" for text in texts)
    (path / "partitions.txt").write_text(lines)
    for limit_s, partition in ((3600, ""), (7200, "p,q"), (9e5, "r"), (9e5, "p,r")):
        hints = (("hint_partition", partition),) if partition else ()
        assert len(asked(path, asked=Asked(8, limit_s, hints)).jobs) == 1
    with pytest.raises(ConfigError, match=r"--limit is 61 min, but partition p lets .* for 60 min"):
        asked(path, asked=Asked(8, 3660.0))
    with pytest.raises(ConfigError, match=r"^--partition 'rr': did you mean 'r'\?$"):
        asked(path, asked=Asked(8, 3600.0, (("hint_partition", "p,rr"),)))
    with pytest.raises(ConfigError, match="partition p or q lets jobs run for 120 min at most"):
        asked(path, asked=Asked(8, 7260.0, (("hint_partition", "p,q"),)))


@pytest.mark.parametrize(("gpus", "hints"), [(8, (("hint_nodes", "2"),)), (9, ())])
def test_more_machines_than_every_partition_allows_are_refused(
    tmp_path: Path, gpus: int, hints: tuple[tuple[str, str], ...]
) -> None:
    path = one_machine(tmp_path, [100.0] * 3)
    node = "NodeName=g1 CPUTot=64 Gres=gpu:8 State=IDLE\n"
    (path / "nodes.txt").write_text(f"{node}\n{node.replace('g1', 'g2')}")
    texts = ("p Default=YES MaxNodes=1", "q MaxNodes=2")
    lines = "".join(f"PartitionName={text} Nodes=g[1-2]\n" for text in texts)
    (path / "partitions.txt").write_text(lines)
    assert asked(path, asked=Asked(gpus, 600.0, (*hints, ("hint_partition", "p,q")))).jobs
    told = rf"^--gpus {gpus} on 2 machines, but partition p allows 1 \(MaxNodes\)"
    with pytest.raises(ConfigError, match=told):
        asked(path, asked=Asked(gpus, 600.0, hints))


@pytest.mark.parametrize("default", ["", "Default=YES"])
def test_a_job_without_a_partition_has_the_limit_of_the_one_that_it_gets(
    tmp_path: Path, default: str
) -> None:
    """Partitions without GPUs do not count."""
    path = one_machine(tmp_path, [100.0] * 3)
    (path / "nodes.txt").write_text(
        "NodeName=c1 CPUTot=64 Gres=(null) State=IDLE\n" + (path / "nodes.txt").read_text()
    )
    (path / "partitions.txt").write_text(
        f"PartitionName=cpu Nodes=c1 MaxTime=00:10:00 {default}\n"
        "PartitionName=gpu Nodes=g1 MaxTime=01:00:00\n"
    )
    assert len(asked(path, asked=Asked(8, 3600.0)).jobs) == 1
    with pytest.raises(ConfigError, match=r"partition gpu lets .* for 60 min"):
        asked(path, asked=Asked(8, 3660.0))


def test_a_log_may_have_run_times_as_text_alone(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [300.0] * 10)
    plain = asked(path, job="12").jobs[0].starts_s
    rows = (path / "sacct.txt").read_text().splitlines()
    ran = ["00:05:00"] * 10 + ["00:00:40", "00:00:00"]
    lines = [f"{row}|{text}" for row, text in zip(rows, ["Elapsed", *ran], strict=True)]
    (path / "sacct.txt").write_text("\n".join(lines) + "\n")
    assert asked(path, job="12").jobs[0].starts_s == plain
    assert min(plain) >= 260


def test_what_ran_so_long_runs_as_long_as_those_that_did(tmp_path: Path) -> None:
    runs = [30.0] * 30 + [200.0] * 3
    (one,) = asked(one_machine(tmp_path, runs), job="35").jobs
    assert min(one.starts_s) >= 160


def test_jobs_behind_others_wait_for_them_too(tmp_path: Path) -> None:
    found = asked(one_machine(tmp_path, [100.0] * 10, waiting=3))
    medians = [x.interval_s[1] for x in found.jobs]
    assert [round(x, -2) for x in medians] == [100.0, 200.0, 300.0]
    assert found.waiting == 3
    units = {unit for row in _rows(found) for unit in re.findall(r"\(in \S+ (\w+)\)", str(row))}
    assert len(units) == 1


def test_tasks_of_an_array_wait_each_for_itself(tmp_path: Path) -> None:
    path = one_machine(tmp_path / "tasks", [100.0] * 10, waiting=3)
    log = path / "sacct.txt"
    rows = log.read_text().splitlines()
    tasks = [re.sub(r"^\d+", f"12_{x}", rows[-3]) for x in (0, 2, 7)]
    log.write_text("\n".join([*rows[:-3], *tasks]) + "\n")
    alone = asked(path)
    log.write_text("\n".join([*rows[:-3], re.sub(r"^\d+", "12_[0-2:2,7%2]", rows[-3])]) + "\n")
    array = asked(path)
    assert [x.job_id for x in array.jobs] == ["12_0", "12_2", "12_7"]
    assert (array.jobs, array.waiting) == (alone.jobs, 3)
    at = queue_at(path, tmp_path, read_log(path, tmp_path), array.at_s, keep_names=True)
    most = {job.id: job.hints["hint_tasks_at_once"] for job in at.recording.trace.jobs}
    assert {x: most[x] for x in at.waiting} == dict.fromkeys(("12_0", "12_2", "12_7"), "2")
    assert set(most.values()) == {"", "2"}


def test_later_tasks_of_an_array_keep_its_limit(tmp_path: Path) -> None:
    """They share a number, as often as the array is drawn."""
    path = one_machine(tmp_path, [100.0] * 10)
    head, *rows = (path / "sacct.txt").read_text().splitlines()
    tasks = [re.sub(r"^\d+", f"1_{x}", row) for x, row in enumerate(rows[:10])]
    told = [f"{row}|sbatch --array=0-9%1 a.sh" for row in tasks] + [f"{row}|" for row in rows[10:]]
    (path / "sacct.txt").write_text("\n".join([f"{head}|SubmitLine", *told]) + "\n")
    log = read_log(path, tmp_path)
    at = queue_at(path, tmp_path, log, log.last_s, keep_names=True)
    futures = Futures(at, None, horizon_s=86400.0, keep_names=True)
    drawn = futures._arrivals(futures._laws, np.random.default_rng(1))
    limited = [x for x in drawn if x.hints["hint_tasks_at_once"] == "1"]
    numbers = Counter(x.hints["hint_job_number"] for x in limited)
    assert max(numbers.values()) > 1
    assert len({x.id for x in drawn}) == len(drawn)


def test_an_array_in_a_list_that_is_cut_off_ends_a_forecast(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10, waiting=1)
    log = path / "sacct.txt"
    log.write_text(log.read_text().replace("\n12|", "\n12_[0,2,4,...]|"))
    with pytest.raises(ConfigError, match=r"sacct\.txt:13: JobID is .* SLURM_BITSTR_LEN=0$"):
        asked(path)


@pytest.mark.parametrize("id_", ["7_[0-9,...]", "7_[9-0]", "7_[0-100000]", "7_[0-9:0]", "7_[]"])
def test_a_list_of_tasks_that_is_cut_off_is_refused(id_: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: JobID is .* SLURM_BITSTR_LEN=0$"):
        tasks(id_, "here")
    assert len(tasks("7_[0-99999]", "here")) == 100_000


def test_jobs_that_wait_may_ask_for_memory_that_no_job_is_given(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    plain = asked(path, job="12").jobs
    log = path / "sacct.txt"
    log.write_text(log.read_text().replace("|PENDING|", "|PENDING|mem=4G,"))
    assert asked(path, job="12").jobs == plain


def test_a_job_that_is_not_there_yet_comes_last(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    (one,) = asked(path, asked=Asked(8, 600.0)).jobs
    # Once in eleven times the job before it runs longer than all ten that were seen.
    assert 160 <= min(one.starts_s) <= one.interval_s[1] <= 165


def test_what_does_not_start_before_the_horizon_is_counted(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    (one,) = asked(path, job="12", horizon_s=30.0).jobs
    assert one.never == 1.0
    assert math.isinf(one.interval_s[0])


def test_slurms_own_estimate_stands_beside_it(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    (path / "squeue.txt").write_text(QUEUE)
    (one,) = asked(path, job="12").jobs
    # It is 00:19:00: ten jobs of 110 s, and 40 s.
    assert one.slurm_s == 660.0
    assert [x.job_id for x in expected_starts(path)] == ["12"]


def test_only_what_was_known_then_is_used(tmp_path: Path) -> None:
    past, whole = tmp_path / "past", tmp_path / "whole"
    one_machine(past, [100.0] * 10)
    one_machine(whole, [100.0] * 10)
    text = (whole / "sacct.txt").read_text()
    text = text.replace(row(11, 1100, 1100, None, "ann"), row(11, 1100, 1100, 1500, "ann"))
    text = text.replace(row(12, 1140, None, None, "ann"), row(12, 1140, 1501, 1700, "ann"))
    (whole / "sacct.txt").write_text(text + row(13, 1300, 1701, 1800, "ann"))
    (then,) = asked(past).jobs
    (later,) = asked(whole, at=clock(1140)).jobs
    assert later.starts_s == then.starts_s
    assert (then.recorded_s, later.recorded_s) == (None, 361.0)


def test_what_waits_at_a_second_of_the_log_starts_in_the_next_one_at_the_earliest(
    tmp_path: Path,
) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    text = (path / "sacct.txt").read_text()
    # The machine is free, and the main scheduler looks once a second.
    late = row(5, 440, 440, 540, "ann"), row(5, 440, 441, 541, "ann")
    (path / "sacct.txt").write_text(text.replace(*late))
    (one,) = asked(path, at=clock(440), job="5").jobs
    assert set(one.starts_s) <= {1.0, 2.0}
    low, _, high = one.interval_s
    assert low <= 1.0 == one.recorded_s <= high


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"job": "11"}, "--job '11': it runs already"),
        ({"job": "3"}, "--job '3': it has ended"),
        ({"job": "99"}, "--job '99': "),
        ({"at": "soon"}, "--at 'soon': expected a time"),
        ({"at": "2025-01-01T00:00:00"}, "that the log covers"),
        ({"at": "2027-01-01T00:00:00"}, "that the log covers"),
        ({"asked": Asked(16, 60.0)}, "16 GPUs"),
    ],
)
def test_what_cannot_be_forecast_ends_in_one_sentence(
    tmp_path: Path, more: dict[str, object], says: str
) -> None:
    with pytest.raises(ArtistError, match=says) as caught:
        asked(one_machine(tmp_path, [100.0] * 10), **more)
    assert "\n" not in str(caught.value)


def test_a_job_on_slices_of_gpus_that_waits_is_said_to_have_no_forecast(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    text = row(99, 440, None, None, "ann").replace("gres/gpu=8", "gres/gpu:a100_1g.5gb=1")
    with (path / "sacct.txt").open("a") as file:
        file.write(text)
    with pytest.raises(ConfigError, match="--job '99': it asks for no GPUs, or for parts of them"):
        asked(path, job="99")


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("squeue.txt", "JOBID|START_TIME\n12\n", r"squeue\.txt:2: 1 cells, expected 2"),
        ("squeue.txt", "JOBID|STATE\n", r"squeue\.txt:1: no column START_TIME"),
        ("squeue.txt", "JOBID|START_TIME\n12|soon\n", r"squeue\.txt:2: START_TIME is 'soon'"),
        ("squeue.txt.gz", "no archive", r"squeue\.txt\.gz: cannot be unpacked"),
        ("sacct.txt", HEADER, r"sacct\.txt: no job"),
        ("sacct.txt", HEADER + "1|a\n", r"sacct\.txt:2: 2 cells, expected 14"),
        ("sacct.txt", HEADER + row(1, 0, 0, 9, "a").replace(clock(9), "noon"), "End is 'noon'"),
    ],
)
def test_broken_texts_are_named_with_their_line(
    tmp_path: Path, name: str, text: str, says: str
) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    (path / name).write_text(text)
    with pytest.raises(ConfigError, match=says):
        asked(path)


@pytest.mark.parametrize("flag", ["--job", "--gpus", "--at", "--calibrate"])
def test_what_a_check_does_not_read_is_refused(tmp_path: Path, flag: str) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    arguments = ["forecast", str(path), "--check", "5", flag, "7"]
    refused = CliRunner().invoke(application(["forecast", "doctor"]), arguments).exception
    assert str(refused) == f"--check forecasts all of the log without {flag}; leave one out"


@pytest.mark.parametrize(
    ("log", "flags", "told"),
    [
        ("gold", ["--gpus", "8"], "': QOS is"),
        ("gold", ["--check", "4"], "': QOS is"),
        ("normal", ["--gpus", "8", "--qos", "gold"], "job 'asked': --qos is"),
    ],
)
def test_errors_name_flags_only_for_the_job_that_is_asked_about(
    tmp_path: Path, log: str, flags: list[str], told: str
) -> None:
    path = closed_between(tmp_path / "log", 200.0)
    (path / "qos.txt").write_text("Name|Priority\nnormal|1\n")
    head, *rows = (path / "sacct.txt").read_text().splitlines()
    lines = [f"{head}|QOS", *(f"{row}|{log}" for row in rows)]
    (path / "sacct.txt").write_text("\n".join(lines) + "\n")
    refused = CliRunner().invoke(
        application(["forecast", "doctor"]), ["forecast", str(path), *flags]
    )
    assert f"{told} 'gold', which the cluster lacks" in str(refused.exception)


def test_the_command_prints_the_same_twice(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [50.0, 150.0] * 6)
    arguments = ["forecast", str(path), "--gpus", "8", "--limit", "10min", "--futures", "5"]
    runner, commands = CliRunner(), application(["forecast", "doctor"])
    one, other = (runner.invoke(commands, [*arguments, "--format", "json"]) for _ in range(2))
    assert one.exit_code == 0, one.output
    assert one.stdout == other.stdout
    assert len(json.loads(one.stdout)["jobs"][0]["starts_s"]) == 5
    printed = runner.invoke(commands, arguments)
    assert printed.stdout.startswith("Such a job (8 GPUs) starts at 2026-01-02T00:")
    assert "0 %" in printed.stdout and "in 0 %" not in printed.stdout
    waiting = runner.invoke(commands, ["forecast", str(path), "--at", "2026-01-02T00:00"])
    assert "or another --at." in waiting.stdout
    assert "--gpus" in str(runner.invoke(commands, ["forecast", str(path), "--qos", "a"]).exception)


def test_progress_counts_the_futures_of_earlier_moments_too(tmp_path: Path) -> None:
    path, told = closed_between(tmp_path / "log", 200.0), list[tuple[int, int]]()
    forecast(
        path, tmp_path / "inputs", at=clock(8900), futures=10, earlier=3,
        show=lambda *of: told.append(of),
    )  # fmt: skip
    # Ten of the moment, and as many of each earlier one as tell the ends of an interval.
    assert [done for done, _ in told][-1] > 10
    assert {total for _, total in told} == {10 + 3 * FEW}
    told.clear()
    calibration(path, tmp_path / "inputs", moments=4, futures=2, show=lambda *of: told.append(of))
    assert told[-1] == (8, 8)


def test_a_job_may_ask_for_a_kind_of_gpus(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10, waiting=0)
    nodes = "NodeName=g1 CPUTot=64 Gres=gpu:a100:8\nNodeName=g2 CPUTot=64 Gres=gpu:H100:8\n"
    (path / "nodes.txt").write_text(nodes)
    at = {kind: asked(path, asked=Asked(8, 600.0, gpu_kind=kind)) for kind in ("A100", "h100")}
    median_s = {kind: x.jobs[0].interval_s[1] for kind, x in at.items()}
    assert median_s["h100"] <= 10 < 50 < median_s["A100"]
    with pytest.raises(ConfigError, match=r"^--gpu-kind 'v100': "):
        asked(path, asked=Asked(8, 600.0, gpu_kind="v100"))
    (path / "nodes.txt").write_text("NodeName=g1 CPUTot=64 Gres=gpu:8\n")
    with pytest.raises(ConfigError, match=r"^--gpu-kind 'a100': no machine has a kind$"):
        asked(path, asked=Asked(8, 600.0, gpu_kind="a100"))


def law(runs_s: list[float], running_s: tuple[float, ...] = (), limit_s: float = 600.0) -> RunTimes:
    ended = [Observed("ann", "a1", limit_s, x, has_ended=True) for x in runs_s]
    return RunTimes(
        [*ended, *(Observed("ann", "a2", limit_s, x, has_ended=False) for x in running_s)]
    )


def test_jobs_that_still_run_count_as_longer() -> None:
    # Of 12 jobs 10 ended after 100 s, two run for 150 s, and the next may be longer than all.
    times = law([100.0] * 10, (150.0, 150.0))
    drawn = sorted(times.draw("ann", "a9", 600.0, (k + 0.5) / 130) for k in range(130))
    assert drawn[:100] == [100.0] * 100
    assert np.allclose(drawn[100:], 100 + 500 * (np.arange(30) + 0.5) / 30)


@pytest.mark.parametrize(("ran_s", "left"), [(0.0, 10), (75.0, 3)])
def test_the_next_run_is_longer_than_all_that_were_seen_once_in_so_many(
    ran_s: float, left: int
) -> None:
    times = law([10.0 * n for n in range(1, 11)])
    count = 100 * (left + 1)
    drawn = [times.draw("ann", "a", 600.0, (k + 0.5) / count, ran_s) for k in range(count)]
    # Each gap between those that ran longer has the next one as often (Hill, 1968).
    assert sum(x > 100.0 for x in drawn) == 100
    assert min(drawn) > ran_s
    assert max(drawn) == pytest.approx(600.0, abs=5)


def test_without_a_limit_the_next_run_takes_at_most_twice_as_long() -> None:
    times = RunTimes(Observed("ann", "a", None, 10.0 * n, has_ended=True) for n in range(1, 11))
    drawn = [times.draw("ann", "a", None, (k + 0.5) / 1100) for k in range(1100)]
    assert sum(x > 100.0 for x in drawn) == 100
    assert max(drawn) == pytest.approx(200.0, abs=2)


def test_the_most_specific_group_is_named() -> None:
    times = law([100.0] * 10)
    assert times.group("ann", "a7", 600.0) == ("user, name and limit", 10)
    assert times.group("ann", "b", 600.0) == ("user and limit", 10)
    assert times.group("ann", "b", 1200.0) == ("user", 10)
    assert times.group("ben", "b", 600.0) == ("limit", 10)
    assert times.draw("ben", "b", 1200.0, 0.5) == pytest.approx(200.0)  # as much of its limit
    assert law([], (50.0,)).group("ann", "a7", 600.0) == ("nothing", 0)
    assert law([]).draw("ann", "a7", 600.0, 0.5) == 300.0


def test_a_few_runs_leave_room_for_those_of_wider_groups() -> None:
    own = [Observed("ann", "a1", 600.0, 100.0, has_ended=True)] * 3
    others = [Observed("ben", f"b{n}", 600.0, 300.0, has_ended=True) for n in range(9)]
    times = RunTimes([*own, *others])

    def drawn(ran_s: float = 0.0) -> list[float]:
        return [times.draw("ann", "a2", 600.0, 0.5, ran_s, wider=n / 64) for n in range(64)]

    # Four groups have the three own runs, so half of the draws go on from each to the next; of
    # the 12 runs of the two widest groups the median is 300 s.
    assert drawn().count(100.0) == 60
    assert set(drawn()) == {100.0, 300.0}
    # Of what is longer than 100 s there are only others.
    assert set(drawn(ran_s=150.0)) == {300.0}


def test_jobs_of_a_sweep_are_alike_and_others_are_not() -> None:
    draws = np.random.default_rng(3)
    sweeps = np.repeat(draws.lognormal(4.0, 0.7, 30), 10) * draws.uniform(0.95, 1.05, 300)
    assert law(sweeps.tolist()).likeness > 0.8
    assert law(draws.permutation(sweeps).tolist()).likeness < 0.3
    assert law([100.0] * 20).likeness == 0.0


@pytest.mark.parametrize("ran_s", [0.0, 40.0])
def test_intervals_hold_as_often_as_they_say_where_the_truth_is_known(ran_s: float) -> None:
    draws, inside, trials = np.random.default_rng(5), 0, 300
    uniforms = ((np.arange(50) + 0.5) / 50).tolist()
    for _ in range(trials):
        runs = draws.lognormal(4.0, 0.7, 60).tolist()
        times = law(runs, limit_s=3600.0)
        drawn = [times.draw("ann", "a", 3600.0, uniform, ran_s) for uniform in uniforms]
        low, high = np.quantile(drawn, (0.1, 0.9), method="inverted_cdf")
        truth = next(x for x in draws.lognormal(4.0, 0.7, 100) if x > ran_s)
        inside += bool(low <= truth <= high)
    # Three standard errors of 300 trials are 7 %.
    assert 0.73 <= inside / trials <= 0.87


@pytest.mark.parametrize("futures", [9, 20, 50, 100])
def test_an_interval_holds_four_of_five_of_what_is_drawn_as_its_futures_are(futures: int) -> None:
    draws, inside, trials = np.random.default_rng(futures), 0, 4000
    for _ in range(trials):
        *starts, truth = draws.uniform(size=futures + 1).tolist()
        one = StartForecast("1", 8, 0.0, tuple(sorted(starts)), "", None, None)
        low, median, high = one.interval_s
        inside += low <= truth <= high
        assert low <= median <= high
    # Whole places of n + 1: never less than 80 %, but for chance.
    assert 0.785 <= inside / trials <= 0.83


@pytest.mark.slow
def test_starts_hold_as_often_as_they_say_where_the_truth_is_known(tmp_path: Path) -> None:
    draws, inside, trials = np.random.default_rng(11), 0, 60
    for trial in range(trials):
        runs = np.clip(draws.lognormal(4.0, 0.5, 31), 5, 550).round()
        path = one_machine(tmp_path / str(trial), runs[:-1].tolist())
        (one,) = forecast(path, path / "inputs", job="32", futures=20, seed=trial).jobs
        # The truth: a fresh run time, given that it is longer than 40 s.
        truth = 0.0
        while truth <= 40:
            truth = float(np.clip(draws.lognormal(4.0, 0.5), 5, 550))
        low, _, high = one.interval_s
        inside += low - 5 <= truth - 40 <= high + 5
    assert 0.68 <= inside / trials <= 0.95


def closed_between(path: Path, gap_s: float) -> Path:
    """All jobs wait from the start. Each runs for 100 s, and then nothing for a while."""
    one_machine(path, [])
    text = HEADER
    for number in range(1, 41):
        start_s = (number - 1) * (100 + gap_s)
        text += row(number, 0, start_s, start_s + 100, "ann")
    (path / "sacct.txt").write_text(text)
    return path


def test_what_the_model_does_not_know_is_learned_from_earlier_forecasts(tmp_path: Path) -> None:
    path = closed_between(tmp_path, 200.0)
    plain, moved = (asked(path, at=clock(8900), earlier=x) for x in (0, 10))
    held = [
        [x.interval_s[0] <= (x.recorded_s or 0) <= x.interval_s[2] for x in found.jobs]
        for found in (plain, moved)
    ]
    assert (len(held[0]), sum(held[0])) == (10, 0)
    assert sum(held[1]) >= 8
    assert [x.starts_s for x in moved.jobs] == [x.starts_s for x in plain.jobs]


def test_moments_before_the_first_job_on_gpus_are_left_out(tmp_path: Path) -> None:
    one_machine(tmp_path, [])
    start = [row(nth, 10_000 + nth * 110, 10_000 + nth * 110, 10_100 + nth * 110, "ann")
             for nth in range(2, 8)]  # fmt: skip
    waits = row(8, 10_900, 10_900, None, "ann") + row(9, 10_950, None, None, "ann")
    first = row(1, 0, None, 10, "ann").replace("PENDING", "CANCELLED")
    (tmp_path / "sacct.txt").write_text(HEADER + first + "".join(start) + waits)
    plain = asked(tmp_path, job="9")
    assert asked(tmp_path, job="9", earlier=10).jobs == plain.jobs
    with pytest.raises(ConfigError, match="no job waited at 20 moments"):
        calibration(tmp_path, tmp_path / "inputs", moments=20, futures=2)


def test_the_past_is_checked_until_the_last_submission(tmp_path: Path) -> None:
    path = closed_between(tmp_path / "log", 0.0)
    text = (path / "sacct.txt").read_text()
    (path / "sacct.txt").write_text(text + row(41, 600, 4000, 4100, "ann"))
    found = calibration(path, tmp_path / "inputs", moments=4, futures=10)
    # Moments at 250, 350, 450 and 550 s, at which 37, 36, 35 and 34 of 40 wait. A start counts if
    # it comes by 600 s.
    assert (found["moments"], found["forecasts"]) == (4, 37 + 36 + 35 + 34)
    assert found["inside_80"] > 0.9
    assert found["inside_80_moved"] == found["inside_80"]


def test_columns_that_do_not_count_are_not_kept(tmp_path: Path) -> None:
    path = one_machine(tmp_path, [100.0] * 10)
    before = asked(path)
    lines = (path / "sacct.txt").read_text().splitlines()
    more = [f"{line}|{'AdminComment' if not nth else 'text'}" for nth, line in enumerate(lines)]
    (path / "sacct.txt").write_text("\n".join(more) + "\n")
    assert "AdminComment" not in read_log(path, tmp_path).names
    assert asked(path) == before


@needs_slurm
@pytest.mark.parametrize("session", ["shares", "topology"])
def test_all_columns_that_a_log_of_sacct_is_read_from_are_named(
    session: str, tmp_path: Path
) -> None:
    log = log_of(SLURM / session, tmp_path)
    rows = [line.split("|") for line in log.read_text().splitlines()]
    kept = [nth for nth, name in enumerate(rows[0]) if name in READ]
    (tmp_path / "kept.txt").write_text(
        "\n".join("|".join(cells[nth] for nth in kept) for cells in rows) + "\n"
    )
    whole, some = (read_trace(x, format_="sacct") for x in (log, tmp_path / "kept.txt"))
    assert some.jobs == whole.jobs
    assert len(kept) < len(rows[0]) / 4


@needs_slurm
@pytest.mark.slow
def test_recorded_starts_lie_in_the_intervals(tmp_path: Path) -> None:
    found = calibration(SLURM / "fifo-backfill", tmp_path, moments=4, futures=20, horizon_s=200)
    assert found["inside_80_and_a_cycle"] >= 0.6


def test_a_forecast_names_what_it_does_not_model(tmp_path: Path) -> None:
    folder = one_machine(tmp_path / "log", [100.0] * 10)
    texts = {"partitions": "", "qos": "Name|Priority\n", "assoc": "Account|User|Share\n"}
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    assert asked(folder).not_modelled == ()
    assert "Not modelled" not in " ".join(_basis(asked(folder)))
    config = f"ClusterName = mine\nSchedulerParameters = {SCHEDULER},bf_one_resv_per_job\n"
    (folder / "config.txt").write_text(config)
    (folder / "qos.txt").unlink()
    text = (folder / "sacct.txt").read_text()
    parts = [row(1, 0, 0, 90, "ann").replace("1|", f"90+{n}|", 1) for n in range(2)]
    (folder / "sacct.txt").write_text(text + "".join(parts) + parts[0].replace("90+0", "90+0.0"))
    found = asked(folder)
    assert found.not_modelled == (
        "SchedulerParameters=bf_one_resv_per_job",
        f"QOS, as {folder} has no qos.txt",
        "2 parts of heterogeneous jobs, whose GPUs count as free",
    )
    assert _basis(found)[1] == f"Not modelled: {'; '.join(found.not_modelled)}."
    (folder / "assoc.txt").unlink()
    assert " and 1 more." in _basis(asked(folder))[1]


def test_an_error_about_a_job_of_flags_names_the_flags(tmp_path: Path) -> None:
    folder = one_machine(tmp_path / "log", [100.0] * 10)
    with pytest.raises(TraceError, match="has 8; correct --gpus or --partition"):
        command(folder, gpus=64, limit="10min")
