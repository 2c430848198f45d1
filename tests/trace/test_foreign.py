"""Are foreign formats recognised and read by the stated rules, and bad files refused by line?"""

import json
from pathlib import Path

import foreign_samples as samples
import pytest
from foreign_samples import FILES, assert_refused, put, sample
from recordings import TRACES, needs_traces

from artist.errors import ConfigError, TraceError
from artist.trace.foreign.fill import steps
from artist.trace.named import open_trace
from artist.trace.native.choices import Fractional, Rules
from artist.trace.native.trace import check_models
from artist.trace.read import read_trace
from artist.trace.stats import stats, validate

KEEP = Rules(model="keep")

# id, arrival, GPUs, run time and user of the jobs that are kept; why one row each is dropped
EXPECTED = {
    "helios": (
        [("13", 0.0, 1, 30.0, "uB"), ("11", 570.0, 8, 3600.0, "uA")],
        ["CPU only", "never started", "failed before it started", "zero duration", "repeated id"],
    ),
    "philly": (
        [("twice", 0.0, 16, 3660.0, "u1"), ("no-user", 0.0, 1, 60.0, "6214e9")],
        ["never started", "failed before it started", "still running at the end",
         "no times recorded", "no GPUs recorded", "ends before it starts"],
    ),
    "pai": (
        [("j1", 0.0, 8, 300.0, ""), ("j2", 490.5, 1, 100.0, "")],
        ["never started", "failed before it started", "still running at the end", "CPU only"],
    ),
    "openb": (
        [("p0", 0.0, 8, 250.0, ""), ("p3", 20.0, 1, 270.0, "")], ["CPU only", "never started"],
    ),
    "gavel": (
        [("1", 0.0, 2, 1000 / 7.922, ""), ("2", 60.5, 1, 1000.0, "")],
        ["a job type that Gavel never measured"],
    ),
    "shockwave": ([("1", 5.0, 2, 1418.0, ""), ("2", 9.0, 1, 720.0, "")], []),
    "tiresias": ([("0", 0.0, 1, 164.0, ""), ("1", 30.0, 8, 147.0, "")], ["CPU only"]),
    "sacct": (
        [("7", 0.0, 8, 60.0, "user-4201c49a"), ("8_0", 10.0, 2, 300.0, "user-9a067389"),
         ("13", 180.0, 1, 10.0, "user-51c10100")],
        ["step of a job", "never started", "still running at the end", "CPU only",
         "tasks of an array that never started",
         "earlier run of a requeued job", "part of a heterogeneous job"],
    ),
    "squeue": (
        [("10", 0.0, 2, 2400.0, "user-51c10100"), ("11", 0.0, 4, 1800.0, "user-9a067389"),
         ("16", 0.0, 1, 120.0, "user-51c10100"), ("12", 0.0, 16, 86400.0, "user-4201c49a")],
        ["no time limit", "CPU only", "held, or before its begin time", "neither runs nor waits",
         "part of a heterogeneous job"],
    ),
    "swf": (
        [("1", 0.0, 16, 3600.0, "3"), ("4", 62.0, 4, 100.0, "")],
        ["zero duration", "never started", "part of a job that has its own line", "CPU only",
         "failed before it started"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("format_", EXPECTED)
def test_jobs_and_drops(tmp_path: Path, format_: str) -> None:
    trace = read_trace(sample(tmp_path, format_))
    expected, dropped = EXPECTED[format_]
    assert trace.format == format_
    assert [(j.id, j.arrival_s, j.gpus, j.user) for j in trace.jobs] == [
        (name, arrival_s, gpus, user) for name, arrival_s, gpus, _, user in expected
    ]
    assert [j.ideal_s for j in trace.jobs] == pytest.approx([x[3] for x in expected], rel=1e-12)
    assert trace.dropped == dict.fromkeys(dropped, 1)
    check_models(trace)  # by default every job can be simulated with communication


@pytest.mark.parametrize("format_", FILES)
def test_a_format_is_recognised_or_named(tmp_path: Path, format_: str) -> None:
    path = sample(tmp_path, format_)
    assert read_trace(path).format == format_
    assert read_trace(path, format_=format_) == read_trace(path)
    assert open_trace(str(path)).format == format_


def test_the_places_are_the_lines(tmp_path: Path) -> None:
    path = sample(tmp_path, "swf")
    trace = read_trace(path)
    assert [trace.place(i) for i in range(2)] == [f"{path}:4", f"{path}:7"]


@pytest.mark.parametrize("rows", [samples.GAVEL7, samples.GAVEL9])
def test_older_gavel_layouts(tmp_path: Path, rows: list[str]) -> None:
    (job,) = read_trace(put(tmp_path, "t.trace", "\n".join(rows)), rules=KEEP).jobs
    assert (job.model, job.gpus, job.iterations, job.arrival_s) == (
        "lstm@batch=5", 1, 1092, 7.0,
    )  # fmt: skip
    assert job.ideal_s == pytest.approx(10.0)


def test_gangs_share_the_steps(tmp_path: Path) -> None:
    trace = read_trace(sample(tmp_path, "shockwave"))
    assert [job.iterations for job in trace.jobs] == [51, 500]
    assert [job.model for job in trace.jobs] == ["resnet18", "resnet50@batch=64"]


def test_sia_draws_run_times_in_the_class_of_the_application(tmp_path: Path) -> None:
    path = sample(tmp_path, "sia")
    for seed in range(20):
        small, large = read_trace(path, rules=Rules(seed=seed)).jobs
        assert 0.1 <= small.gpus * small.ideal_s / 3600 <= 1
        assert 10 <= large.gpus * large.ideal_s / 3600 <= 100
        assert small.model == "resnet18"
    assert read_trace(path).jobs == read_trace(path).jobs
    assert read_trace(path, rules=Rules(seed=1)).jobs != read_trace(path).jobs


def test_pai_with_a_header_and_its_job_table(tmp_path: Path) -> None:
    path = put(tmp_path, "t.csv", "\n".join([samples.PAI_HEADER, *samples.PAI]))
    users = put(tmp_path, "jobs.csv", "j1,i1,ann,Terminated,900,1310\nj2,i2,ben,Failed,1500.5,\n")
    trace = read_trace(path, rules=Rules(job_table=users))
    assert [(j.id, j.arrival_s, j.user) for j in trace.jobs] == [
        ("j1", 0.0, "ann"),
        ("j2", 600.5, "ben"),
    ]


SHARED = {"openb": ("t.csv", samples.OPENB_SHARED, 6), "pai": ("t.csv", samples.PAI_SHARED, 8)}


@pytest.mark.parametrize("format_", SHARED)
def test_parts_of_gpus_are_never_rounded_silently(tmp_path: Path, format_: str) -> None:
    name, rows, line = SHARED[format_]
    path = put(tmp_path, name, "\n".join(rows))
    with pytest.raises(TraceError, match=rf"t\.csv:{line}: .*part of a GPU.*--fractional round-up"):
        read_trace(path)
    rounded = read_trace(path, rules=Rules(fractional=Fractional.ROUND_UP))
    assert "whole GPUs (parts rounded up): 1 job" in rounded.filled
    assert rounded.jobs[-1].gpus == (1 if format_ == "openb" else 2)
    kept = read_trace(path, rules=Rules(fractional=Fractional.SHARE))
    shares = [job.gpu_share for job in kept.jobs if job.gpu_share is not None]
    assert shares == ([0.46] if format_ == "openb" else [])  # parts of several are rounded up
    assert ("whole GPUs (parts rounded up): 1 job" in kept.filled) == (format_ == "pai")
    without = read_trace(path, rules=Rules(fractional=Fractional.DROP))
    assert without.dropped["part of a GPU"] == 1
    assert len(without.jobs) == len(rounded.jobs) - 1


def test_model_rules(tmp_path: Path) -> None:
    path = sample(tmp_path, "tiresias")

    def models(rule: str | None) -> list[str]:
        return [job.model for job in read_trace(path, rules=Rules(model=rule)).jobs]

    assert models("keep") == ["net19", "vgg11"]
    assert models("BERT") == ["bert-large", "vgg11"]
    assert models("uniform") == models(None)
    with pytest.raises(ConfigError, match="unknown model rule 'unform': did you mean 'uniform'"):
        models("unform")


def test_rules_fill_artists_own_formats_only_when_asked(tmp_path: Path) -> None:
    path = sample(tmp_path, "simple")
    assert {job.model for job in read_trace(path).jobs} == {"unknown"}
    trace = read_trace(path, rules=Rules(seed=3, model="mix"))
    check_models(trace)
    assert trace.filled == ("model (as in Dally's batch for its number of GPUs, seed 3): 2 jobs",)
    assert len(trace.warnings) == 1


def test_stats_and_validate_report_what_was_done(tmp_path: Path) -> None:
    trace = read_trace(sample(tmp_path, "helios"), rules=Rules(seed=3))
    for facts in (stats(trace), validate(trace)):
        assert facts["format"] == "helios"
        assert facts["filled"] == [
            "iterations and compute_s (the run time in the model's steps of Dally's workloads): "
            "2 jobs",
            "model (uniform over Dally's six, seed 3): 2 jobs",
        ]
        assert sum(facts["dropped"].values()) == 5
        assert json.loads(json.dumps(facts)) == facts


def test_steps_come_closest_to_the_run_time() -> None:
    assert steps(10.0, "unheard-of") == 10
    assert steps(0.1, "unheard-of") == 1
    assert steps(3600.0, "ResNet50") == round(3600 / (0.0013064 * 0.0023118) ** 0.5)


H, P, PODS = samples.HELIOS_HEADER, samples.PHILLY[0], samples.OPENB_HEADER
T, S = samples.TIRESIAS[0], samples.SWF[3]
G = samples.GAVEL10[0]

Q = ["JOBID|STATE|TIME|TIME_LIMIT|NODES|TRES_PER_NODE"]
BAD = [
    ("a.csv", [H, samples.HELIOS[1].replace(",8,32", ",x,32")], [":2", "'gpu_num'", "'x'"]),
    ("a.csv", [H, samples.HELIOS[1].replace(",8,32", ",1000000000,32")], [":2", "1000000"]),
    ("a.csv", [H, samples.HELIOS[1].replace("04-01 00:10", "04-41 00:10")], [":2", "submit_time"]),
    ("a.csv", [H, samples.HELIOS[1].replace("3600", "1e300")], [":2", "'duration'", "1e300"]),
    ("a.csv", [H, samples.HELIOS[1].replace("3600", "-5")], [":2", "'duration'", "'-5'"]),
    ("a.csv", [H, samples.HELIOS[2]], ["no jobs", "CPU only: 1"]),
    ("a.csv", [H], ["no jobs", "no rows"]),
    ("a.csv", [H.replace("duration", "durat"), samples.HELIOS[1]], ["'duration'", "'durat'"]),
    ("a.csv", [PODS, "p,1,1,1,1500,,LS,Running,0,5,1"], [":2", "'gpu_milli'", "1 to 1000"]),
    ("a.csv", [PODS, "p,1,1,1,1000,,LS,Running,0,5,9"], [":2", "'deletion_time'", "after"]),
    ("a.csv", [T, "0,1,-3,606,vgg19,164,30"], [":2", "'submit_time'", "'-3'"]),
    ("a.csv", [T, "0,1,3,0,vgg19,164,30"], [":2", "'iterations'", "'0'"]),
    ("a.csv", [T, "0,1,3,6.5,vgg19,164,30"], [":2", "'iterations'", "whole"]),
    ("a.csv", [samples.SIA[0], "x,1,bert,one,2"], [":2", "'num_replicas'", "'one'"]),
    ("a.csv", [*samples.PAI, "j,t,1,Failed,9,5,1,1,100,M"], [":8", "'end_time'"]),
    ("a.csv", [*samples.PAI, "j,t,999999,Failed,5,9,1,1,1e5,M"], [":8", "'plan_gpu'"]),
    ("a.csv", [*samples.PAI, "j,t,1"], [":8", "3 fields", "expected 10"]),
    ("a.trace", [G, G.replace("\t1000\t", "\tmany\t")], [":2", "'total_steps'", "'many'"]),
    ("a.trace", [G, G.replace("\t2\t", "\t-2\t")], [":2", "'scale_factor'", "'-2'"]),
    ("a.trace", [G, "only\tthree\tcells"], [":2", "3 fields", "expected 10"]),
    ("a.swf", [S, S.replace(" 3600 ", " nan ")], [":2", "'run_time'", "'nan'"]),
    ("a.swf", [S, S.replace(" 16 ", " 1e9 ")], [":2", "'requested_processors'"]),
    ("a.swf", [S, "1 2 3"], [":2", "3 fields", "expected 18"]),
    ("a.swf", ["; nothing"], ["no format fits"]),
    ("q.txt", [*Q, "15|PENDING|0:00|2:00|0|gres:gpu:1"], [":2", "'NODES'", "from 1 to 1000000"]),
    ("q.txt", [*Q, "15|PENDING|0:00|2:00|some|gres:gpu:1"], [":2", "'NODES'", "whole number"]),
    ("a.json", ['{"jobs": [], "meta": {}}'], [":1", "--json is not read; print sacct -a -P"]),
    ("q.txt", [*Q, "15_[1-4]|PENDING|0:00|2:00|1|gres:gpu:1"], [":2", "'JOBID'", "squeue -r"]),
    ("q.txt", [*Q, "1|PENDING|0:00|2:00|1|gres:gpu:a:b:1"], [":2", "gres:gpu:KIND:NUMBER"]),
    ("q.txt", [*Q, "1|PENDING|0:00|2:00|1|gres:gpu:99999999999"], [":2", "at most 1000000"]),
    ("q.txt", [*Q, f"1|PENDING|0:00|{'9' * 400}:00:00|1|gres:gpu:1"], [":2", "'TIME_LIMIT'"]),
    ("q.txt", [*Q, "1|RUNNING|soon|2:00|1|gres:gpu:1"], [":2", "'TIME'", "1-02:03:04"]),
    ("q.txt", [*Q, "1|RUNNING|60:00|2:00|1|gres:gpu:1"], [":2", "'60:00'", "up to 59"]),
    ("q.txt", [*Q, "1|RUNNING|1:00|2:00|1|gres:gpu:3g.20gb:1"], [":2", "part of a GPU"]),
]


@pytest.mark.parametrize(("name", "rows", "parts"), BAD)
def test_bad_rows_are_named(tmp_path: Path, name: str, rows: list[str], parts: list[str]) -> None:
    assert_refused(put(tmp_path, name, "\n".join(rows) + "\n"), parts)


@pytest.mark.parametrize(
    "change",
    [
        {"attempts": None},
        {"attempts": [1]},
        {"attempts": [{"start_time": 5, "end_time": None, "detail": []}]},
        {"attempts": [{"start_time": "yesterday", "detail": []}]},
        {"attempts": [{"detail": [{"ip": "m1"}]}]},
        {"attempts": [{"detail": "m1"}]},
        {"submitted_time": "2017"},
        {"submitted_time": None},
        {"submitted_time": "2017-10-07 01:00:00+00:00"},
    ],
)
def test_bad_philly_jobs_are_named(tmp_path: Path, change: dict[str, object]) -> None:
    path = put(tmp_path, "log", json.dumps([P, {**P, "jobid": "b", **change}], indent=0))
    line = next(n for n, x in enumerate(path.read_text().split("\n"), 1) if x == "{" and n > 2)
    with pytest.raises(TraceError, match=rf"log:\d+: field '{next(iter(change))}'") as caught:
        read_trace(path)
    assert int(str(caught.value).split(":")[1]) >= line


def test_doubtful_files_name_the_candidates(tmp_path: Path) -> None:
    both = f"{samples.SIMPLE[0]},num_gpu,iterations,model_name"
    path = put(tmp_path, "t.csv", f"{both}\na,0,2,2.5,blue,2,7,vgg11\n")
    with pytest.raises(TraceError, match=r"several formats: simple, tiresias; choose.*--from"):
        read_trace(path)
    assert read_trace(path, format_="tiresias").jobs[0].iterations == 7
    with pytest.raises(ConfigError, match="unknown trace format 'helois': did you mean 'helios'"):
        read_trace(path, format_="helois")
    with pytest.raises(TraceError, match=r"t\.csv:1: 1 field, expected 18 of the swf format"):
        read_trace(path, format_="swf")
    with pytest.raises(TraceError, match=r"t\.csv:1: format helios needs columns 'user', "):
        read_trace(path, format_="helios")


def test_a_bad_job_table_is_named(tmp_path: Path) -> None:
    path = sample(tmp_path, "pai")
    for text, part in [("job_name,user\n", "'start_time'"), ("a,b\n", "2 fields, expected 6")]:
        table = put(tmp_path, "jobs.csv", text)
        with pytest.raises(TraceError, match=part):
            read_trace(path, rules=Rules(job_table=table))


@needs_traces
def test_the_real_openb_pods() -> None:
    trace = read_trace(
        TRACES / "alibaba_openb_pods.csv", rules=Rules(fractional=Fractional.ROUND_UP)
    )
    assert len(trace.jobs) == 6203
    assert trace.dropped == {"CPU only": 1088, "never started": 861}
    assert "whole GPUs (parts rounded up): 2,573 jobs" in trace.filled
    assert len(trace.jobs) + sum(trace.dropped.values()) == 8152
