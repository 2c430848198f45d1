"""Does the next plan get the demand that a run measured?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from artist.config import Scenario
from artist.errors import TraceError
from artist.results.terms.columns import TABLES
from artist.run import simulate
from artist.warehouse.files import write_plan, write_warehouse
from artist.warehouse.measured import measured, pieces_of
from artist.warehouse.plan import place
from artist.warehouse.read import read_warehouse
from artist.warehouse.warehouse_schema import PlanOptions, Solver

DATA = "table,partition,size,regions\nads,,2TB,east west\nuser,a,1TB,west\nuser,b,2TB,west north\n"
TRACE = (
    "job_id,arrival_s,gpus,model,iterations,compute_s,tables,priority\n"
    "one,0,8,bert-large,3600,1.0,ads,1\n"
    "one@2,3600,16,bert-large,3600,1.0,ads,1\n"
    "two,7200,8,bert-large,1800,1.0,user/a user/b,\n"
    "none,7200,8,bert-large,1800,1.0,,3\n"
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """8 and 16 GPU hours for `ads` with priority 1, 4 for both partitions of `user`."""
    (tmp_path / "data.csv").write_text(DATA)
    (tmp_path / "trace.csv").write_text(TRACE)
    simulate(
        Scenario(
            cluster="three-regions",
            data=str(tmp_path / "data.csv"),
            trace=str(tmp_path / "trace.csv"),
            policy="mast",
            backend="none",
        )
    ).save(tmp_path / "run")
    return tmp_path / "run"


def test_demand_is_what_jobs_held(run: Path) -> None:
    x = read_warehouse(run, measured(run, None))
    assert [list(x.reads.of(job)) for job in range(2)] == [[0], [1]]
    assert x.gpu_h.tolist() == pytest.approx([24.0, 4.0])
    assert (x.priority + 1).tolist() == [1, 7]
    assert (list(x.tables), x.size.tolist()) == (["ads", "user"], [2 * 10**12, 3 * 10**12])
    assert [x.regions[home] for home in x.home] == ["east", "west"]


def test_regions_supply_their_gpus_between_the_first_and_the_last_arrival(run: Path) -> None:
    x = read_warehouse(run, measured(run, None))
    assert x.supply[:, 0].tolist() == pytest.approx([96 * 2, 64 * 2, 32 * 2])
    assert x.storage.tolist() == [400 * 10**12, 200 * 10**12, 200 * 10**12]


def base(tmp_path: Path, kinds: list[list[str]]) -> Path:
    write_warehouse(
        {
            "tables": {"table": ["ads", "old"], "size_bytes": [1, 5], "home": ["north", "north"]},
            "regions": {
                "region": ["east", "west", "north"],
                "storage_bytes": [10**13] * 3,
                "kinds": kinds,
                "supply_gpu_h": [[100.0] * len(x) for x in kinds],
            },
            "demand": {
                "job": ["one", "gone", "report"],
                "kind": ["h100", "a100", ""],
                "gpu_h": [1.0, 2.0, 0.0],
                "cpu_h": [0.0, 0.0, 9.0],
                "tables": [["ads"], ["old"], ["old"]],
            },
        },
        tmp_path / "base",
        overwrite=False,
    )
    return tmp_path / "base"


def test_a_warehouse_keeps_what_no_run_measures(run: Path, tmp_path: Path) -> None:
    folder = base(tmp_path, [["h100"], ["h100"], ["h100"]])
    x = read_warehouse(folder, measured(run, folder))
    assert list(x.jobs) == ["report", "one", "two"]
    assert x.cpu_h.tolist() == [9.0, 0.0, 0.0]
    assert x.supply.sum() == 300.0
    homes = {table: x.regions[home] for table, home in zip(x.tables, x.home, strict=True)}
    assert homes == {"ads": "east", "user": "west", "old": "north"}


def test_kinds_are_those_of_the_job_that_recurs(run: Path, tmp_path: Path) -> None:
    folder = base(tmp_path, [["h100", "a100"], ["h100"], ["a100"]])
    with pytest.raises(TraceError, match=r"job 'two' may use GPUs of any kind, .* h100, a100"):
        measured(run, folder)
    use = pq.read_table(run / "data_use.parquet")
    pq.write_table(use.filter(pa.compute.less(use["gpu_h"], 20)).slice(0, 2), run / "use.parquet")
    (run / "use.parquet").replace(run / "data_use.parquet")
    x = read_warehouse(folder, measured(run, folder))
    assert [x.kinds[kind] for kind in x.kind[1:]] == ["h100"]


def test_the_next_run_reads_the_plan_with_its_partitions(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan"
    plan = place(read_warehouse(run, measured(run, None)), PlanOptions())
    write_plan(plan, Solver.CLIMB, out, overwrite=False, pieces=pieces_of(run))
    with (out / "tables.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(x["table"], x["partition"]) for x in rows] == [
        ("ads", ""), ("user", "a"), ("user", "b"),
    ]  # fmt: skip
    manifest = json.loads((run / "manifest.json").read_text())["scenario"]
    again = simulate(Scenario.model_validate(manifest | {"data": str(out / "tables.csv")}))
    assert again.summary["jobs_finished"] == 4
    for name in ("use", "tables", "regions", "plan", "balance", "days", "moves"):
        told = [term.name for term in TABLES[f"data_{name}"]]
        assert list(again.tables[f"data_{name}"]) == told


def test_a_run_without_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "manifest.json").write_text("{}")
    with pytest.raises(TraceError, match=r"is not a run with data \(no data_use.parquet\)"):
        measured(tmp_path / "run", None)
