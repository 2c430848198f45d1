"""A warehouse whose demand a run measured: so the fast path tells the slow path what jobs used.

The run's jobs take the place of the warehouse's demand with GPUs: what they held of GPU hours, of
which priority, for which tables. Analytics, of which a run knows nothing, stays. Homes are those of
the run's data file. Without a warehouse, all is the run's: regions supply their GPUs from the first
arrival to the last, one kind of them, since runs do not tell kinds apart.
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
"""Where a region states no storage, it has room for all tables so often: homes and replicas."""
AGAIN = "@"
"""A job `NAME@3` is the third run of the job `NAME`."""

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
    tables = _tables(pieces, base)
    regions = base["regions"] if base else _regions(run, use, sum(tables["size_bytes"]))
    demand = _demand(run, use, base.get("demand"), _kinds(regions))
    made = {"tables": tables, "regions": regions, "demand": demand}
    return _arrow(made | ({"applications": base["applications"]} if base else {}))


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
            f"{run}: is no run with data (no {path.name}); simulate with --data FILE --out DIR"
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


def _tables(pieces: Mapping[str, list[Any]], base: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Those of the run with their homes there, partitions together; then others of the base."""
    size: dict[str, int] = {}
    home: dict[str, str] = {}
    for table, bytes_, regions in zip(
        pieces["table"], pieces["size_bytes"], pieces["regions"], strict=True
    ):
        size[table] = size.get(table, 0) + bytes_
        home[table] = regions[0]
    for table, bytes_, region in zip(*_of(base, "table", "size_bytes", "home"), strict=True):
        size.setdefault(table, bytes_)
        home.setdefault(table, region)
    return {"table": list(size), "size_bytes": list(size.values()), "home": list(home.values())}


def _of(base: Mapping[str, Any], *columns: str) -> list[list[Any]]:
    return [base["tables"][name] if base else [] for name in columns]


def _regions(run: Path, use: Mapping[str, list[Any]], all_bytes: int) -> dict[str, list[Any]]:
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


def _kinds(regions: Mapping[str, list[Any]]) -> list[str]:
    return list(dict.fromkeys(kind for kinds in regions["kinds"] for kind in kinds))


def _demand(
    run: Path,
    use: Mapping[str, list[Any]],
    base: Mapping[str, list[Any]] | None,
    kinds: list[str],
) -> dict[str, list[Any]]:
    """Jobs that read the same tables with the same priority and kind are one row."""
    rows = _analytics(base)
    known = dict(zip(base["job"], base["kind"], strict=True)) if base and "kind" in base else {}
    groups: dict[tuple[Any, ...], tuple[str, float]] = {}
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
        key = names, priority or PRIORITIES, kind
        first, hours = groups.get(key, (job, 0.0))
        groups[key] = first, hours + gpu_h
    for (names, priority, kind), (job, hours) in groups.items():
        row = {"job": job, "tables": list(names), "kind": kind, "priority": priority}
        row |= {"gpu_h": hours, "cpu_h": 0.0, "application": ""}
        for column, cells in rows.items():
            cells.append(row[column])
    return rows


def _analytics(base: Mapping[str, list[Any]] | None) -> dict[str, list[Any]]:
    """The rows of demand without GPUs."""
    columns = {"job": "", "tables": [], "kind": "", "priority": PRIORITIES, "gpu_h": 0.0}
    columns |= {"cpu_h": 0.0, "application": ""}
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    if base is None:
        return rows
    count = len(base["job"])
    kinds = base.get("kind", [""] * count)
    for index in (x for x in range(count) if not kinds[x]):
        for name, default in columns.items():
            value = base[name][index] if name in base else default
            rows[name].append(default if value is None else value)
    return rows
