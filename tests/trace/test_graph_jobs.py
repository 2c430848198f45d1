"""Do jobs run whose iteration is a folder of Chakra execution traces?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from graph_traces import encode_program

from artist.astra.files.chakra_folder import chakra_workload
from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import BackendError, ConfigError, TraceError
from artist.estimates.query_from_text import on_placement
from artist.experiments.experiment import Experiment
from artist.experiments.sweep import sweep
from artist.registry import UnknownNameError
from artist.run import open_backend, simulate
from artist.workload.division.job_parallelism import JobParallelism
from artist.workload.graph import GraphNode, NodeAction
from artist.workload.layers import Collective
from artist.workload.models import workload

FABRIC = "h100-quantum2-spectrum4"


def written(folder: Path) -> Path:
    """A step of four GPUs: compute, then reduce in pairs that lie apart."""
    folder.mkdir()
    for gpu in range(4):
        reduced = GraphNode(
            NodeAction.COLLECTIVE, (0,), 0, Collective.ALL_REDUCE, 10_000_000, 1 + gpu % 2
        )
        nodes = (GraphNode(NodeAction.COMPUTE, (), 700), reduced)
        (folder / f"llama.{gpu}.et").write_bytes(encode_program(nodes))
    (folder / "groups.json").write_text(json.dumps({"1": [0, 2], "2": [1, 3]}))
    return folder


def jobs(folder: Path, *, gpus: int = 4, **settings: Any) -> Scenario:
    trace = folder.with_name("t.csv")
    rows = f"a,0,{gpus},chakra:{folder},10,1\nb,0,{gpus},gpt2,10,1\n"
    trace.write_text(f"job_id,arrival_s,gpus,model,iterations,compute_s\n{rows}")
    return Scenario(trace=str(trace), policy="fifo", fabric=FABRIC, **settings)


@pytest.mark.parametrize("machines", [[4, 4], [3, 1, 4]])
def test_a_job_takes_as_long_as_its_graph_on_its_placement(
    tmp_path: Path, machines: list[int]
) -> None:
    folder = written(tmp_path / "llama")
    tables = simulate(jobs(folder, tree=[machines])).tables
    where = dict(
        zip(tables["placements"]["job_id"], tables["placements"]["signature"], strict=True)
    )
    question = on_placement(chakra_workload(folder), where["a"], load_fabric(FABRIC), {})
    ratio = question.answer(open_backend("analytical")).estimate.comm_ratio
    took = dict(zip(tables["jobs"]["job_id"], tables["jobs"]["run_s"], strict=True))
    assert ratio > 0
    assert took["a"] == pytest.approx(10 * (1 + ratio), abs=1e-6)


def test_a_job_that_keeps_its_bytes_waits_as_long_for_them_as_its_traces(tmp_path: Path) -> None:
    """Its step computes for 1 s, those of the traces .7 ms: all of it sends after computing."""
    folder = written(tmp_path / "llama")
    ran = simulate(jobs(folder, racks=1, communication="absolute")).tables
    where, comm_s = ran["placements"]["signature"], ran["jobs"]["comm_s"]  # of a, then of b
    question = on_placement(chakra_workload(folder), where[0], load_fabric(FABRIC), {})
    exposed_ns = question.answer(open_backend("analytical")).estimate.exposed_comm_ns
    assert comm_s[0] == pytest.approx(10 * exposed_ns / 1e9, rel=1e-3)


def test_what_traces_send_on_shared_links_is_not_known(tmp_path: Path) -> None:
    folder = written(tmp_path / "llama")
    shared = jobs(folder, racks=4, machines_per_rack=2, gpus_per_machine=1, contention="mean")
    shared = shared.model_copy(update={"fabric": "leaf-spine"})
    with pytest.raises(BackendError, match=r"what the traces of 'chakra:.* leave that job out"):
        simulate(shared)


def test_a_job_needs_as_many_gpus_as_there_are_traces(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="graph 'llama' has 4 GPUs, but the placement has 8"):
        simulate(jobs(written(tmp_path / "llama"), gpus=8, racks=2))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere: no such folder"):
        simulate(jobs(tmp_path / "nowhere", racks=1))


def test_axes_of_a_job_with_traces_are_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "llama")
    scenario = jobs(folder, racks=1)
    with pytest.raises(TraceError, match=r"t\.csv:2: job 'a': parallelism of the scenario for mod"):
        simulate(scenario.model_copy(update={"parallelism": JobParallelism(tensor=2)}))
    trace = Path(scenario.trace)
    first, a, b = trace.read_text().splitlines()
    trace.write_text("\n".join([f"{first},parallelism", f"{a},tensor=2", f"{b},", ""]))
    with pytest.raises(TraceError, match=r"t\.csv:2: parallelism 'tensor=2' for model 'chakra:"):
        simulate(scenario)
    with pytest.raises(TraceError, match=r"t\.csv:2: job 'a': .*llama@tensor=2: no such folder"):
        simulate(jobs(tmp_path / "llama@tensor=2", racks=1))


def test_another_folder_is_another_input(tmp_path: Path) -> None:
    """A changed, added or missing file; the same content in another place; nothing read."""
    folder = written(tmp_path / "llama")
    scenario = jobs(folder, racks=1)
    model = f"chakra:{folder}"
    then = simulate(scenario).inputs
    assert simulate(scenario).inputs == then
    assert model not in simulate(scenario.model_copy(update={"backend": "none"})).inputs
    trace = folder / "llama.3.et"
    before = trace.read_bytes()
    trace.write_bytes((folder / "llama.0.et").read_bytes())
    now = simulate(scenario).inputs
    assert {key for key in then if then[key] != now[key]} == {model}
    trace.write_bytes(before)
    (folder / "groups.json").write_text(json.dumps({"1": [0, 2], "2": [3, 1]}))
    assert simulate(scenario).inputs[model] not in (then[model], now[model])


def test_a_sweep_is_not_resumed_with_another_folder(tmp_path: Path) -> None:
    folder = written(tmp_path / "llama")
    base = jobs(folder, racks=1).model_dump(exclude_unset=True, exclude={"policy"})
    grid = Experiment(name="graphs", version=1, base=base, grid={"policy": ["fifo"]})
    out = tmp_path / "runs"
    sweep(grid, out, [], workers=1)
    sweep(grid, out, [], workers=1, resume=True)
    (folder / "groups.json").write_text(json.dumps({"1": [0, 2], "2": [3, 1]}))
    with pytest.raises(ConfigError, match=f"read another chakra:{folder} than there is now"):
        sweep(grid, out, [], workers=1, resume=True)
    shutil.rmtree(folder)
    with pytest.raises(ConfigError, match=f"inputs as they are now .{folder}: no such folder"):
        sweep(grid, out, [], workers=1, resume=True)


def test_the_catalogue_knows_no_folders() -> None:
    with pytest.raises(UnknownNameError, match="--chakra DIR"):
        workload("chakra:somewhere")
