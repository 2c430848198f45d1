"""Are decisions compared correctly, and do ours agree with those of the original simulator?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from artist.errors import TraceError
from validation.original.files import RecordedRun, RecordedTrace, read_run, read_trace, trace_of
from validation.original.hash_order import HashOrder
from validation.original.replay import Agreement, Replay
from validation.original.runs import cluster
from validation.original.schemes import GRANULARITY, scheduler

TRACE = """job_id,arrival_s,gpus,model,iterations,compute_s,user
1,0.0,4,BERT,4000000,0.001,u
2,0.0,4,BERT,4000000,0.001,u
3,0.0,8,VGG,1000000,0.001,u
4,5.0,8,VGG,1000000,0.001,u
"""
COLUMNS = "event,time_s,job_id,model,gpus,priority,waited_s,speed,gpus_list"


def gpus(rack: int, machine: int, *sockets: int) -> str:
    return " ".join(f"{rack}.{machine}.{s}.{gpu}" for s in sockets for gpu in range(4))


def rows() -> list[str]:
    """Three jobs at once, the fourth on its arrival; each in a machine of its own."""
    return [
        f"ALLOC,0.0,1,BERT,4,-0.0,0.0,0.5,{gpus(1, 7, 1)}",
        f"ALLOC,0.0,2,BERT,4,-0.0,0.0,0.5,{gpus(0, 7, 0)}",
        f"ALLOC,0.0,3,VGG,8,-0.0,0.0,0.5,{gpus(0, 4, 0, 1)}",
        f"ALLOC,5.0,4,VGG,8,-0.0,0.0,0.5,{gpus(1, 3, 0, 1)}",
    ]


def replay(folder: Path, lines: list[str], scheme: str = "Dally-auto") -> Agreement:
    (folder / "trace.csv").write_text(TRACE)
    path = folder / f"fix_{scheme}_2r_mine.csv"
    path.write_text("\n".join([COLUMNS, *lines]) + "\n")
    return compared(read_run(path), [read_trace(folder / "trace.csv", "mine")])


def compared(run: RecordedRun, traces: list[RecordedTrace], scheme: str | None = None) -> Agreement:
    """The decisions of a recorded run beside ours, by the rule of its scheme or of another one."""
    tree = cluster(run.racks)
    rule = scheduler(scheme or run.scheme).rule
    return Replay(run, trace_of(run, traces), tree, rule, HashOrder(tree), GRANULARITY).run()


def test_same_decisions_agree(tmp_path: Path) -> None:
    agreement = replay(tmp_path, rows())
    assert (agreement.decisions, agreement.agree, agreement.ties) == (4, 4, 0)
    assert agreement.disagreements == []


def test_another_of_several_equal_machines_agrees(tmp_path: Path) -> None:
    for rack_and_machine in ("0.4.", "0.2.", "1.0."):
        lines = rows()
        lines[2] = lines[2].replace("0.4.", rack_and_machine)
        assert replay(tmp_path, lines).agree == 4


def test_another_job_of_the_same_priority_is_a_tie(tmp_path: Path) -> None:
    lines = rows()
    lines[0], lines[1] = lines[1], lines[0]
    agreement = replay(tmp_path, lines)
    assert agreement.ties == 1
    assert agreement.agree == 3


def test_another_shape_is_a_disagreement(tmp_path: Path) -> None:
    lines = rows()
    lines[0] = lines[0].replace(gpus(1, 7, 1), "1.7.0.0 1.7.0.1 1.7.1.0 1.7.1.1")
    agreement = replay(tmp_path, lines)
    assert agreement.agree == 3
    assert "job 1 on 2+2" in agreement.disagreements[0]


def test_a_grant_that_the_original_did_not_make_is_counted(tmp_path: Path) -> None:
    agreement = replay(tmp_path, rows()[:2])
    assert (agreement.idle_rounds, agreement.idle_agree) == (1, 0)


@pytest.mark.parametrize(
    ("name", "message"),
    [("asis_Tiresias_2r_mine.csv", "leak-free"), ("mine.csv", "name like")],
)
def test_file_names_say_what_ran(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / name).write_text(COLUMNS + "\n")
    with pytest.raises(TraceError, match=message):
        read_run(tmp_path / name)


def test_run_of_another_trace_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "fix_Tiresias_2r_mine.csv").write_text("\n".join([COLUMNS, *rows()]) + "\n")
    (tmp_path / "trace.csv").write_text(TRACE.replace("1,0.0,4", "1,7.0,4"))
    run = read_run(tmp_path / "fix_Tiresias_2r_mine.csv")
    with pytest.raises(TraceError, match="none of the traces"):
        trace_of(run, [read_trace(tmp_path / "trace.csv", "mine")])


def test_recorded_runs_agree_decision_by_decision(recorded: Path) -> None:
    traces = [read_trace(path, path.stem) for path in sorted(recorded.glob("trace_*.csv"))]
    paths = sorted((recorded / "allocations").glob("fix_*"))
    assert paths
    for path in paths:
        agreement = compared(read_run(path), traces)
        # Not only 99 % in job, level and shape: every GPU, every priority, every pause.
        assert (
            agreement.agree == agreement.same_gpus == agreement.priorities == agreement.decisions
        ), path
        assert agreement.idle_agree == agreement.idle_rounds
        assert agreement.ties == 0


def test_wrong_rules_disagree(recorded: Path) -> None:
    """The comparison can tell Dally's variants apart."""
    path = recorded / "allocations" / "fix_Dally-auto_2r_batch.csv.gz"
    traces = [read_trace(recorded / "trace_batch_effective.csv", "batch")]
    run = read_run(path)
    run = replace(run, rows=run.rows[:4000])  # a fifth of the run tells already
    agree = {}
    for scheme in ("Dally-auto", "Dally-manual", "Tiresias"):
        agreement = compared(run, traces, scheme)
        agree[scheme] = (agreement.agree + agreement.ties) / agreement.decisions
    assert agree["Dally-auto"] == 1
    assert agree["Dally-manual"] < 1
    assert agree["Tiresias"] < 0.9
