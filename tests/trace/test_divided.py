"""Do jobs get axes from a column, a scenario or publications, and are bad ones refused?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import ConfigError, TraceError
from artist.estimates.query_from_text import on_placement
from artist.run import open_backend, simulate
from artist.run.communication_split import communication_split
from artist.settings import load_scenario
from artist.trace.divided import with_axes
from artist.trace.native.choices import Rules
from artist.trace.native.divided_models import is_as_published, published_model
from artist.trace.native.trace import Trace
from artist.trace.read import read_trace
from artist.workload.catalogue import ROWS
from artist.workload.division.job_parallelism import PUBLISHED, JobParallelism, may_be_divided
from artist.workload.models import settings, workload

HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s,parallelism\n"


def trace(tmp_path: Path, *rows: str, header: str = HEADER) -> Trace:
    path = tmp_path / "t.csv"
    path.write_text(header + "".join(f"{row}\n" for row in rows))
    return read_trace(path)


def test_the_column_becomes_part_of_the_models_name(tmp_path: Path) -> None:
    read = trace(
        tmp_path,
        'a,0,16,gpt3-xl,10,2,"tensor=4,pipeline=2"',
        "b,0,8,llama3-8b,10,2,tensor=2 sequence=true recompute=true",
        "c,0,8,resnet50,10,2,",
    )
    assert [job.model for job in read.jobs] == [
        "gpt3-xl@tensor=4,pipeline=2",
        "llama3-8b@tensor=2,recompute=full,sequence_parallel=true",
        "resnet50",
    ]


def test_a_job_that_says_that_nothing_is_sharded_keeps_that_and_gets_no_published_axes(
    tmp_path: Path,
) -> None:
    (job,) = trace(tmp_path, "a,0,32,llama3-70b,10,2,sharded=no").jobs
    assert job.model == "llama3-70b@sharded=no"
    assert published_model(job.model, 32) is None
    assert published_model("llama3-70b", 32) is not None


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("tensor=4 pipeline=3", r"t\.csv:2: job 'a': tensor=4, pipeline=3 do not divide 16"),
        ("tensor=3", "tensor=3 does not divide 16 GPUs; give .* 15 or 18 GPUs, .* to 2 or 4$"),
        ("tensor=8 pipeline=4", "divide 16 GPUs; give the job 32 GPUs, .* multiply to 16$"),
        ("pipeline=2 data=5", "multiply to 16 GPUs; give the job 10 GPUs, .* such as data=8"),
        ("tensor=4 pipeline=27", r"24 blocks, the embeddings and the head do not fill 27 pip"),
        ("pipeline=2 microbatches=3", r"t\.csv:2: .*4 does not divide into 3 microbatches"),
        ("tensr=4", r"t\.csv:2: parallelism: unknown setting 'tensr': did you mean 'tensor'"),
        ("tensor", r"expected pairs such as tensor=8,pipeline=4"),
        ("sharded=zero9", r"'sharded' is 'zero9'"),
    ],
)
def test_bad_cells_are_refused_where_they_stand(tmp_path: Path, cell: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        with_axes(trace(tmp_path, f"a,0,16,gpt3-xl,10,2,{cell}"), "published")


@pytest.mark.parametrize("cell", ["expert=8", '"recompute=full,expert=8"'])
def test_a_gang_over_which_experts_cannot_be_spread_is_refused_where_it_stands(
    tmp_path: Path, cell: str
) -> None:
    message = r"t\.csv:2: job 'a': .* spread over 8 GPUs, and a stage has 4; .* expert to 4"
    with pytest.raises(TraceError, match=message):
        with_axes(trace(tmp_path, f"a,0,4,mixtral-8x7b,10,2,{cell}"), "published")


@pytest.mark.parametrize("model", ["tensor=2,stages=2", "tensor=2,pipeline=2"])
def test_a_gang_that_axes_do_not_divide_is_refused_where_it_stands(
    tmp_path: Path, model: str
) -> None:
    with pytest.raises(TraceError, match=r"t\.csv:2: job 'a': .* give the job 4 GPUs"):
        with_axes(trace(tmp_path, f'a,0,3,"gpt2@{model}",10,2,'), "published")


@pytest.mark.parametrize("cell", ["", "recompute=full"])
def test_a_trace_says_how_experts_are_spread_that_have_no_gpu_each(
    tmp_path: Path, cell: str
) -> None:
    rows = [f"{gpus},0,{gpus},mixtral-8x7b,10,2,{cell}" for gpus in (4, 8, 12)]
    divided = with_axes(trace(tmp_path, *rows), "published")
    assert divided.filled == (
        "of 2 jobs, the 8 experts of a layer are spread over 4 GPUs, 2 on each: "
        f"mixtral-8x7b{cell and '@' + cell}",
    )


def test_a_large_model_gets_published_axes_and_the_trace_says_so(tmp_path: Path) -> None:
    rows = ("a,0,64,Llama3-70B,10,5,", "b,0,64,gpt2,10,2,", "c,0,8,llama3-70b@tensor=8,10,5,")
    divided = with_axes(trace(tmp_path, *rows), "published")
    chosen = settings(divided.jobs[0].model)
    assert (chosen.tensor, chosen.pipeline, chosen.microbatches) == (4, 8, 128)
    assert divided.jobs[1].model == "gpt2"
    assert divided.jobs[2].model == "llama3-70b@tensor=8"
    (text,) = divided.filled
    assert text.startswith("parallelism of 1 job, published for the model: llama3-70b@")


@pytest.mark.parametrize(
    ("model", "gpus", "axes"),
    [
        ("llama3-70b", 64, (4, 8)),
        ("gpt3-175b", 64, (8, 8)),
        ("gpt3-175b", 36, (4, 9)),
        ("llama3-70b", 24, (4, 6)),
        ("llama3-70b", 7, (1, 7)),
    ],
)
def test_a_gang_gets_as_many_stages_as_divide_it(
    model: str, gpus: int, axes: tuple[int, int]
) -> None:
    name = published_model(model, gpus)
    assert name is not None
    chosen = settings(name)
    assert (chosen.tensor, chosen.pipeline) == axes
    assert is_as_published(name) == (gpus == 64 and model == "llama3-70b")


def test_every_spelling_of_a_model_with_axes_or_experts_is_looked_at() -> None:
    rows = [row for row in ROWS if row.id in PUBLISHED or row.settings.experts]
    names = [name for row in rows for name in (row.id, *row.aliases)]
    assert rows
    assert all(may_be_divided(name, "published") for name in names)


def test_a_trace_of_other_models_is_the_same_object(tmp_path: Path) -> None:
    read = trace(tmp_path, "a,0,64,resnet50,10,5,", "b,0,8,bert-large,10,5,")
    assert with_axes(read, "published") is read
    assert with_axes(trace(tmp_path, "a,0,64,llama3-70b,10,5,"), "none").filled == ()


@pytest.mark.parametrize("model", PUBLISHED)
@pytest.mark.parametrize("gpus", [1, 2, 8, 24, 64, 100, 1024, 16_384])
def test_published_axes_fit_every_gang(model: str, gpus: int) -> None:
    fitted = published_model(model, gpus)
    if fitted is None:
        assert gpus % 2 or gpus == 1
        return
    chosen = settings(fitted)
    assert gpus % (chosen.tensor * chosen.pipeline) == 0
    assert gpus // chosen.pipeline % chosen.spread == 0
    assert workload(fitted).layers


def test_a_scenario_divides_transformers_that_say_nothing(tmp_path: Path) -> None:
    rows = ("a,0,16,gpt3-xl,10,2,", "b,0,8,resnet50,10,2,")
    chosen = JobParallelism(tensor=4, pipeline=2)
    divided = with_axes(trace(tmp_path, *rows), chosen)
    assert [job.model for job in divided.jobs] == ["gpt3-xl@tensor=4,pipeline=2", "resnet50"]


def test_settings_of_a_scenario() -> None:
    scenario = load_scenario(None, {}, ["parallelism.tensor=8", "parallelism.sharded=zero1"])
    assert scenario.parallelism == JobParallelism(tensor=8, sharded="zero1")
    assert "parallelism" not in Scenario().model_dump()
    assert load_scenario(None, {}, ["parallelism=none"]).parallelism == "none"
    with pytest.raises(ConfigError, match=r"parallelism\.tensr"):
        load_scenario(None, {}, ["parallelism.tensr=8"])


def test_jobs_divided_along_axes_run(tmp_path: Path) -> None:
    """More microbatches hide the same bubble: compute time is the trace's in every case."""
    path = tmp_path / "t.csv"
    row = "0,64,llama3-70b,10,5,"
    path.write_text(f'{HEADER}a,{row}\nb,{row}"tensor=8,pipeline=4,batch=16,microbatches=16"\n')
    scenario = Scenario(trace=str(path), racks=4, fabric="h100-quantum2-spectrum4", policy="fifo")
    jobs = simulate(scenario).tables["jobs"]
    assert all(50 < run < 60 for run in jobs["run_s"])
    assert [model.partition("@")[0] for model in jobs["model"]] == ["llama3-70b"] * 2


@pytest.mark.parametrize("calibration", ["none", "auto"])
def test_placements_hold_the_order_of_ranks(tmp_path: Path, calibration: str) -> None:
    """The order that was given, or the best one; other jobs have a shape alone."""
    path = tmp_path / "t.csv"
    axes = "tensor=4,pipeline=2"
    path.write_text(
        f'{HEADER}a,0,16,gpt2,10,1,"{axes},order=pipeline-tensor-data"\n'
        f'b,0,16,gpt2,10,1,"{axes}"\nc,0,8,gpt2,10,1,\n'
    )
    scenario = Scenario(
        trace=str(path), racks=2, fabric="h100-quantum2-spectrum4", policy="fifo",
        calibration=calibration,
    )  # fmt: skip
    placements = simulate(scenario).tables["placements"]
    where = dict(zip(placements["job_id"], placements["signature"], strict=True))
    given, found = where["a"], where["b"]
    assert given.endswith("@pipeline-tensor-data")
    best = on_placement(workload(f"gpt2@{axes}"), "8,8", load_fabric(scenario.fabric), {})
    order = best.answer(open_backend("analytical")).estimate.order
    assert found.endswith(f"@{order}")
    assert order.startswith("tensor")
    assert "@" not in where["c"]
    assert communication_split(scenario, "network") is not None


def test_a_model_that_a_mapping_names_has_the_axes_of_its_cell(tmp_path: Path) -> None:
    """Axes were once left out, as the model still had the file's name when cells were read."""
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}b,9,16,Our-LM,10,1,\na,0,16,Our-LM,10,1,tensor=8\n")
    rules = Rules(models={"Our-LM": "llama3-70b"})
    jobs = read_trace(path, rules=rules).jobs
    assert [job.model for job in jobs] == ["llama3-70b@tensor=8", "llama3-70b"]
    path.write_text(f"{HEADER}a,0,16,Our-LM,10,1,tensr=8\n")
    with pytest.raises(TraceError, match=r"t\.csv:2: .*'tensr'"):
        read_trace(path, rules=rules)
