"""The plan of `artist place-data` that a run's data file is part of, kept with the run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from artist.errors import TraceError
from artist.results.metrics import Table
from artist.warehouse.files import is_plan

_BOTH = ("ratio_max", "ratio_sd", "collocation", "at_home", "objective")
_TEXTS = frozenset({"region", "kind", "table", "from", "to"})
_WHOLE = frozenset({"day", "size_bytes", "moved_bytes"})
_FILES = {"data_balance": "balance.csv", "data_days": "days.csv", "data_moves": "moves.csv"}


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
        tables = {"data_plan": _numbers(facts)}
        for name, file in _FILES.items():
            with (folder / file).open(encoding="utf-8", newline="") as stream:
                tables[name] = _columns(csv.DictReader(stream))
    except (OSError, ValueError, KeyError, TypeError) as cause:
        raise TraceError(
            f"{folder}: is no whole plan ({cause}); make it anew with artist place-data"
        ) from cause
    return tables


def _numbers(facts: dict[str, Any]) -> Table:
    """Ratios, collocation and the terms of the objective, before and after."""
    values = {name: (facts[f"{name}_before"], facts[f"{name}_after"]) for name in _BOTH}
    before, after = facts["terms_before"], facts["terms_after"]
    values |= {f"term_{name}": (before[name], after[name]) for name in before}
    return {
        "number": list(values),
        "before": np.array([float(x) for x, _ in values.values()]),
        "after": np.array([float(x) for _, x in values.values()]),
    }


def _columns(rows: csv.DictReader[str]) -> Table:
    read = list(rows)
    return {name: _column(name, [row[name] for row in read]) for name in rows.fieldnames or ()}


def _column(name: str, cells: list[str]) -> Any:
    if name in _TEXTS:
        return cells
    if name in _WHOLE:
        return np.array([int(cell) for cell in cells], np.int64)
    return np.array([float(cell) if cell else np.nan for cell in cells], np.float64)
