"""Small runs of the real simulator, and ways to damage them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from artist.config import Scenario
from artist.results.run_directory import write_run
from artist.run import simulate

EVIL = "<script>document.title='broken in'</script>\"'&"


def make_run(out: Path, **settings: Any) -> Path:
    """Simulate and write a run directory."""
    sizes = {} if "tree" in settings else {"racks": 1, "machines_per_rack": 2}
    base = {**sizes, "trace": "tiny-poisson"}
    write_run(simulate(Scenario(**{**base, **settings})), out, ["artist", "sim", EVIL])
    return out


def damage(run: Path, name: str, change: Callable[[pa.Table], pa.Table]) -> None:
    """Rewrite one of a run's tables."""
    path = run / f"{name}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def replace(
    column: str, values: Callable[[list[Any]], list[Any]]
) -> Callable[[pa.Table], pa.Table]:
    """A change of one column."""

    def change(table: pa.Table) -> pa.Table:
        index = table.schema.get_field_index(column)
        return table.set_column(index, column, [values(table[column].to_pylist())])

    return change


def edit_json(path: Path, **changes: Any) -> None:
    """Change keys of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
