"""Writes a plan as a folder that a person can review, and a warehouse as its four files.

| file | what |
|---|---|
| `tables.csv` | a data file (`artist sim --data`): every table, its home first, then its replicas |
| `moves.csv` | the tables that move, in order: day, from, to, bytes, gain |
| `balance.csv` | demand over supply by region and kind, before and after |
| `days.csv` | bytes moved by day, and the objective and the ratios of regions then |
| `plan.json` | the chief numbers, the terms of the objective, the options |
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.io.own_folders import OwnFolder, json_with
from artist.io.writing import whole_folder
from artist.warehouse.measured import Pieces
from artist.warehouse.plan import WarehousePlan, balance
from artist.warehouse.warehouse_schema import Solver

MARK = "plan.json"
_TABLES = ("table", "size", "regions")
_PIECES = ("table", "partition", "size", "regions")
_MOVES = ("day", "table", "from", "to", "size_bytes", "gain")
_DAYS = ("day", "moved_bytes", "objective", "ratio_max", "ratio_sd")


def is_plan(folder: Path) -> bool:
    """Whether a folder holds a plan and its tables, perhaps among other files."""
    return (folder / MARK).is_file() and (folder / "tables.csv").is_file()


PLAN = OwnFolder(
    "plan",
    re.compile(r"(tables|moves|balance|days)\.csv|plan\.json"),
    MARK,
    json_with("terms_before", "terms_after", "solver"),
)


def _is_table_of_tables(path: Path) -> bool:
    """Whether a Parquet file is the `tables` of a warehouse."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return {"table", "size_bytes", "home"} <= {*pq.read_schema(path.absolute()).names}
    except (OSError, pa.ArrowException):
        return False


WAREHOUSE = OwnFolder(
    "warehouse",
    re.compile(r"(tables|regions|demand|applications)\.parquet"),
    "tables.parquet",
    _is_table_of_tables,
)


def write_plan(
    plan: WarehousePlan, solver: Solver, out: Path, *, overwrite: bool, pieces: Pieces | None = None
) -> None:
    """Write the folder. `pieces` are the partitions of the tables, if there are any.

    Raises:
        ConfigError: it cannot be written.
    """
    with whole_folder(out, overwrite=overwrite) as folder:
        if pieces is None:
            _csv(folder / "tables.csv", _TABLES, _tables(plan))
        else:
            _csv(folder / "tables.csv", _PIECES, _in_pieces(plan, pieces))
        _csv(folder / "moves.csv", _MOVES, _moves(plan))
        even = balance(plan)
        _csv(folder / "balance.csv", tuple(even), zip(*even.values(), strict=True))
        _csv(folder / "days.csv", _DAYS, _days(plan))
        text = json.dumps(details(plan, solver), indent=2)
        (folder / MARK).write_text(f"{text}\n", encoding="utf-8")


def details(plan: WarehousePlan, solver: Solver) -> dict[str, Any]:
    """The content of `plan.json`."""
    return {
        **plan.facts(),
        "at_home_before": plan.before.at_home,
        "at_home_after": plan.after.at_home,
        "terms_before": plan.before.terms,
        "terms_after": plan.after.terms,
        "replica_bytes_share": plan.replica_share(),
        "moves": len(plan.climb.moves),
        "days": len(plan.climb.day_bytes),
        "ended": plan.climb.ended,
        "solver": solver.value,
        "options": plan.options.model_dump(mode="json"),
    }


def _tables(plan: WarehousePlan) -> Iterable[Sequence[Any]]:
    regions = plan.instance.regions
    sizes, homes = plan.instance.size.tolist(), plan.after.home.tolist()
    texts: dict[tuple[int, int], str] = {}
    bits = plan.held.bits.tolist()
    for name, size, home, held in zip(plan.instance.tables, sizes, homes, bits, strict=True):
        if (home, held) not in texts:
            others = [r for r in range(len(regions)) if held >> r & 1 and r != home]
            texts[home, held] = " ".join(regions[r] for r in [home, *others])
        yield name, size, texts[home, held]


def _in_pieces(plan: WarehousePlan, pieces: Pieces) -> Iterable[Sequence[Any]]:
    """A row for each partition, in the region of its table; then tables without partitions."""
    rows = {name: (name, "", size, regions) for name, size, regions in _tables(plan)}
    regions = {name: row[3] for name, row in rows.items()}
    for table, partition, size in pieces:
        rows.pop(table, None)
        yield table, partition, size, regions[table]
    yield from rows.values()


def _moves(plan: WarehousePlan) -> Iterable[Sequence[Any]]:
    tables, regions = plan.instance.tables, plan.instance.regions
    for move in plan.climb.moves:
        gain = "" if move.gain is None else f"{move.gain:.9g}"
        source, target = regions[move.source], regions[move.target]
        yield move.day, tables[move.table], source, target, move.size_bytes, gain


def _days(plan: WarehousePlan) -> Iterable[Sequence[Any]]:
    done = plan.climb
    days = zip(done.day_bytes, done.day_cost, done.day_ratios, strict=True)
    for number, (moved, cost, ratios) in enumerate(days, 1):
        yield number, moved, cost, float(ratios.max()), float(ratios.std())


def _csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])


def write_warehouse(tables: Mapping[str, Any], out: Path, *, overwrite: bool) -> None:
    """Write the four files: columns, or Arrow tables.

    Raises:
        ConfigError: the folder cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with whole_folder(out, overwrite=overwrite) as folder:
        for name, columns in tables.items():
            table = columns if isinstance(columns, pa.Table) else pa.table(columns)
            pq.write_table(table, folder / f"{name}.parquet")
