"""A warehouse with the demand of a run: the fast path reports to the slow path what jobs used.

The run's jobs replace the warehouse's demand with GPUs: the GPU hours that they held, their
priorities and their tables. Analytics stays, because a run does not simulate it. Homes are those of
the run's data file. Without a warehouse, everything is the run's: regions supply their GPUs from
the first arrival to the last, all of one kind, because the tables of a run do not record kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artist.errors import TraceError, shortened
from artist.warehouse.instance import PRIORITIES
from artist.warehouse.read import FILES, read_parquet

ANY_KIND = "gpu"
ROOM = 3
"""A region without a stated storage has room for this many copies of all tables."""
AGAIN = "@"
"""Separator in names of repeated jobs: `NAME@3` is the third run of the job `NAME`."""
_NO_DEMAND: dict[str, Any] = {
    "job": "", "tables": [], "kind": "", "priority": PRIORITIES, "gpu_h": 0.0, "cpu_h": 0.0,
    "application": "",
}  # fmt: skip
"""The columns of demand with their default values."""

Columns = Mapping[str, list[Any]]
Pieces = list[tuple[str, str, int]]
"""Table, partition and size of each row of a run's data file."""


def is_run(folder: Path) -> bool:
    """Whether a folder is a run directory."""
    return (folder / "manifest.json").is_file()


def measured(run: Path, warehouse: Path | None) -> dict[str, Any]:
    """The four tables (Arrow): demand and homes of a run, and the rest of a warehouse.

    Raises:
        TraceError: the run has no data, a file is damaged, or a job's kind of GPUs is unknown.
    """
    base = {} if warehouse is None else _files(warehouse)
    use, pieces = _table(run, "data_use"), _table(run, "data_tables")
    tables = _tables(pieces, base.get("tables", {}))
    regions = base["regions"] if base else _regions(run, use, sum(tables["size_bytes"]))
    known = base.get("demand", {"job": []})
    rows = [*_analytics(known), *_trained(run, use, known, regions)]
    demand = {name: [row[name] for row in rows] for name in _NO_DEMAND}
    return _arrow(base | {"tables": tables, "regions": regions, "demand": demand})


def pieces_of(run: Path) -> Pieces:
    """The rows of the run's data file.

    Raises:
        TraceError: the run has no data.
    """
    table = _table(run, "data_tables")
    return list(zip(table["table"], table["partition"], table["size_bytes"], strict=True))


def _table(run: Path, name: str) -> dict[str, list[Any]]:
    path = run / f"{name}.parquet"
    if not path.is_file():
        raise TraceError(
            f"{run}: is not a run with data (no {path.name}); simulate with --data FILE --out DIR"
        )
    return dict(read_parquet(path).to_pydict())


def _files(warehouse: Path) -> dict[str, dict[str, list[Any]]]:
    paths = {name: warehouse / f"{name}.parquet" for name in FILES}
    there = {name: path for name, path in paths.items() if name != "applications" or path.exists()}
    read = {name: dict(read_parquet(path).to_pydict()) for name, path in there.items()}
    return {"applications": {name: [] for name in ("application", "region", "cpu_h")}} | read


def _arrow(tables: Mapping[str, Mapping[str, list[Any]]]) -> dict[str, Any]:
    import pyarrow as pa

    lists = pa.list_(pa.string())
    types = {"tables": lists, "kinds": lists, "supply_gpu_h": pa.list_(pa.float64())}
    return {
        name: pa.table({key: pa.array(column, types.get(key)) for key, column in columns.items()})
        for name, columns in tables.items()
    }


def _tables(pieces: Columns, base: Columns) -> dict[str, list[Any]]:
    """The run's tables and homes, with partitions added up; then others of the warehouse."""
    size: dict[str, int] = {}
    home: dict[str, str] = {}
    for table, bytes_, regions in zip(
        pieces["table"], pieces["size_bytes"], pieces["regions"], strict=True
    ):
        size[table] = size.get(table, 0) + bytes_
        home[table] = regions[0]
    others = [base.get(name, []) for name in ("table", "size_bytes", "home")]
    for table, bytes_, region in zip(*others, strict=True):
        size.setdefault(table, bytes_)
        home.setdefault(table, region)
    return {"table": list(size), "size_bytes": list(size.values()), "home": list(home.values())}


def _regions(run: Path, use: Columns, all_bytes: int) -> dict[str, list[Any]]:
    """The run's regions. They supply all of their GPUs from the first to the last arrival."""
    there = _table(run, "data_regions")
    arrivals = use["arrival_s"]
    hours = (max(arrivals) - min(arrivals)) / 3600 if arrivals else 0.0
    if not hours > 0:
        raise TraceError(
            f"{run}: all jobs with tables arrive at once, so there is no time of supply; measure a "
            "longer run, or give a warehouse and --measured RUN"
        )
    stated = there["storage_bytes"]
    return {
        "region": there["region"],
        "storage_bytes": [ROOM * all_bytes if x is None else x for x in stated],
        "kinds": [[ANY_KIND] for _ in stated],
        "supply_gpu_h": [[gpus * hours] for gpus in there["region_gpus"]],
    }


def _analytics(base: Columns) -> list[dict[str, Any]]:
    """The warehouse's rows of demand without GPUs."""
    rows = (dict(zip(base, cells, strict=True)) for cells in zip(*base.values(), strict=True))
    analytics = (row for row in rows if not row.get("kind"))
    return [
        {
            name: default if row.get(name) is None else row[name]
            for name, default in _NO_DEMAND.items()
        }
        for row in analytics
    ]


def _trained(run: Path, use: Columns, base: Columns, regions: Columns) -> list[dict[str, Any]]:
    """The demand of the run: a row for all jobs with the same tables, priority and kind of GPUs."""
    kinds = list(dict.fromkeys(kind for kinds in regions["kinds"] for kind in kinds))
    known = dict(zip(base["job"], base["kind"], strict=True)) if "kind" in base else {}
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for job, tables, priority, gpu_h in zip(
        use["job_id"], use["tables"], use["priority"], use["gpu_h"], strict=True
    ):
        kind = kinds[0] if len(kinds) == 1 else known.get(job) or known.get(job.split(AGAIN)[0])
        if not kind:
            raise TraceError(
                f"{run}: job {shortened(job)} may use GPUs of any kind, but regions have "
                f"{', '.join(kinds)}; name jobs as rows of demand with a kind do (NAME or "
                f"NAME{AGAIN}3)"
            )
        names = tuple(dict.fromkeys(name.split("/")[0] for name in tables))
        row = {"job": job, "tables": list(names), "kind": kind, "priority": priority or PRIORITIES}
        row = rows.setdefault((names, row["priority"], kind), _NO_DEMAND | row)
        row["gpu_h"] += gpu_h
    return list(rows.values())
