"""Do traces without compute times take those of the catalogue of models?"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import artist
from artist.errors import ConfigError, TraceError
from artist.run.prepare import prepare
from artist.trace.native.writer import write_trace
from artist.trace.read import read_trace

HEADER = "job_id,arrival_s,gpus,model,iterations"
PLAIN = "a,0,4,resnet50,1000", "b,60,8,vgg16,500"


def trace(folder: Path, *rows: str, header: str = HEADER) -> Path:
    path = folder / "t.csv"
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def scenario(path: Path, **settings: object) -> artist.Scenario:
    size = {} if "cluster" in settings else {"racks": 1}
    given = {"trace": str(path), "policy": "fifo", "fabric": "t4", **size, **settings}
    return artist.Scenario.model_validate(given)


def steps_s(path: Path, **settings: object) -> list[float]:
    return [job.compute_s for job in prepare(scenario(path, **settings)).trace.jobs]


@pytest.mark.parametrize("fabric", ["t4", "a100"])
@pytest.mark.parametrize("backend", ["analytical", "none"])
def test_steps_take_what_latency_shows(tmp_path: Path, fabric: str, backend: str) -> None:
    path = trace(tmp_path, *PLAIN)
    shown = [
        artist.latency(model, "4", fabric=fabric).compute_ns for model in ("resnet50", "vgg16")
    ]
    assert steps_s(path, fabric=fabric, backend=backend) == [ns / 1e9 for ns in shown]


@pytest.mark.parametrize("backend", ["analytical", "none"])
def test_a_divided_model_takes_the_time_of_its_axes(tmp_path: Path, backend: str) -> None:
    axes = "tensor=2,pipeline=2,batch=8,microbatches=8"
    header = f"{HEADER},parallelism"
    path = trace(tmp_path, f'a,0,8,llama3-8b,10,"{axes}"', header=header)
    shown = artist.latency(f"llama3-8b@{axes}", "8", fabric="a100", gpus_per_machine=8)
    assert steps_s(path, fabric="a100", backend=backend) == [shown.compute_ns / 1e9]


def test_published_axes_count_without_a_network_too(tmp_path: Path) -> None:
    path = trace(tmp_path, "a,0,64,llama3-70b,10")
    with_, without = (steps_s(path, fabric="a100", backend=x) for x in ("analytical", "none"))
    assert with_ == without != steps_s(path, fabric="a100", parallelism="none")


@pytest.mark.parametrize("backend", ["analytical", "none"])
def test_a_calibration_scales_them(tmp_path: Path, backend: str) -> None:
    path = trace(tmp_path, *PLAIN)
    own, none = (
        steps_s(path, fabric="dally2025", calibration=calibration, backend=backend)
        for calibration in ("auto", "none")
    )
    shown = artist.latency("resnet50", "1", fabric="dally2025", calibration="auto").compute_ns
    assert own[0] == shown / 1e9 != none[0]


def test_of_several_kinds_it_is_the_reference_of_the_speeds(tmp_path: Path) -> None:
    path = trace(tmp_path, *PLAIN)
    mixed = {"cluster": "k80-p100-v100", "speeds": "gavel"}
    (cell,) = {job.compute_s for job in prepare(scenario(path, **mixed, jobs=1)).trace.jobs}
    on_v100 = artist.latency("resnet50@gpu=v100", "1", fabric="t4").compute_ns
    assert cell == on_v100 / 1e9 != steps_s(path)[0]


def test_settings_of_a_scenario_count(tmp_path: Path) -> None:
    path = trace(tmp_path, *PLAIN)
    shown = artist.latency("vgg16@precision=bf16,gpu=v100", "1", fabric="t4").compute_ns
    assert steps_s(path, trained_as="gpu=v100,precision=bf16")[1] == shown / 1e9


def test_results_are_those_of_a_trace_with_the_figures_written_out(tmp_path: Path) -> None:
    path = trace(tmp_path, *PLAIN)
    first = artist.simulate(scenario(path))
    written = [f"{row},{s!r}" for row, s in zip(PLAIN, steps_s(path), strict=True)]
    trace(tmp_path, *written, header=f"{HEADER},compute_s")
    second = artist.simulate(scenario(path))
    assert first.jobs.equals(second.jobs) and first.placements.equals(second.placements)
    assert first.trace_filled == ("compute_s (the catalogue's on a T4, fabric t4): 2 jobs",)
    assert not second.trace_filled


def test_a_stated_time_stands_and_only_empty_cells_are_filled(tmp_path: Path) -> None:
    header = f"{HEADER},compute_s"
    path = trace(tmp_path, "a,0,4,resnet50,1000,.5", "b,60,8,vgg16,500,", header=header)
    stated, filled = steps_s(path)
    assert stated == 0.5 and filled == artist.latency("vgg16", "1", fabric="t4").compute_ns / 1e9


def test_other_jobs_may_have_unknown_models_without_a_network(tmp_path: Path) -> None:
    header = f"{HEADER},compute_s"
    path = trace(tmp_path, "a,0,4,mine,1000,.5", "b,60,8,vgg16,500,", header=header)
    assert steps_s(path, backend="none")[0] == 0.5


def test_parquet_gives_the_same_jobs(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    columns = {
        "job_id": ["a", "b"], "arrival_s": [0.0, 60.0], "gpus": [4, 8],
        "model": ["resnet50", "vgg16"], "iterations": [1000, 500], "compute_s": [None, 0.25],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    assert steps_s(path) == [artist.latency("resnet50", "1", fabric="t4").compute_ns / 1e9, 0.25]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,0,4,nonet,1000", "t.csv:2: job 'a' states no compute_s, which the catalogue knows of "
         "its models only: unknown model 'nonet'.*; give it compute_s"),
        ("a,0,4,chakra:x,1000", "t.csv:2: .*not of 'chakra:x'; give it compute_s"),
        (f"a,0,4,resnet50,{2**53}", "t.csv:2: 9007199254740992 iterations of 0.2138 s make"),
        ('a,0,4,"gpt2@timing=fitted,precision=bf16",9', "t.csv:2: job 'a': .*timing=fitted knows"),
    ],
)  # fmt: skip
def test_what_cannot_be_timed_is_refused(tmp_path: Path, row: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        steps_s(trace(tmp_path, row))


@pytest.mark.parametrize(("column", "cell"), [("gpu_share", ".5"), ("mig", "3g.40gb")])
def test_a_part_of_a_gpu_has_no_time_of_its_own(tmp_path: Path, column: str, cell: str) -> None:
    path = trace(tmp_path, f"a,0,1,resnet50,1000,{cell}", header=f"{HEADER},{column}")
    with pytest.raises(TraceError, match=r"t.csv:2: .*catalogue knows of whole GPUs only; give it"):
        read_trace(path)


@pytest.mark.parametrize("column", ["step_ms", "Compute Time", "duration", "runtime_h", "compute"])
def test_a_column_that_may_be_the_time_is_not_passed_over(tmp_path: Path, column: str) -> None:
    path = trace(tmp_path, "a,0,4,resnet50,1000,20", header=f"{HEADER},{column}")
    with pytest.raises(TraceError, match=f"t.csv:1: .*{column}"):
        read_trace(path)


def test_zero_is_not_a_missing_cell(tmp_path: Path) -> None:
    path = trace(tmp_path, "a,0,4,resnet50,1000,0", header=f"{HEADER},compute_s")
    with pytest.raises(TraceError, match=r"t.csv:2: field 'compute_s' is '0', expected seconds"):
        read_trace(path)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_native_keeps_the_gap(tmp_path: Path, name: str) -> None:
    first = read_trace(trace(tmp_path, *PLAIN))
    write_trace(first, tmp_path / name)
    assert read_trace(tmp_path / name).jobs == first.jobs


@pytest.mark.parametrize("to", ["simple", "swf"])
def test_formats_of_run_times_refuse_the_gap(tmp_path: Path, to: str) -> None:
    first = read_trace(trace(tmp_path, *PLAIN))
    with pytest.raises(ConfigError, match="job 'a' states no compute_s"):
        write_trace(first, tmp_path / "out", to)
    assert not (tmp_path / "out").exists()
