"""Tables of a run with data: which job used which tables where, the tables, and the regions.

`artist place-data RUN` plans from them, so a run directory needs none of its input files for that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from artist.cluster.tree import ClusterTree
from artist.data.data import Data
from artist.data.placed import gpus_by_region
from artist.engine.rows import Rows
from artist.results.metrics import Table
from artist.units import TICKS_PER_S
from artist.workload.job import Job


def told_of_data(
    rows: Rows, tree: ClusterTree, jobs: Sequence[Job], data: Data
) -> dict[str, Table]:
    """The tables `data_use`, `data_tables` and `data_regions`."""
    return {
        "data_use": _use(rows, tree, jobs, data),
        "data_tables": _tables(data),
        "data_regions": _regions(tree, data),
    }


def _use(rows: Rows, tree: ClusterTree, jobs: Sequence[Job], data: Data) -> Table:
    """A row per job with tables and region that it ran in, by arrival of jobs."""
    ticks: dict[tuple[int, int], int] = {}
    for row in rows.placements:
        if not jobs[row.handle].tables:
            continue
        placed = gpus_by_region(tree, data.region_level, row.placement)
        for region, gpus in placed.items():
            key = row.handle, region
            ticks[key] = ticks.get(key, 0) + gpus * (row.end - row.start)
    order = sorted(ticks)
    names = data.store.catalogue.regions
    return {
        "job_id": [jobs[handle].id for handle, _ in order],
        "tables": [list(jobs[handle].tables) for handle, _ in order],
        "priority": [jobs[handle].priority or 0 for handle, _ in order],
        "arrival_s": np.array([jobs[handle].arrival_s for handle, _ in order], np.float64),
        "region": [names[region] for _, region in order],
        "gpu_h": np.array([ticks[key] / (TICKS_PER_S * 3600) for key in order], np.float64),
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
        "region_gpus": list(tree.levels[data.region_level].gpus),
        "storage_bytes": list(catalogue.storage_bytes),
    }
