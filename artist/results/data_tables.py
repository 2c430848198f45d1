"""Tables of a run with data: which job used which tables where, the tables, and the regions.

`artist place-data RUN` plans from them, so a run directory needs none of its input files for that.
If the run's data file is part of a plan of `artist place-data`, the plan is kept with the run.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from artist.cluster.tree import ClusterTree
from artist.data.data_of_run import Data
from artist.engine.rows import Rows
from artist.errors import TraceError
from artist.results.terms.columns import TABLES, Table
from artist.units import TICKS_PER_S
from artist.warehouse.files import is_plan
from artist.workload.job import Job

_TICKS_PER_HOUR = TICKS_PER_S * 3600
_BOTH = ("ratio_max", "ratio_sd", "collocation", "at_home", "objective")
_FILES = {"data_balance": "balance.csv", "data_days": "days.csv", "data_moves": "moves.csv"}


def data_tables(rows: Rows, tree: ClusterTree, jobs: Sequence[Job], data: Data) -> dict[str, Table]:
    """The tables `data_use`, `data_tables` and `data_regions`."""
    return {
        "data_use": _use(rows, jobs, data),
        "data_tables": _tables(data),
        "data_regions": _regions(tree, data),
    }


def _use(rows: Rows, jobs: Sequence[Job], data: Data) -> Table:
    """A row per job with tables and region that it ran in, by arrival of jobs."""
    ticks: dict[tuple[int, int], int] = {}
    for row in rows.placements:
        if not jobs[row.handle].tables:
            continue
        placed = data.store.gpus_by_region(row.placement)
        for region, gpus in placed.items():
            key = row.handle, region
            ticks[key] = ticks.get(key, 0) + row.share(gpus * (row.end - row.start))
    order = sorted(ticks)
    names = data.store.catalogue.regions
    return {
        "job_id": [jobs[handle].id for handle, _ in order],
        "tables": [list(jobs[handle].tables) for handle, _ in order],
        "priority": [jobs[handle].priority or 0 for handle, _ in order],
        "arrival_s": np.array([jobs[handle].arrival_s for handle, _ in order], np.float64),
        "region": [names[region] for _, region in order],
        "gpu_h": np.array([ticks[key] / _TICKS_PER_HOUR for key in order], np.float64),
    }


def _tables(data: Data) -> Table:
    catalogue = data.store.catalogue
    return {
        "table": [x.table for x in catalogue.pieces],
        "partition": [x.partition for x in catalogue.pieces],
        "size_bytes": [x.size_bytes for x in catalogue.pieces],
        "regions": [[catalogue.regions[r] for r in x.regions] for x in catalogue.pieces],
    }


def _regions(tree: ClusterTree, data: Data) -> Table:
    catalogue = data.store.catalogue
    return {
        "region": list(catalogue.regions),
        "region_gpus": list(tree.levels[data.store.level].gpus),
        "storage_bytes": list(catalogue.storage_bytes),
    }


def plan_tables(data: str | None) -> dict[str, Table]:
    """The plan's numbers, balance, days and moves; none if the data file is part of no plan.

    Raises:
        TraceError: a file of the plan is damaged.
    """
    if data is None or Path(data).name != "tables.csv" or not is_plan(Path(data).parent):
        return {}
    folder = Path(data).parent
    try:
        facts = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        tables = {"data_plan": _plan_numbers(facts)}
        for name, file in _FILES.items():
            with (folder / file).open(encoding="utf-8", newline="") as stream:
                tables[name] = _columns(name, csv.DictReader(stream))
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise TraceError(
            f"{folder}: is not a whole plan ({cause}); make it again with artist place-data"
        ) from cause
    return tables


def _plan_numbers(facts: dict[str, Any]) -> Table:
    """Ratios, collocation and the terms of the objective, before and after."""
    values = {name: (facts[f"{name}_before"], facts[f"{name}_after"]) for name in _BOTH}
    before, after = facts["terms_before"], facts["terms_after"]
    values |= {f"term_{name}": (before[name], after[name]) for name in before}
    return {
        "number": list(values),
        "before": np.array([float(x) for x, _ in values.values()]),
        "after": np.array([float(x) for _, x in values.values()]),
    }


def _columns(table: str, rows: csv.DictReader[str]) -> Table:
    read = list(rows)
    types = {term.name: term.type for term in TABLES[table]}
    return {
        name: _column(types[name], [row[name] for row in read]) for name in rows.fieldnames or ()
    }


def _column(type_: str, cells: list[str]) -> Any:
    if type_ == "text":
        return cells
    if type_ == "int64":
        return np.array([int(cell) for cell in cells], np.int64)
    return np.array([float(cell) if cell else np.nan for cell in cells], np.float64)
