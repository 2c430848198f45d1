"""Is the mapping that is proposed for a foreign table the one that a person would write?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_samples import put
from recordings import TRACES

from artist.errors import TraceError
from artist.trace.named import Given, open_trace
from artist.trace.native.mapping import TraceMapping, mapping_path
from artist.trace.proposal import Confidence, Proposal, accepted, propose
from artist.trace.read import write_mapping

SURE, LIKELY, GUESS = Confidence

OWN = """\
id,submitted,n_gpus,run_hours,network,floor
a,2025-03-01 08:00:00,8,2,ResNet-18 (batch size 64),vision
b,2025-03-01 08:10:00,4,1.1,VGG13,vision
c,2025-03-01 08:15:00,16,0.5,BERT,language
d,2025-03-01 08:15:00,16,0.5,YOLOv3,language
"""


def proposed(path: Path, **given: Any) -> Proposal:
    return propose(path, TraceMapping(**given))


def entries(proposal: Proposal) -> dict[tuple[str, str], tuple[str, Confidence]]:
    return {(one.part, one.name): (one.value, one.confidence) for one in proposal.entries}


def test_columns_units_and_models_are_proposed_with_confidence(tmp_path: Path) -> None:
    proposal = proposed(put(tmp_path, "t.csv", OWN))
    assert entries(proposal) == {
        ("columns", "job_id"): ("id", SURE),
        ("columns", "submit_time"): ("submitted", SURE),
        ("columns", "num_gpus"): ("n_gpus", SURE),
        ("columns", "duration"): ("run_hours", SURE),
        ("columns", "model"): ("network", SURE),
        ("units", "submit_time"): ("date", SURE),
        ("units", "duration"): ("h", SURE),
        ("models", "ResNet-18 (batch size 64)"): ("resnet18@batch=64", SURE),
        ("models", "VGG13"): ("vgg19", GUESS),
        ("models", "BERT"): ("bert-large", SURE),
    }
    assert (proposal.unread, proposal.unknown) == (("floor",), ("YOLOv3",))


def test_what_is_accepted_reads_the_trace_and_guessed_models_wait(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", OWN)
    mapping = TraceMapping(units={"duration": "d"})
    given, format_, comments, remarks = accepted(propose(path, mapping), mapping)
    write_mapping(path, format_, given, comments=comments, remarks=remarks)
    text = mapping_path(path).read_text()
    assert "  job_id: id  # sure: a usual name, and its cells fit\n" in text
    assert "  duration: d\n" in text
    assert text.endswith(
        "# Guessed, so not in force. Move what is right under models:.\n#   'VGG13': vgg19\n"
    )
    jobs = open_trace(str(path)).jobs
    assert [job.model for job in jobs] == ["resnet18@batch=64", "VGG13", "bert-large", "YOLOv3"]
    assert (jobs[0].ideal_s, jobs[1].arrival_s) == (2 * 86400, 600)
    assert [one.name for one in proposed(path, **given).entries] == ["VGG13"]


def test_what_the_user_states_is_not_proposed_otherwise(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", OWN)
    told = entries(proposed(path, columns={"gpus": "run_hours"}, models={"VGG*": "vgg16"}))
    assert ("columns", "num_gpus") not in told
    assert ("columns", "duration") not in told
    assert ("models", "VGG13") not in told


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("JobID,created_at,GPUs,hours\na,1700000000000,8,3\n",
         {("units", "submit_time"): ("ms", LIKELY)}),
        ("JobID,created_at,GPUs,runtime\na,5,8,3\n", {("units", "duration"): ("s", GUESS)}),
        ("JobID,created_at,GPUs,runtime\na,5,8,3000\n", {("units", "duration"): ("s", LIKELY)}),
        ("JobID,created_at,GPUs,runtime\na,5,half,3000\n",
         {("columns", "num_gpus"): ("GPUs", GUESS)}),
        ("JobID,created_at,GPUs,durashun\na,5,8,3000\n",
         {("columns", "duration"): ("durashun", LIKELY)}),
        ("id,submitted,n_gpus,busy\na,0,8,300\n", {("columns", "duration"): ("busy", GUESS)}),
        ("id,submitted,n_gpus,hours,Team\na,0,8,3,nlp\n", {("columns", "tenant"): ("Team", SURE)}),
        ("id,submitted,n_gpus,took,shift\na,0,8,1:00:00,night\nb,0,8,2-01:00:00,day\n",
         {("columns", "duration"): ("took", GUESS)}),
        ("job_id,submit_time,num_gpus,duration,gpu_min\na,0,8,60,4\n",
         {("columns", "gpus_min"): ("gpu_min", LIKELY)}),
        ("id,submitted,n_gpus,hours,axes,gpu_type\na,0,8,3,tensor=4,A100 H100\nb,0,8,3,,\n",
         {("columns", "parallelism"): ("axes", SURE),
          ("columns", "gpu_kinds"): ("gpu_type", LIKELY)}),
        ("job_id,submit_time,num_gpus,duration,gpu_kind,paralelism\na,0,8,60,v100,tensor=2\n",
         {("columns", "parallelism"): ("paralelism", LIKELY),
          ("columns", "gpu_kinds"): ("gpu_kind", LIKELY)}),
        ("job_id,submit_time,num_gpus,duration\na,2025-03-01,8,60\n",
         {("units", "submit_time"): ("date", SURE)}),
    ],
)  # fmt: skip
def test_cells_decide_with_names(tmp_path: Path, text: str, entry: dict[Any, Any]) -> None:
    assert entry.items() <= entries(proposed(put(tmp_path, "t.csv", text))).items()


def test_cells_that_are_no_axes_or_kinds_are_not_proposed(tmp_path: Path) -> None:
    rows = "id,submitted,n_gpus,hours,axes,gpu_type\na,0,8,3,tensr=4,3\n"
    told = proposed(put(tmp_path, "t.csv", rows))
    assert not {("columns", "parallelism"), ("columns", "gpu_kinds")} & {*entries(told)}
    assert told.unread == ("axes", "gpu_type")


@pytest.mark.parametrize(
    "row", ["1:00:00,2:00:00", "1:00:00,x\nb,0,8,soon,x", "1:30,x", "1:00:99,x"]
)
def test_only_one_column_of_lengths_is_taken_for_the_duration(tmp_path: Path, row: str) -> None:
    path = put(tmp_path, "t.csv", f"id,submitted,n_gpus,took,other\na,0,8,{row}\n")
    assert proposed(path).missing == ("duration",)


@pytest.mark.parametrize(
    "name", ["waited", "QueueTime", "started_clock", "end", "Time Limit", "timelimit", "Wartezeit"]
)
def test_a_wait_a_moment_or_a_limit_is_not_taken_for_the_duration(
    tmp_path: Path, name: str
) -> None:
    for length in ("1:00:00", "3600"):
        path = put(tmp_path, "t.csv", f"id,submit,num,{name},model\na,0,8,{length},vgg16\n")
        assert proposed(path).missing == ("duration",)
    path = put(tmp_path, "u.csv", f"id,submit,num,{name},took\na,0,8,1:00:00,2:00:00\n")
    assert entries(proposed(path))["columns", "duration"] == ("took", GUESS)


def test_a_table_that_looks_like_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="'duration'; the file has 'x, y'; name them with"):
        proposed(put(tmp_path, "t.csv", "x,y\n1,2\n"))


def test_a_name_of_several_lines_is_written_without_comments(tmp_path: Path) -> None:
    path = put(
        tmp_path, "t.csv", 'job_id,submit_time,num_gpus,duration,net\na,0,1,9,"VGG\n\nNet"\n'
    )
    mapping = TraceMapping()
    given, format_, comments, remarks = accepted(propose(path, mapping), mapping)
    write_mapping(path, format_, given, comments=comments, remarks=remarks)
    assert open_trace(str(path), given=Given()).jobs[0].model == "vgg11"


@pytest.mark.parametrize(
    "name",
    [
        "tiresias_480job.csv", "alibaba_openb_pods.csv", "sensetime_344_april.json",
        "philly_82k.csv",
    ],
)  # fmt: skip
def test_published_traces_need_no_mapping(name: str) -> None:
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    proposal = proposed(path)
    assert {one.part for one in proposal.entries} <= {"models"}
    assert {one.confidence for one in proposal.entries} <= {SURE}
    assert (proposal.unknown, proposal.missing) == ((), ())


@pytest.mark.parametrize(
    ("text", "columns", "arrivals_s", "run_s"),
    [
        ("id,start,gpus,seconds,model\na,5,8,3000,VGG\nb,7,8,60,VGG\n",
         {"submit_time": ("start", GUESS), "duration": ("seconds", SURE)}, [5, 7], [3000, 60]),
        ("id,submit,gpus,elapsed,model\na,1746000000,8,1:00:09,VGG\nb,1746000060,8,1-00:00:00,VGG\n",
         {"submit_time": ("submit", SURE), "duration": ("elapsed", SURE)}, [0, 60], [3609, 86400]),
        ("id,submit,gpus,walltime_min,model\na,1746000060000,8,2,VGG\nb,1746000000000,8,3,VGG\n",
         {"submit_time": ("submit", SURE), "duration": ("walltime_min", GUESS)},
         [0, 60], [180, 120]),
    ],
)  # fmt: skip
def test_what_schedulers_print_is_proposed_as_it_can_be_accepted(
    tmp_path: Path, text: str, columns: dict[str, Any], arrivals_s: list[float], run_s: list[float]
) -> None:
    path = put(tmp_path, "t.csv", text)
    proposal = proposed(path)
    assert proposal.format == "simple" and not proposal.missing
    told = entries(proposal)
    assert {name: told["columns", name] for name in columns} == columns
    given, format_, comments, remarks = accepted(proposal, TraceMapping())
    write_mapping(path, format_, given, comments=comments, remarks=remarks)
    trace = open_trace(str(path))
    assert [job.arrival_s for job in trace.jobs] == arrivals_s
    assert [job.ideal_s for job in trace.jobs] == pytest.approx(run_s)
    assert bool(trace.shifted) == (arrivals_s[0] == 0)


@pytest.mark.parametrize(
    ("text", "missing", "format_"),
    [
        ("id,gpus,seconds\na,8,60\n", ("submit_time",), "simple"),
        ("id,arrival_s,gpus,model\na,0,8,VGG\n", ("iterations",), "native"),
    ],
)
def test_columns_that_nothing_looks_like_are_named(
    tmp_path: Path, text: str, missing: tuple[str, ...], format_: str
) -> None:
    proposal = proposed(put(tmp_path, "t.csv", text))
    assert (proposal.missing, proposal.format) == (missing, format_)
