"""Are files in artist's own formats read, and bad files and arbitrary bytes refused?"""

import hashlib
import json
import shlex
import string
from pathlib import Path

import pytest
from foreign_samples import SENSETIME, assert_refused
from hypothesis import example, given
from hypothesis import strategies as st
from recordings import TRACES, needs_traces

from artist.cli.options import pairs_of
from artist.errors import ConfigError, TraceError
from artist.trace.detect import FORMATS, closest
from artist.trace.named import Given, open_trace
from artist.trace.native.writer import write_csv
from artist.trace.read import read_trace
from artist.trace.stats import stats, validate
from artist.workload.job import Job

NATIVE = "job_id,arrival_s,gpus,model,iterations,compute_s,user"
SIMPLE = "job_id,submit_time,num_gpus,duration"


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_native_csv(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        NATIVE + ",gpus_min,gpus_max,restart_s,hint_deadline",
        "late,10.5,4,BERT,100,0.25,ann,2,8,30,soon",
        "",
        "early,0,1,ResNet50,5,1.5,,,,,",
    )
    trace = read_trace(path)
    assert trace.name == "t"
    assert trace.format == "native"
    assert trace.jobs == (
        Job("early", 0.0, 1, "ResNet50", 5, 1.5, "", 1, 1, 0.0, {"hint_deadline": ""}),
        Job("late", 10.5, 4, "BERT", 100, 0.25, "ann", 2, 8, 30.0, {"hint_deadline": "soon"}),
    )
    assert trace.place(0) == f"{path}:4"
    assert trace.place(1) == f"{path}:2"


def test_jobs_may_have_a_tenant_a_priority_and_tables_or_partitions_of_tables(
    tmp_path: Path,
) -> None:
    header = f"{NATIVE},tenant,priority,tables"
    path = write(tmp_path / "t.csv", header, f"{OK},ads,1,ads  user/2024-06-01", f"b{OK[1:]},,,")
    assert [(job.tenant, job.priority, job.tables) for job in read_trace(path).jobs] == [
        ("ads", 1, ("ads", "user/2024-06-01")),
        (None, None, ()),
    ]


def test_a_file_of_jobs_without_tenants_has_no_such_columns(tmp_path: Path) -> None:
    write_csv([Job("a", 0.0, 1, "VGG", 1, 1.0)], tmp_path / "t.csv")
    assert "tenant" not in (tmp_path / "t.csv").read_text()


def test_a_tenant_that_would_be_lost_is_refused(tmp_path: Path) -> None:
    jobs = [Job("a", 0.0, 1, "VGG", 1, 1.0), Job("b", 0.0, 1, "VGG", 1, 1.0, tenant="ads")]
    with pytest.raises(ConfigError, match="job 'b' has a tenant"):
        write_csv(iter(jobs), tmp_path / "t.csv")


def test_simple_csv_cuts_a_duration_into_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", SIMPLE + ",vc", "a,0,2,2.5,blue", "b,1,1,0.2,red")
    first, second = read_trace(path).jobs
    assert (first.iterations, first.compute_s, first.user) == (3, 2.5 / 3, "blue")
    assert (second.iterations, second.compute_s, second.model) == (1, 0.2, "unknown")


def test_simple_csv_with_iterations_and_model(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", SIMPLE + ",model,iterations", "a,0,2,100,VGG,400")
    trace = read_trace(path)
    assert trace.jobs == (Job("a", 0.0, 2, "VGG", 400, 0.25),)
    assert trace.warnings == ()


def test_sensetime_iterations_are_shared_by_the_gang_and_rounded_up(tmp_path: Path) -> None:
    records = [SENSETIME, SENSETIME | {"job_id": 8, "arrival_time": 5}]
    path = write(tmp_path / "t.json", json.dumps(records, indent=1))
    trace = read_trace(path)
    assert trace.format == "sensetime"
    assert trace.jobs == (
        Job("8", 5.0, 4, "BERT", 3, 0.5, "ann"),
        Job("7", 60.0, 4, "BERT", 3, 0.5, "ann"),
    )
    assert [trace.place(i) for i in range(2)] == [f"{path}:11", f"{path}:2"]
    assert trace.warnings == ("2 jobs had their iterations rounded up to a multiple of their GPUs",)


def test_sensetime_start_time_serves_where_there_is_no_arrival_time(tmp_path: Path) -> None:
    path = write(tmp_path / "t.txt", sensetime(arrival_time=None, start_time="3"))
    assert read_trace(path).jobs[0].arrival_s == 3.0


@needs_traces
def test_the_measured_traces() -> None:
    batch = read_trace(TRACES / "sensetime_500_batch.json")
    assert len(batch.jobs) == 500
    assert {job.arrival_s for job in batch.jobs} == {0.0}
    assert batch.jobs[0] == Job(
        "396689", 0.0, 4, "MobileNetV3", 206521414, 0.0007665754697382836, "uLoqx"
    )
    week = read_trace(TRACES / "sensetime_411_poisson_week.json")
    assert len(week.jobs) == 411
    assert min(job.arrival_s for job in week.jobs) == 4286.0
    assert len(read_trace(TRACES / "sensetime_344_april.json").jobs) == 344
    philly = read_trace(TRACES / "philly_82k.csv")
    assert len(philly.jobs) == 82_247
    assert philly.jobs[0].ideal_s == 2_240_194.0
    assert sum(job.gpus == 1 for job in philly.jobs) == 76_627
    assert read_trace(TRACES / "tiresias_480job.csv").jobs[0].iterations == 271


OK = "a,0,1,VGG,10,0.5,ann"

# name, lines of the file, parts of the message
BAD = [
    ("zero-gpus", [NATIVE, "a,0,0,VGG,10,0.5,ann"], ["t.csv:2", "'gpus'", "'0'", "from 1"]),
    ("negative-gpus", [NATIVE, OK, "b,0,-4,VGG,10,0.5,ann"], ["t.csv:3", "'gpus'", "'-4'"]),
    ("half-a-gpu", [NATIVE, "a,0,0.5,VGG,10,0.5,ann"], ["t.csv:2", "'gpus'", "'0.5'", "whole"]),
    ("many-gpus", [NATIVE, "a,0,1e300,VGG,10,0.5,ann"], ["t.csv:2", "'gpus'", "'1e300'"]),
    ("no-gpus", [NATIVE, "a,0,,VGG,10,0.5,ann"], ["t.csv:2", "'gpus' is empty"]),
    ("zero-iterations", [NATIVE, "a,0,1,VGG,0,0.5,ann"], ["t.csv:2", "'iterations'", "'0'"]),
    ("word", [NATIVE, "a,0,1,VGG,ten,0.5,ann"], ["t.csv:2", "'iterations'", "'ten'"]),
    ("underscore", [NATIVE, "a,0,1,VGG,1_0,0.5,ann"], ["t.csv:2", "'iterations'", "'1_0'"]),
    ("nan", [NATIVE, "a,nan,1,VGG,10,0.5,ann"], ["t.csv:2", "'arrival_s'", "'nan'", "seconds"]),
    ("inf", [NATIVE, "a,inf,1,VGG,10,0.5,ann"], ["t.csv:2", "'arrival_s'", "'inf'"]),
    ("before-zero", [NATIVE, "a,-1,1,VGG,10,0.5,ann"], ["t.csv:2", "'arrival_s'", "'-1'"]),
    ("far-future", [NATIVE, "a,4.1e9,1,VGG,10,0.5,ann"], ["t.csv:2", "'arrival_s'", "4e+09"]),
    ("no-compute", [NATIVE, "a,0,1,VGG,10,0,ann"], ["t.csv:2", "'compute_s'", "'0'", "more than"]),
    ("bad-compute", [NATIVE, "a,0,1,VGG,10,-.5,ann"], ["t.csv:2", "'compute_s'", "'-.5'"]),
    ("endless", [NATIVE, "a,0,1,VGG,9e9,1e9,ann"], ["t.csv:2", "9000000000 iterations", "4e+09"]),
    ("below-a-tick", [NATIVE, "a,0,1,VGG,1,1e-12,ann"], ["t.csv:2", "1e-12 s", "1e-09"]),
    ("no-model", [NATIVE, "a,0,1,,10,0.5,ann"], ["t.csv:2", "'model'", "non-empty text"]),
    ("no-id", [NATIVE, " ,0,1,VGG,10,0.5,ann"], ["t.csv:2", "'job_id'", "non-empty text"]),
    ("same-id", [NATIVE, OK, "b,0,1,VGG,10,1,", OK], ["t.csv:4", "'a'", "t.csv:2", "new id"]),
    ("short-row", [NATIVE, OK, "b,0,1"], ["t.csv:3", "3 fields", "expected 7"]),
    ("long-row", [NATIVE, OK + ",x"], ["t.csv:2", "8 fields", "expected 7"]),
    ("open-quote", [NATIVE, '"a,0,1,VGG,10,0.5,ann'], ["t.csv:2", "not valid CSV"]),
    ("header-only", [NATIVE], ["t.csv", "no jobs"]),
    ("column-missing", ["job_id,arrival_s,gpus,model,compute_s", "a,0,1,VGG,1"], ["'iterations'"]),
    ("column-typo", [NATIVE.replace("gpus", "gpu"), OK], ["'gpus'", "did you mean 'gpu'"]),
    ("column-extra", [NATIVE + ",gpu_min", OK + ",1"], ["'gpu_min'", "did you mean 'gpus_min'"]),
    ("column-twice", [NATIVE + ",gpus", OK + ",1"], ["t.csv:1", "'gpus' appears twice"]),
    ("column-unnamed", [NATIVE + ",", OK + ",1"], ["t.csv:1", "no name"]),
    ("gpus-min", [NATIVE + ",gpus_min", OK + ",2"], ["t.csv:2", "'gpus_min'", "'2'", "at most"]),
    ("gpus-min-zero", [NATIVE + ",gpus_min", OK + ",0"], ["t.csv:2", "'gpus_min'", "'0'"]),
    ("gpus-max", [NATIVE + ",gpus_max", "a,0,4,VGG,10,0.5,ann,3"], ["t.csv:2", "'3'", "at least"]),
    ("restart", [NATIVE + ",restart_s", OK + ",-3"], ["t.csv:2", "'restart_s'", "'-3'"]),
    ("priority", [NATIVE + ",priority", OK + ",8"], ["t.csv:2", "'priority'", "'8'", "1 to 7"]),
    ("tables", [NATIVE + ",tables", OK + ",ads ads"], ["t.csv:2", "'tables'", "each name once"]),
    ("zero-duration", [SIMPLE, "a,0,1,0"], ["t.csv:2", "'duration'", "'0'", "more than 0"]),
    ("negative-submit", [SIMPLE, "a,-5,1,9"], ["t.csv:2", "'submit_time'", "'-5'"]),
    ("simple-column", [SIMPLE.replace("num_", ""), "a,0,1,9"], ["'num_gpus'", "mean 'gpus'"]),
    ("not-a-trace", ["hello world"], ["t.csv", "no format fits", "hello world"]),
]


@pytest.mark.parametrize(("lines", "parts"), [x[1:] for x in BAD], ids=[x[0] for x in BAD])
def test_bad_rows_are_named(tmp_path: Path, lines: list[str], parts: list[str]) -> None:
    assert_refused(write(tmp_path / "t.csv", *lines), parts)


def sensetime(**changed: object) -> str:
    """A file with the sample job of this format, but for some fields; None leaves a field out."""
    record = {name: x for name, x in (SENSETIME | changed).items() if x is not None}
    return json.dumps([record])


EMOJI = "\U0001f600"
BAD_JSON = [
    ("truncated", '[\n {"job_id": "7",\n  "us', ["t.json:3: column", "not valid JSON"]),
    ("object", '{"jobs": []}', ["t.json:1", "dict", "list of jobs"]),
    ("numbers", "[1, 2]", ["element 1", "'1'"]),
    ("empty-list", "[]", ["no jobs"]),
    ("nested", "[" * 100_000, ["t.json"]),
    ("huge-number", '[{"job_id": ' + "9" * 5000 + "}]", ["t.json", "not usable JSON"]),
    ("null", sensetime().replace('"4"', "null"), ["t.json:1", "missing"]),
    ("zero-gang", sensetime(max_parallelism="0"), ["'max_parallelism'", "'0'"]),
    ("bool", sensetime(max_parallelism=True), ["'max_parallelism'", "True"]),
    ("nan", sensetime(time_per_iteration=float("nan")), ["nan"]),
    ("list", sensetime(arrival_time=[1]), ["'arrival_time'", "[1]"]),
    ("typo", sensetime().replace("max_", "max"), ["'max_parallelism'", "mean 'maxparallelism'"]),
    ("no-arrival", sensetime(arrival_time=None), ["'arrival_time'", "start_time"]),
    ("second-lacks-a-field", sensetime()[:-1] + ',\n{"job_id": "9"}]', ["t.json:2", "missing"]),
    (
        "half-a-character",
        json.dumps([SENSETIME | {"user": EMOJI}, SENSETIME | {"job_id": "\ud83d"}]),
        ["t.json:1", "'\\ud83d' is half a character"],
    ),
]


@pytest.mark.parametrize(("text", "parts"), [x[1:] for x in BAD_JSON], ids=[x[0] for x in BAD_JSON])
def test_bad_json_is_named(tmp_path: Path, text: str, parts: list[str]) -> None:
    path = tmp_path / "t.json"
    path.write_text(text)
    assert_refused(path, parts)


def test_json_may_write_characters_as_pairs_of_escapes(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(sensetime(user=EMOJI))
    assert read_trace(path).jobs[0].user == EMOJI


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    for name, content, part in [
        ("empty.csv", b"", "is empty"),
        ("binary.csv", NATIVE.encode() + b"\n\x89\xff", "binary.csv:2: byte 0x89"),
        ("utf16.csv", NATIVE.encode("utf-16"), "not UTF-8"),
        ("broken.parquet", b"PAR1 and no more", "not readable Parquet"),
    ]:
        (tmp_path / name).write_bytes(content)
        assert_refused(tmp_path / name, [part])
    assert_refused(tmp_path / "absent.csv", ["No such file"])
    assert_refused(tmp_path, ["Is a directory"])


def test_a_bad_parquet_row_is_named_by_its_number(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "job_id": ["a", "b"], "arrival_s": [0.0, None], "gpus": [1, 2], "model": ["VGG", "VGG"],
        "iterations": [5, 6], "compute_s": [0.5, 0.5],
    }  # fmt: skip
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table(columns), path)
    with pytest.raises(TraceError, match=r"t\.parquet: row 2: field 'arrival_s' is missing"):
        read_trace(path)


@given(data=st.binary(max_size=300))
@example(data=b"[[")
@example(data=b"PAR1\x00\x00PAR1")
@example(data=NATIVE.encode() + b"\n,,,,,,\n")
@example(data=SIMPLE.encode() + b"\na,0,1,1e-320\n")
def test_random_bytes_raise_nothing_but_a_trace_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    for suffix in (".csv", ".json", ".parquet"):
        path = tmp_path_factory.mktemp("bytes") / f"t{suffix}"
        path.write_bytes(data)
        with pytest.raises(TraceError):
            read_trace(path)


cells = st.text(string.printable, max_size=6)


@given(rows=st.lists(st.lists(cells, min_size=7, max_size=7), min_size=1, max_size=4))
def test_random_cells_raise_nothing_but_a_trace_error(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    path = tmp_path_factory.mktemp("cells") / "t.csv"
    path.write_text(NATIVE + "\n" + "\n".join(",".join(row) for row in rows))
    try:
        read_trace(path)
    except TraceError as error:
        assert str(error).startswith(str(path))


def test_an_unwritable_place_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    jobs = [Job("a", 0.0, 1, "VGG", 1, 1.0)]
    with pytest.raises(ConfigError, match=r"absent/t\.csv: cannot be written \(No such file"):
        write_csv(jobs, tmp_path / "absent" / "t.csv")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(ConfigError, match="Is a directory"):
        write_csv(jobs, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_failing_generator_leaves_the_old_file(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "old")

    def failing() -> object:
        yield Job("a", 0.0, 1, "VGG", 1, 1.0)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_csv(failing(), path)
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_stats_by_hand(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv",
        NATIVE,
        "a,0,1,VGG,3600,1,ann",
        "b,100,2,VGG,7200,1,ben",
        "c,200,2,squeezenet,7200,2,ben",
    )
    trace = read_trace(path)
    figures = stats(trace)
    assert figures["jobs"] == 3
    assert figures["users"] == 2
    assert figures["gpus_median"] == 2.0
    assert figures["jobs_by_gpus"] == {"1": 1, "2": 2}
    assert figures["jobs_by_model"] == {"VGG": 2, "squeezenet": 1}
    assert figures["gpu_hours"] == pytest.approx(1 + 4 + 8)
    assert figures["gpu_hours_by_gpus"] == {"1": pytest.approx(1), "2": pytest.approx(12)}
    assert figures["ideal_jct_p50_s"] == 7200.0
    assert figures["arrival_span_s"] == 200.0
    assert json.loads(json.dumps(figures)) == figures
    report = validate(trace)
    assert report["models_unknown"] == ["squeezenet"]
    assert report["sha256"] == trace.digest == hashlib.sha256(path.read_bytes()).hexdigest()


# Headers that fit no format: the format that comes closest, and what the message must say.
CLOSEST = {
    "job_id,submitted,n_gpus,duration,model_name": (
        "simple",
        ["no format fits, and the closest, simple, needs columns 'submit_time', 'num_gpus'",
         "did you mean 'submitted', 'n_gpus'?",
         "--columns submit_time=submitted,num_gpus=n_gpus,model=model_name"],
    ),
    "id,submitted,n_gpus,run hours,network": (
        "simple",
        ["--columns 'job_id=id,submit_time=submitted,num_gpus=n_gpus,duration=run hours,"
         "model=network' --units duration=h"],
    ),
    "id,time,gpus,model,steps,step_ms": (
        "native",
        ["native, needs columns 'job_id', 'arrival_s', 'iterations', 'compute_s'",
         "job_id=id", "iterations=steps"],
    ),
    "job_id,num_gpu,submit_time,iterations,model_name,length": (
        "tiresias",
        ["the closest, tiresias, needs column 'duration': did you mean 'length'",
         "artist trace columns ", "--from tiresias --columns duration=length"],
    ),
    "job_id,user,gpu_num,state,submit_time,start,duration": (
        "helios", ["helios, needs column 'start_time'", "--from helios --columns start_time=start"],
    ),
    "job_id,arrival_s,gpus": ("native", ["native, needs columns 'model', 'iterations'"]),
    "job_id,submitted,gpus,hours,model": (
        "simple",
        ["--columns submit_time=submitted,num_gpus=gpus,duration=hours --units duration=h"],
    ),
    "name,time,n_gpus,hours": (
        "simple", ["job_id=name", "num_gpus=n_gpus,duration=hours --units duration=h"],
    ),
    "a,b,c": ("simple", ["--columns job_id=COLUMN,submit_time=COLUMN"]),
    "id,start,gpus,seconds,model": (
        "simple", ["--columns job_id=id,submit_time=start,num_gpus=gpus,duration=seconds"],
    ),
    "id,submit,gpus,elapsed,model": ("simple", ["submit_time=submit,num_gpus=gpus,duration=elap"]),
}  # fmt: skip


@pytest.mark.parametrize("header", CLOSEST)
def test_a_header_that_fits_nothing_names_the_closest_format(tmp_path: Path, header: str) -> None:
    format_, parts = CLOSEST[header]
    assert closest(header.split(",")).id == format_
    path = write(tmp_path / "t.csv", header, ",".join("1" for _ in header.split(",")))
    assert_refused(path, [f"{path}:1: no format fits", header.replace(",", ", "), *parts])


@pytest.mark.parametrize("known", ["native", "simple", "sensetime", "tiresias", "helios", "openb"])
def test_a_format_that_lacks_one_column_is_still_known(known: str) -> None:
    required = FORMATS[known].required
    for missing in required:
        rest = [name for name in required if name != missing]
        assert closest([*rest, "x"]).id == known


def test_what_the_message_says_can_be_typed(tmp_path: Path) -> None:
    """The flags of the message, given back, read the file."""
    path = write(tmp_path / "t.csv", "id,submitted,n_gpus,run hours,network", "a,0,4,2,vgg11")
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    typed = shlex.split(str(caught.value).partition("name them with ")[2])
    assert typed[::2] == ["--columns", "--units"]
    pairs = Given(pairs_of("columns", [typed[1]]), pairs_of("units", [typed[3]]))
    (job,) = open_trace(str(path), given=pairs).jobs
    assert (job.ideal_s, job.gpus, job.model) == (7200, 4, "vgg11")
