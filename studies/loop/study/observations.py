"""The rows of `results.csv`: one per run of the second week, with what its plan and its run gave.

`results.csv` alone stands between the runs and the page. If you doubt a number on the page, you
find its runs there, and `study runs --every N` repeats a sample of them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from artist.config import Scenario
from artist.results.result import Result
from artist.run import simulate
from artist.warehouse.files import write_plan, write_warehouse
from artist.warehouse.instance import Instance
from artist.warehouse.measured import measured
from artist.warehouse.objective import WarehouseObjective
from artist.warehouse.plan import Held, WarehousePlan, place
from artist.warehouse.read import read_warehouse
from artist.warehouse.state import State
from artist.warehouse.warehouse_schema import PlanOptions, Replicas, Solver
from artist.workload.tenants import Tenant
from studies.common.rows import RowsFile, Runs
from studies.loop.study.plan import Planned, planned
from studies.loop.study.week import HOUR_S, WEEK_H, known, tenants, world, write_cluster, write_week

HERE = Path(__file__).resolve().parent.parent

QUOTA, DAYS = 0.02, 7
"""Of all bytes a day, and days of a plan."""
FILL_H = 24
"""Hours that fill the regions and do not count."""
URGENT_PRIORITIES = (1, 2, 3)
PLACE = ("plan", "policy", "seed")
METRICS = (
    "ratio_max", "ratio_sd", "collocation", "home_bytes", "replica_bytes", "all_bytes",
    *(f"{name}_{priority}" for priority in URGENT_PRIORITIES for name in ("waits", "late")),
    "wait_p95_s", "allocated_share", "copied_bytes", "jobs", "jobs_without_data", "preemptions",
    "candidates_2", "candidates_4", "executing_2",
)  # fmt: skip
COLUMNS = (*PLACE, *METRICS)
WAREHOUSE, CLUSTER = "warehouse", "cluster.yaml"


def row_of(run: Planned) -> dict[str, str]:
    """Make the plan, then run the second week with it."""
    of = world(run.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_warehouse(known(of), folder / WAREHOUSE, overwrite=False)
        write_cluster(of, folder / CLUSTER)
        for week in (1, 2):
            write_week(of, week, folder / f"week{week}.csv")
        quotas = tenants(of)
        plan, before = _plan(run, folder, quotas)
        result = _simulate(run, folder, 2, plan, quotas)
        write_warehouse(of.truth, folder / "truth", overwrite=False)
        truth = read_warehouse(folder / "truth")
        values = _of_plan(plan, before) | _of_run(result, plan) | _by_truth(truth, plan)
    return dict(zip(PLACE, run.place, strict=True)) | {x: f"{values[x]:.10g}" for x in METRICS}


def _plan(
    run: Planned, folder: Path, quotas: Mapping[str, int]
) -> tuple[WarehousePlan, WarehousePlan]:
    """The plan of a row, and the plan that stood before it."""
    warehouse = folder / WAREHOUSE
    v0, v1, v2, again = _first_plans(run.seed)
    if run.plan == "again":
        return again, v2
    if run.plan != "loop":
        return {"V0": v0, "V1": v1, "V2": v2}[run.plan], v0
    _simulate(run, folder, 1, v2, quotas).save(folder / "run")
    as_measured = read_warehouse(warehouse, measured(folder / "run", warehouse))
    return place(as_measured, _options(Replicas.ALL)), v2


@lru_cache(maxsize=1)
def _first_plans(seed: int) -> tuple[WarehousePlan, WarehousePlan, WarehousePlan, WarehousePlan]:
    """V0, V1, V2 and again: the start, homes that move, replicas too, and a week later."""
    with tempfile.TemporaryDirectory() as scratch:
        write_warehouse(known(world(seed)), Path(scratch) / WAREHOUSE, overwrite=False)
        first = read_warehouse(Path(scratch) / WAREHOUSE)
    still = PlanOptions(days=1, quota=1e-15, replicas=Replicas.NONE)  # less than a byte
    v2 = place(first, _options(Replicas.ALL))
    return (
        place(first, still),
        place(first, _options(Replicas.NONE)),
        v2,
        place(replace(first, home=v2.after.home), _options(Replicas.ALL)),
    )


def _options(replicas: Replicas) -> PlanOptions:
    return PlanOptions(quota=QUOTA, days=DAYS, min_gain=1e-3, replicas=replicas)


def _simulate(
    run: Planned, folder: Path, week: int, plan: WarehousePlan, quotas: Mapping[str, int]
) -> Result:
    out = folder / f"plan{week}"
    write_plan(plan, Solver.CLIMB, out, overwrite=True)
    return simulate(
        Scenario(
            cluster=str(folder / CLUSTER),
            data=str(out / "tables.csv"),
            trace=str(folder / f"week{week}.csv"),
            policy=run.policy,
            tenants={name: Tenant(quota=quota) for name, quota in quotas.items()},
            backend="none",
            seed=run.seed,
        )
    )


def _of_plan(plan: WarehousePlan, before: WarehousePlan) -> dict[str, float]:
    """Bytes of the plan that were not where they are before it."""
    size = plan.instance.size
    names = {name: row for row, name in enumerate(before.instance.tables)}
    rows = [names[name] for name in plan.instance.tables]
    new = plan.held.mask() & ~before.held.mask()[rows]
    moved = plan.after.home != before.after.home[rows]
    homes = float((size * (new[np.arange(len(size)), plan.after.home] & moved)).sum())
    return {
        "home_bytes": homes,
        "replica_bytes": float((new * size[:, None]).sum()) - homes,
        "all_bytes": float(size.sum()),
    }


def _by_truth(truth: Instance, plan: WarehousePlan) -> dict[str, float]:
    """Ratios of regions and collocation by all demand, of which the plan may not know."""
    rows = {name: row for row, name in enumerate(plan.instance.tables)}
    order = [rows[name] for name in truth.tables]
    state = State(WarehouseObjective(truth, PlanOptions()), plan.after.home[order])
    held = Held(truth, state.home)
    held.bits = plan.held.bits[order]
    collocated = truth.gpu_h[state.urgent & held.collocated()].sum()
    return {
        "ratio_max": float(state.ratios().max()),
        "ratio_sd": float(state.ratios().std()),
        "collocation": float(collocated) / state.urgent_gpu_h,
    }


def _of_run(result: Result, plan: WarehousePlan) -> dict[str, float]:
    queue = {name: np.array(column) for name, column in result.tables["queue"].items()}
    jobs = {name: np.array(result.tables["jobs"][name]) for name in ("arrival_s", "job_id")}
    at_h = jobs["arrival_s"][queue["job"].astype(int)] / HOUR_S
    counted = (at_h >= FILL_H) & (at_h <= WEEK_H)
    values: dict[str, float] = {}
    for priority in URGENT_PRIORITIES:
        late = queue["late"][counted & (queue["priority"] == priority)]
        values[f"waits_{priority}"], values[f"late_{priority}"] = len(late), float(late.sum())
    urgent = counted & (queue["priority"] <= URGENT_PRIORITIES[-1])
    values["wait_p95_s"] = float(np.percentile(queue["wait_s"][urgent], 95))
    values["allocated_share"] = _allocated(result)
    values["copied_bytes"] = result.summary["data_copied_bytes"]
    values["jobs"] = result.summary["jobs_total"]
    values["jobs_without_data"] = result.summary["data_refused_jobs"]
    values["preemptions"] = result.summary["preemptions"]
    return values | _regions(result, plan)


def _allocated(result: Result) -> float:
    """GPU time held over GPU time, in the hours that count."""
    timeline = result.tables["timeline"]
    time_s, held = np.array(timeline["time_s"]), np.array(timeline["gpus_held"], float)
    used = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(time_s))])
    edges = [FILL_H * HOUR_S, WEEK_H * HOUR_S]
    gpu_s = (edges[1] - edges[0]) * float(result.summary["gpus"])
    return float(np.diff(np.interp(edges, time_s, used))[0]) / gpu_s


def _regions(result: Result, plan: WarehousePlan) -> dict[str, float]:
    """Shares of workloads with this many candidate regions, and of those that recur with more than
    one executing region (Figure 7)."""
    number = {name: row for row, name in enumerate(plan.instance.tables)}
    bits = plan.held.bits
    ran: dict[str, set[str]] = {}
    candidates: dict[str, int] = {}
    use: Mapping[str, Any] = result.tables["data_use"]
    for job, tables, region in zip(use["job_id"], use["tables"], use["region"], strict=True):
        name = job.split("@")[0]
        ran.setdefault(name, set()).add(region)
        held = np.bitwise_and.reduce(bits[[number[table] for table in tables]])
        candidates[name] = int(held).bit_count()
    counts = np.array(list(candidates.values()))
    several = [len(regions) > 1 for regions in ran.values()]
    return {
        "candidates_2": float((counts >= 2).mean()),
        "candidates_4": float((counts >= 4).mean()),
        "executing_2": float(np.mean(several)),
    }


ROWS = RowsFile(HERE / "results.csv", COLUMNS, "loop")
RUNS = Runs(ROWS, PLACE, planned, row_of)
