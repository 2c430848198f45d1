"""Are bad warehouses refused in one sentence, and are plans read by runs?"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from artist.api import Scenario, simulate
from artist.errors import ConfigError, TraceError
from artist.warehouse.files import write_plan, write_warehouse
from artist.warehouse.plan import WarehousePlan, balance, place
from artist.warehouse.read import read_warehouse
from artist.warehouse.warehouse_schema import PlanOptions, Replicas, Solver, Warehouse

Columns = dict[str, dict[str, Any]]


def tiny() -> Columns:
    """Three regions of the cluster `three-regions`, four tables, four jobs; east is overloaded."""
    return {
        "tables": {
            "table": ["ads", "user", "logs", "news"],
            "size_bytes": [10**12, 2 * 10**12, 10**11, 10**10],
            "home": ["east", "east", "east", "west"],
        },
        "regions": {
            "region": ["east", "west", "north"],
            "storage_bytes": [4 * 10**14, 2 * 10**14, 2 * 10**14],
            "kinds": [["h100"], ["h100", "a100"], ["a100"]],
            "supply_gpu_h": [[1000.0], [1000.0, 500.0], [1000.0]],
        },
        "demand": {
            "job": ["one", "two", "three", "four"],
            "application": ["a", "a", "b", "b"],
            "kind": ["h100", "h100", "a100", ""],
            "priority": [1, 2, 1, 7],
            "gpu_h": [900.0, 800.0, 100.0, 0.0],
            "cpu_h": [0.0, 0.0, 0.0, 10.0],
            "tables": [["ads"], ["user"], ["logs", "ads"], ["news", "logs"]],
        },
        "applications": {"application": ["b"], "region": ["east"], "cpu_h": [100.0]},
    }


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Columns], Path]:
    def write(columns: Columns) -> Path:
        write_warehouse(columns, tmp_path / "warehouse", overwrite=True)
        return tmp_path / "warehouse"

    return write


WRONG: list[tuple[str, str, Any, str]] = [
    ("regions", "supply_gpu_h", [[1000.0], [0.0, 0.0], [1000.0]],
     r"regions\.parquet: row 2: region 'west' has a supply of 0 GPU hours, .*; give it GPU"),
    ("tables", "size_bytes", [10**12, 10**15, 10**11, 10**10],
     r"tables\.parquet: row 2: table 'user' has 1 PB, more than the storage of every region, at "
     r"most 400 TB; split the table"),
    ("demand", "tables", [["ads"], ["usr"], ["logs"], ["news"]],
     r"demand\.parquet: row 2: job 'two' reads table 'usr', which tables\.parquet does not have"),
    ("demand", "tables", [["ads"], ["user"], [], ["news"]], r"row 3: job 'three' reads no table"),
    ("demand", "gpu_h", [1.0, -2.0, 1.0, 1.0], r"row 2: gpu_h is -2, expected hours"),
    ("demand", "priority", [1, 9, 1, 1], r"row 2: priority is 9, expected 1 to 7"),
    ("tables", "home", ["east", "eats", "west", "west"], r"row 2: home 'eats' is unknown: did you"),
    ("tables", "table", ["ads", "ads", "logs", "news"], r"row 2: table 'ads' is repeated"),
    ("demand", "colour", ["x"] * 4, r"unknown or repeated column 'colour'"),
    ("demand", "kind", ["h100", "b200", "", ""], r"row 2: kind 'b200' is unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "column", "values", "message"), WRONG)
def test_a_wrong_row_ends_in_one_sentence_with_file_row_value_and_remedy(
    written: Callable[[Columns], Path], file: str, column: str, values: Any, message: str
) -> None:
    columns = tiny()
    columns[file][column] = values
    with pytest.raises(TraceError, match=message):
        read_warehouse(written(columns))


def test_a_missing_file_or_column_is_named(written: Callable[[Columns], Path]) -> None:
    columns = tiny()
    del columns["tables"]["home"]
    folder = written(columns)
    with pytest.raises(TraceError, match=r"tables\.parquet: column 'home' is missing"):
        read_warehouse(folder)
    (folder / "tables.parquet").unlink()
    with pytest.raises(TraceError, match=r"tables\.parquet: cannot be read"):
        read_warehouse(folder)
    with pytest.raises(ConfigError, match="is not a folder"):
        read_warehouse(folder / "nowhere")


def planned(folder: Path, out: Path, **options: Any) -> WarehousePlan:
    plan = place(read_warehouse(folder), PlanOptions(**options))
    write_plan(plan, Solver.CLIMB, out, overwrite=True)
    return plan


@pytest.mark.parametrize("policy", ["mast", "federated"])
def test_the_plan_is_a_data_file_of_runs(
    written: Callable[[Columns], Path], tmp_path: Path, policy: str
) -> None:
    plan = planned(written(tiny()), tmp_path / "plan", replicas=Replicas.NONE)
    home = dict(zip(plan.instance.tables, plan.after.home.tolist(), strict=True))
    trace = tmp_path / "jobs.csv"
    trace.write_text(
        "job_id,arrival_s,gpus,model,iterations,compute_s,tables,tenant,priority\n"
        "one,0,8,bert-large,60,1.0,ads,t,1\n"
        "two,0,8,bert-large,60,1.0,user,t,1\n"
    )
    run = simulate(
        Scenario(
            cluster="three-regions",
            data=str(tmp_path / "plan" / "tables.csv"),
            trace=str(trace),
            policy=policy,
            backend="none",
        )
    )
    assert run.summary["data_copies"] == 0
    assert run.summary["makespan_s"] == 60
    # One of the two tables left the overloaded region, and its job follows it without a copy.
    assert {plan.instance.regions[home[table]] for table in ("ads", "user")} == {"east", "west"}


def test_the_files_of_a_plan_agree(written: Callable[[Columns], Path], tmp_path: Path) -> None:
    plan = planned(written(tiny()), tmp_path / "plan")
    moves, days, tables = (
        list(csv.DictReader((tmp_path / "plan" / name).read_text().splitlines()))
        for name in ("moves.csv", "days.csv", "tables.csv")
    )
    assert [move["table"] for move in moves] == [
        plan.instance.tables[move.table] for move in plan.climb.moves
    ]
    moved_bytes = sum(int(move["size_bytes"]) for move in moves)
    assert sum(int(day["moved_bytes"]) for day in days) == moved_bytes
    facts = json.loads((tmp_path / "plan" / "plan.json").read_text())
    assert facts["objective_after"] == pytest.approx(sum(facts["terms_after"].values()))
    held = {row["table"]: row["regions"].split() for row in tables}
    assert all(len(regions) >= 2 for regions in held.values())  # disaster recovery
    # `three` reads `ads` and wants a100, which the home of `ads` may lack.
    both = set(held["ads"]) & set(held["logs"])
    assert both & {"west", "north"}
    assert facts["collocation_after"] == 1.0


def test_balance_is_demand_over_supply_by_region_and_kind(
    written: Callable[[Columns], Path],
) -> None:
    plan = place(read_warehouse(written(tiny())), PlanOptions())
    rows = balance(plan)
    east = rows["region"].index("east")
    assert (rows["kind"][east], rows["supply_gpu_h"][east]) == ("h100", 1000.0)
    assert rows["urgent_over_supply_before"][east] == pytest.approx(1.7)
    # By region all kinds count, also those that it lacks: `three` wants an a100.
    assert plan.facts()["ratio_max_before"] == pytest.approx(1.8)


def test_the_schema_has_the_columns_of_the_four_files(written: Callable[[Columns], Path]) -> None:
    folder = written(tiny())
    parts = Warehouse.model_json_schema()
    for name in ("tables", "regions", "demand", "applications"):
        reference = parts["properties"][name]["items"]["$ref"].rpartition("/")[2]
        columns = pq.read_schema(folder / f"{name}.parquet").names
        assert set(columns) == set(parts["$defs"][reference]["properties"])
