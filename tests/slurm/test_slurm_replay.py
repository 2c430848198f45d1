"""Is a recorded session of Slurm simulated, and are its starts compared one by one?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from recordings import SLURM, needs_slurm
from typer.testing import CliRunner

from artist.cli.main import application
from artist.errors import ConfigError, TraceError
from artist.experiments.recorded.replay import Replay, replay
from artist.slurm.cluster_import import cluster_document
from artist.slurm.texts import log_rows

SACCT = """\
JobID|User|Account|Submit|Start|End|State|ReqTRES|AllocTRES|NodeList|Timelimit|ReqNodes|Flags|Reason
1|ann|vision|2026-01-02T03:00:00|2026-01-02T03:00:00|2026-01-02T03:00:50|COMPLETED|gres/gpu=16|gres/gpu=16|g[1-2]|00:01:00|2|SchedMain|None
1.batch|||2026-01-02T03:00:00|2026-01-02T03:00:00|2026-01-02T03:00:50|COMPLETED||cpu=1|g1||||
2|ben|vision|2026-01-02T03:00:05|2026-01-02T03:01:20|2026-01-02T03:02:00|COMPLETED|gres/gpu=8|gres/gpu=8|g1|00:01:00|1|SchedBackfill|Priority
"""
NODES = (
    "NodeName=g1 CPUTot=64 Gres=gpu:8 State=IDLE\n\nNodeName=g2 CPUTot=64 Gres=gpu:8 State=IDLE\n"
)
TWO_KINDS = NODES.replace("gpu:8", "gpu:a100:8", 1).replace("gpu:8", "gpu:h100:8")

SCHEDULER = "bf_busy_nodes,bf_interval=5,sched_interval=5"


def folder(path: Path) -> Path:
    (path / "nodes.txt").write_text(NODES)
    (path / "config.txt").write_text(f"ClusterName = mine\nSchedulerParameters = {SCHEDULER}\n")
    (path / "sacct.txt").write_text(SACCT)
    return path


def test_starts_are_compared_one_by_one(tmp_path: Path) -> None:
    found = replay(folder(tmp_path), tmp_path / "inputs")
    first, second = found.starts
    assert (first.recorded_s, first.simulated_s, first.difference_s) == (0, 0.5, 0.5)
    assert first.recorded_machines == first.simulated_machines == {"g1", "g2"}
    assert second.recorded_s == 80
    assert second.simulated_s is not None
    assert 50 <= second.simulated_s <= 60
    assert second.why == (
        "started by backfill, after waiting for Priority; earlier in the simulation"
    )
    facts = found.facts()
    assert (facts["within_10_s"], facts["starts_recorded"]) == (0.5, 2)
    assert found.largest(1) == [second]
    assert found.not_modelled[:2] == (
        "SchedulerParameters=bf_busy_nodes",
        f"partitions, as {tmp_path} has no partitions.txt",
    )
    heads = {"partitions": "", "qos": "Name|Priority\n", "assoc": "Account|User|Share\n"}
    for name, head in heads.items():
        (tmp_path / f"{name}.txt").write_text(head)
    told = replay(tmp_path, tmp_path / "inputs").not_modelled
    assert told == ("SchedulerParameters=bf_busy_nodes",)


@pytest.mark.parametrize(
    ("started", "at_s"), [("Unknown", 0), ("2026-01-02T03:01:00", 30), ("2026-01-02T03:00:00", 30)]
)
def test_times_count_from_the_first_arrival(tmp_path: Path, started: str, at_s: float) -> None:
    """Slurm calls the second task of an array eligible when the first ends, or is cancelled."""
    head = "JobID|State|Submit|Eligible|Start|End|AllocTRES|NodeList|SubmitLine"
    day, array = "2026-01-02T03:0", "sbatch --array=0-1%1 a.sh"
    rows = [
        f"7_0|CANCELLED|{day}0:00|{day}0:00|{started}|{day}1:00|gres/gpu=8|g1|{array}",
        f"7_1|COMPLETED|{day}0:00|{day}1:00|{day}1:00|{day}2:00|gres/gpu=8|g1|{array}",
        f"8|COMPLETED|{day}0:30|{day}0:30|{day}0:30|{day}2:00|gres/gpu=8|g2|sbatch a.sh",
    ]
    (folder(tmp_path) / "sacct.txt").write_text("\n".join([head, *rows]) + "\n")
    found = {x.job_id: x.recorded_s for x in replay(tmp_path, tmp_path / "inputs").starts}
    assert (found["8"], found["7_1"]) == (at_s, at_s + 30)


def test_dependencies_that_are_not_modelled_are_named(tmp_path: Path) -> None:
    log = folder(tmp_path) / "sacct.txt"
    head, *rows = SACCT.splitlines()
    lines = ["sbatch -d singleton a.sh", "", "sbatch --dependency=aftercorr:1 b.sh"]
    told = [f"{row}|{line}" for row, line in zip(rows, lines, strict=True)]
    log.write_text("\n".join([f"{head}|SubmitLine", *told]) + "\n")
    found = replay(tmp_path, tmp_path / "inputs")
    assert found.not_modelled[-1] == "dependencies of 1 job, such as aftercorr:1"
    assert found.facts()["starts_simulated"] == 2


def test_jobs_in_partitions_of_slices_alone_are_left_out(tmp_path: Path) -> None:
    """sacct counts slices as GPUs where AccountingStorageTRES names gres/gpu alone."""
    head, *rows = SACCT.splitlines()
    folder(tmp_path)
    slices = "NodeName=m1 CPUTot=9 Gres=gpu:a100_1g.5gb:7 State=IDLE"
    (tmp_path / "nodes.txt").write_text(f"{NODES}\n{slices}\n")
    partitions = "PartitionName=gpu Nodes=g[1-2] Default=YES\nPartitionName=mig Nodes=m1\n"
    (tmp_path / "partitions.txt").write_text(partitions)

    def replayed(*names: str) -> Replay:
        lines = [f"{row}|{name}" for row, name in zip([head, rows[0], rows[2]], names, strict=True)]
        (tmp_path / "sacct.txt").write_text("\n".join(lines) + "\n")
        return replay(tmp_path, tmp_path / "inputs")

    for names in (("mig", "gpu"), ("gpu", "mig")):
        found = replayed("Partition", *names)
        assert [x.job_id for x in found.starts] == [str(1 + names.index("gpu"))]
        assert found.starts[0].simulated_s is not None
        assert found.dropped == {"in a partition without GPUs": 1}
    assert replayed("Partition", "gpu", "mig,gpu").dropped == {}
    with pytest.raises(TraceError, match=r"sacct\.txt: no job ran in a partition with GPUs"):
        replayed("Partition", "mig", "mig")


def test_jobs_in_reservations_are_named(tmp_path: Path) -> None:
    head, *rows = SACCT.splitlines()
    lines = [f"{head}|Reservation", f"{rows[0]}|night", f"{rows[2]}|"]
    (folder(tmp_path) / "sacct.txt").write_text("\n".join(lines) + "\n")
    told = replay(tmp_path, tmp_path / "inputs").not_modelled
    assert told[-1] == "jobs in reservations: 1, which run outside them"


def test_slices_of_gpus_and_partitions_without_gpus_are_left_out(tmp_path: Path) -> None:
    """Slices are other things than GPUs to Slurm."""
    slices = "gres/gpu=1,gres/gpu:a100_1g.5gb=1"
    row = SACCT.splitlines()[-1].replace("gres/gpu=8", slices).replace("2|", "3|", 1)
    (folder(tmp_path) / "sacct.txt").write_text(SACCT + row + "\n")
    (tmp_path / "nodes.txt").write_text(f"{NODES}\nNodeName=c1 CPUTot=9 Gres=(null) State=IDLE\n")
    partitions = "PartitionName=gpu Nodes=g[1-2] Default=YES\nPartitionName=cpu Nodes=c1\n"
    (tmp_path / "partitions.txt").write_text(partitions)
    found = replay(tmp_path, tmp_path / "inputs")
    assert found.facts()["starts_simulated"] == 2
    assert found.dropped == {"step of a job": 1, "part of a GPU": 1}


def test_a_bar_in_a_command_is_reported_as_such(tmp_path: Path) -> None:
    log = folder(tmp_path) / "sacct.txt"
    log.write_text(SACCT.replace("SchedMain", "Sched|Main"))
    with pytest.raises(TraceError, match=r"sacct\.txt:2: 15 fields, .*the column that has a \|"):
        replay(tmp_path, tmp_path / "inputs")
    with pytest.raises(ConfigError, match=r"sacct\.txt:2: 15 cells, .*the column that has a \|"):
        list(log_rows(log, ("JobID",)))
    log.write_text(SACCT.rstrip().rpartition("|")[0])  # not yet whole
    with pytest.raises(TraceError, match=r"; correct this row$"):
        replay(tmp_path, tmp_path / "inputs")
    with pytest.raises(ConfigError, match=r"; print it again$"):
        list(log_rows(log, ("JobID",)))


@pytest.mark.parametrize("zone", ["", "+0000"])
def test_reservations_and_logs_of_different_zones_are_reported(tmp_path: Path, zone: str) -> None:
    kept = (
        f"ReservationName=x StartTime=2026-01-02T03:01:00{zone} EndTime=2026-01-02T04:01:00{zone}"
    )
    (folder(tmp_path) / "reservations.txt").write_text(f"{kept} Nodes=g1\n")
    log = tmp_path / "sacct.txt"
    log.write_text(re.sub(r"(T\d\d:\d\d:\d\d)", r"\1+0000", SACCT))
    told = [x for x in replay(tmp_path, tmp_path / "inputs").not_modelled if "SLURM_TIME" in x]
    assert bool(told) == (not zone)


def test_a_log_may_be_long(tmp_path: Path) -> None:
    log = folder(tmp_path) / "sacct.txt"
    step = SACCT.splitlines()[2]
    log.write_text(SACCT + f"{step}\n" * (5 * 2**20 // len(step)))
    assert len(replay(tmp_path, tmp_path / "inputs").starts) == 2


def test_a_byte_that_is_no_text_is_named(tmp_path: Path) -> None:
    log = folder(tmp_path) / "sacct.txt"
    log.write_bytes(SACCT.encode() + b"3|\xff\n")
    with pytest.raises(ConfigError, match=r"sacct\.txt:5: not UTF-8 text"):
        list(log_rows(log, ("JobID",)))


def test_the_command_prints_and_writes_a_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["replay", str(folder(tmp_path)), "--out", str(out), "--format", "json"]
    answer = CliRunner().invoke(application(["replay", "doctor"]), arguments)
    assert answer.exit_code == 0, answer.output
    assert json.loads(answer.stdout)["within_10_s"] == 0.5
    assert json.loads((out / "manifest.json").read_text())["scenario"]["policy"] == "slurm"
    assert (tmp_path / "run.inputs" / "cluster.yaml").is_file()


def test_a_replay_that_fails_leaves_nothing_and_replaces_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = folder(tmp_path) / "sacct.txt", tmp_path / "run"
    text, inputs = log.read_text(), tmp_path / "run.inputs"

    def code(*more: str) -> int:
        arguments = ["replay", str(tmp_path), "--out", str(out), *more]
        return CliRunner().invoke(application(["replay"]), arguments).exit_code

    log.write_text(text.replace("gres/gpu=8", "gres/gpu=x"))
    assert code() != 0 and not out.exists() and not inputs.exists()
    log.write_text(text)
    inputs.mkdir()
    assert code() != 0 and not [*inputs.iterdir()]
    assert code("--overwrite") == 0 and (inputs / "cluster.yaml").is_file()

    files = {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file() and x != log}
    log.write_text(text.replace("gres/gpu=8", "gres/gpu=4"))
    assert code("--overwrite", "--set", "policy.no_such=1") != 0
    monkeypatch.setattr("artist.results.run_directory.write_run", _disk_is_full)
    assert code("--overwrite") != 0
    assert {x: x.read_bytes() for x in tmp_path.rglob("*") if x.is_file() and x != log} == files


def _disk_is_full(*_: object, **__: object) -> None:
    raise ConfigError("no space left")


def test_what_is_missing_is_named_with_the_command_that_prints_it(tmp_path: Path) -> None:
    (folder(tmp_path) / "sacct.txt").unlink()
    with pytest.raises(
        ConfigError, match=r"no sacct\.txt; write it with: SLURM_BITSTR_LEN=0 sacct -a -P -D"
    ):
        replay(tmp_path, tmp_path / "inputs")


def test_the_envelope_holds_what_any_phase_explains(tmp_path: Path) -> None:
    found = replay(folder(tmp_path), tmp_path / "inputs", phases=3)
    first, second = found.starts
    assert len(first.phases_s) == 3
    assert found.facts()["in_the_envelope"] == 0.5
    assert second.recorded_s is not None
    assert max(second.phases_s) < second.recorded_s - found.cycle_s


@needs_slurm
@pytest.mark.parametrize(("session", "within"), [("fifo-backfill", 0.9), ("shares", 0.9)])
def test_recorded_sessions(session: str, within: float, tmp_path: Path) -> None:
    facts = replay(SLURM / session, tmp_path).facts()
    assert facts["starts_recorded"] == facts["starts_simulated"] == 220
    assert facts["within_10_s"] >= within


@pytest.mark.parametrize(("elapsed", "simulated"), [("Elapsed", 3), ("", 2)])
def test_a_job_that_still_runs_holds_its_gpus_until_the_log_ends(
    tmp_path: Path, elapsed: str, simulated: int
) -> None:
    """sacct says for how long it has run, unless that column is left out."""
    folder(tmp_path)
    head, *rows = SACCT.splitlines()
    day = "2026-01-02T03:02"
    rows.append(
        f"3|ann|vision|{day}:30|{day}:30|Unknown|RUNNING|gres/gpu=8|gres/gpu=8|g1|00:05:00|1||None"
    )
    lasts = ["00:00:50", "00:00:50", "00:00:40", "00:01:30"]
    lines = [f"{row}|{last}" for row, last in zip(rows, lasts, strict=True)]
    (tmp_path / "sacct.txt").write_text("\n".join([f"{head}|{elapsed or 'Other'}", *lines, ""]))
    found = replay(tmp_path, tmp_path / "inputs")
    assert found.facts()["starts_simulated"] == simulated
    assert found.result.tables["jobs"]["run_s"][-1] == (90 if elapsed else 40)
    told = "how long 1 job still ran, which end with the log"
    assert (told in found.not_modelled) == bool(elapsed)


@pytest.mark.parametrize(
    ("req_tres", "line"),
    [
        ("gres/gpu:h100=4,gres/gpu=4", "sbatch a.sh"),
        ("gres/gpu=4", "sbatch -G H100:4 a.sh"),
        ("gres/gpu=4", "sbatch --gres=fast:1,gpu:h100:4 a.sh"),
        ("gres/gpu=4", "sbatch --comment=for me -G h100:4 a.sh"),
    ],
)
def test_a_job_gets_gpus_of_the_kind_that_it_asked_for(
    tmp_path: Path, req_tres: str, line: str
) -> None:
    folder(tmp_path)
    (tmp_path / "nodes.txt").write_text(TWO_KINDS)
    head, *_ = SACCT.splitlines()
    at = "2026-01-02T03:00"
    row = f"1|ann|v|{at}:00|{at}:00|{at}:50|COMPLETED|{req_tres}|gres/gpu=4|g1|00:01:00|1||None"
    (tmp_path / "sacct.txt").write_text(f"{head}|SubmitLine|Comment\n{row}|{line}|for me\n")
    (start,) = replay(tmp_path, tmp_path / "inputs").starts
    assert start.simulated_machines == {"g2"}


@pytest.mark.parametrize(
    ("partition", "machine"), [("all", "g2"), ("old", "g1"), ("old,new", "g2"), ("", "g2")]
)
def test_a_kind_that_the_partitions_of_a_job_have_no_more_is_ignored(
    tmp_path: Path, partition: str, machine: str
) -> None:
    folder(tmp_path)
    (tmp_path / "nodes.txt").write_text(TWO_KINDS)
    (tmp_path / "partitions.txt").write_text(
        "PartitionName=all Nodes=ALL Default=YES\nPartitionName=old Nodes=g1\n"
        "PartitionName=new Nodes=g2\n"
    )
    head, *_ = SACCT.splitlines()
    at = "2026-01-02T03:00"
    row = f"1|ann|v|{at}:00|{at}:00|{at}:50|COMPLETED|gres/gpu:h100=4|gres/gpu=4|g1|00:01:00|1||x"
    (tmp_path / "sacct.txt").write_text(f"{head}|Partition\n{row}|{partition}\n")
    (start,) = replay(tmp_path, tmp_path / "inputs").starts
    assert start.simulated_machines == {machine}


def test_errors_name_columns_of_sacct(tmp_path: Path) -> None:
    head, *rows = SACCT.splitlines()
    lines = [f"{head}|QOS", *(f"{row}|gold" for row in rows)]
    (folder(tmp_path) / "sacct.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "qos.txt").write_text("Name|Priority\nnormal|1\n")
    refused = CliRunner().invoke(application(), ["replay", str(tmp_path)])
    assert "QOS is 'gold', which the cluster lacks" in str(refused.exception)
    assert "hint" not in str(refused.exception)


def test_jobs_that_asked_for_each_of_several_kinds_are_named(tmp_path: Path) -> None:
    head, *rows = SACCT.splitlines()
    lines = ["sbatch --gres=gpu:a100:4,gpu:h100:4 a.sh", "", "sbatch --gres=gpu:h100:8 b.sh"]
    told = [f"{row}|{line}" for row, line in zip(rows, lines, strict=True)]
    (folder(tmp_path) / "sacct.txt").write_text("\n".join([f"{head}|SubmitLine", *told]) + "\n")
    (tmp_path / "nodes.txt").write_text(TWO_KINDS)
    told = replay(tmp_path, tmp_path / "inputs").not_modelled
    assert told[-1] == "1 job that asked for each of several kinds of GPUs, such as 1 (a100, h100)"


def test_the_most_machines_of_a_partition_are_read(tmp_path: Path) -> None:
    partitions = "PartitionName=p Nodes=g[1-2] Default=YES MaxNodes=1\nPartitionName=q Nodes=ALL\n"
    (folder(tmp_path) / "partitions.txt").write_text(partitions)
    found = cluster_document(tmp_path, keep_names=True)["slurm"]
    assert [x.get("max_nodes") for x in found["partitions"]] == [1, None]
    assert not found["not_understood"]


@pytest.mark.parametrize("asked", ["gres/gpu=8", "gres/gpu:a100=6,gres/gpu:h100=2"])
def test_heterogeneous_jobs_are_reported_with_what_they_held(tmp_path: Path, asked: str) -> None:
    """Jobs 1 and 2 hold 16 x 50 and 8 x 40 GPU-seconds, the parts of job 3 hold 8 x 40 each."""
    row = SACCT.splitlines()[-1].replace("gres/gpu=8", asked, 1)
    parts = "\n".join(row.replace("2|ben", f"3+{part}|ben", 1) for part in (0, 1))
    (folder(tmp_path) / "sacct.txt").write_text(f"{SACCT}{parts}\n")
    found = replay(tmp_path, tmp_path / "inputs")
    assert found.not_modelled[-1] == (
        "1 heterogeneous job such as 3, with 36 % of the GPU-hours, whose GPUs count as free"
    )
    assert found.dropped == {"step of a job": 1}


def test_heterogeneous_jobs_without_gpus_are_counted_as_dropped(tmp_path: Path) -> None:
    row = SACCT.splitlines()[-1].replace("gres/gpu=8", "cpu=8")
    (folder(tmp_path) / "sacct.txt").write_text(f"{SACCT}{row.replace('2|ben', '3+0|ben', 1)}\n")
    found = replay(tmp_path, tmp_path / "inputs")
    assert not any("heterogeneous job" in x for x in found.not_modelled)
    assert found.dropped == {"step of a job": 1, "part of a heterogeneous job": 1}
