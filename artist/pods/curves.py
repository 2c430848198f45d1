"""Allocation and fragmentation over demand, at whole percents of all GPUs.

A row is the mean over the pods whose arrival brings the demand to this percent, rounded. Weng et
al. publish their runs like this (`experiments/analysis/merge_alloc_discrete.py` of their program).
A percent without pods takes the mean over the pods of its two neighbours, or has no row if these
have no pods either.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.io.own_folders import OwnFolder, json_with
from artist.io.writing import whole_folder
from artist.pods.fill import Filling

Curves = Mapping[str, npt.NDArray[np.float64]]
Table = Mapping[str, npt.NDArray[Any]]

DEMAND = "demand_percent"

AT = 100
"""The percent of demand at which runs are compared: pods have asked for all GPUs."""

FILL = OwnFolder(
    "filling",
    re.compile(r"(curves|timeline)\.csv|fill\.json"),
    "fill.json",
    json_with("machines", "pods", "seeds", "placers"),
)


def curves(filling: Filling) -> Curves:
    """Columns by name, in percent. `demand_percent` rises by 1."""
    everything = filling.capacity_milli
    percent = _percents(filling)
    count = np.bincount(percent, minlength=3)
    idle = everything - filling.held_milli
    fragments = filling.fragmented / filling.pods
    values = {
        "allocated_percent": 100 * filling.held_milli / everything,
        "fragmented_percent": 100 * fragments / everything,
        "fragmented_of_idle_percent": 100 * fragments / np.maximum(idle, 1),
    }
    # A percent without pods takes the pods of its two neighbours.
    beside = np.convolve(count, (1, 1, 1), "same")
    kept = np.flatnonzero(beside[: percent.max() + 1])
    columns: dict[str, npt.NDArray[np.float64]] = {DEMAND: kept.astype(np.float64)}
    for name, column in values.items():
        total = np.bincount(percent, column, minlength=3)
        around = np.convolve(total, (1, 1, 1), "same")
        columns[name] = np.where(
            count[kept] > 0,
            total[kept] / np.maximum(count[kept], 1),
            around[kept] / beside[kept],
        )
    return columns


def _percents(filling: Filling) -> npt.NDArray[np.int64]:
    """The demand after each pod, in whole percents of all GPUs."""
    return np.rint(100 * filling.arrived_milli / filling.capacity_milli).astype(np.int64)


def summary(fillings: Sequence[tuple[Filling, Curves]]) -> dict[str, Any]:
    """The main figures of one placer's runs, each with another seed: means at 100 % of demand.

    If the demand ends before 100 %, figures are those at its end. A standard deviation is that of a
    sample; None if there is one run.
    """
    at = _compared_at(fillings)
    facts: dict[str, Any] = {DEMAND: at}
    for name in ("allocated_percent", "fragmented_percent"):
        found = _values(fillings, name, at)
        facts[name] = statistics.fmean(found)
        facts[f"{name}_sd"] = statistics.stdev(found) if len(found) > 1 else None
    runs = [(one, int((_percents(one) <= at).sum())) for one, _ in fillings]
    facts["pods"] = statistics.fmean(count for _, count in runs)
    facts["placed"] = statistics.fmean(int((one.machine[:n] >= 0).sum()) for one, n in runs)
    lacks = (names for one, count in runs for pod, names in one.lacking.items() if pod < count)
    total = Counter(chain.from_iterable(lacks))
    facts["lacking"] = {name: round(n / len(fillings)) for name, n in total.most_common()}
    return facts


def allocated_percents(fillings: Sequence[tuple[Filling, Curves]]) -> list[float]:
    """The allocation of each run at the demand that `summary` uses, in percent of all GPUs."""
    return _values(fillings, "allocated_percent", _compared_at(fillings))


def _compared_at(fillings: Sequence[tuple[Filling, Curves]]) -> int:
    return min(AT, *(int(columns[DEMAND][-1]) for _, columns in fillings))


def _values(fillings: Sequence[tuple[Filling, Curves]], name: str, at: int) -> list[float]:
    return [float(columns[name][_rows(columns, [at])[0]]) for _, columns in fillings]


def _rows(columns: Curves, percents: npt.ArrayLike) -> npt.NDArray[np.intp]:
    """The rows for these percents: their own, or else the last ones before."""
    return np.searchsorted(columns[DEMAND], percents, side="right") - 1


def every_percent(columns: Curves) -> Table:
    """The columns with a row for every percent; one without a row repeats the row before it."""
    first, last = columns[DEMAND][[0, -1]].astype(int)
    percents = np.arange(first, last + 1)
    at = _rows(columns, percents)
    return {name: percents if name == DEMAND else column[at] for name, column in columns.items()}


def write_filling(
    out: Path,
    document: Mapping[str, Any],
    table: str,
    rows: Iterable[tuple[str, int, Table]],
    *,
    overwrite: bool,
) -> None:
    """Write `fill.json` and a CSV file named `table` with the rows of each placer and seed.

    Raises:
        ConfigError: they cannot be written.
    """
    lines: list[str] = []
    for placer, seed, columns in rows:
        lines = lines or [",".join(("placer", "seed", *columns))]
        for row in zip(*(column.tolist() for column in columns.values()), strict=True):
            cells = (f"{x:.4f}" if isinstance(x, float) else str(x) for x in row)
            lines.append(",".join((placer, str(seed), *cells)))
    with whole_folder(out, overwrite=overwrite) as folder:
        (folder / table).write_text("\n".join(lines) + "\n", encoding="utf-8")
        text = json.dumps(document, indent=2)
        (folder / FILL.mark).write_text(f"{text}\n", encoding="utf-8")
