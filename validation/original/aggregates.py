"""Whole runs: mean completion time and makespan, over many orders of machines.

A small change of the order in which the original visits machines changes its results a lot, and its
own order is as arbitrary as any other. So there are two comparisons with each recorded run:

- our run in the original's own order. A difference comes from rules or rounding;
- the median of our runs in random orders (one per seed). A difference comes from the order.

The number of seeded runs below the recorded run tells whether the recorded run is an ordinary one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import islice, product
from statistics import fmean, median
from typing import Any, NamedTuple

from artist.engine.rows import Rows
from artist.units import seconds
from validation.original.runs import run
from validation.original.schemes import SCHEMES


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the recorded results."""

    scheme: str
    racks: int
    trace: str
    jct_mean_s: float
    makespan_s: float


class Outcome(NamedTuple):
    """The results of one simulation, in seconds."""

    jct_mean_s: float
    makespan_s: float


def outcome(rows: Rows) -> Outcome:
    """Mean completion time, and the time from the first arrival to the last finish."""
    jct = fmean(seconds(row.finish - row.arrival) for row in rows.jobs)
    first = min(row.arrival for row in rows.jobs)
    return Outcome(jct, seconds(max(row.finish for row in rows.jobs) - first))


def cells(results: Iterable[Mapping[str, str]], traces: Iterable[str]) -> list[Cell]:
    """The rows of these traces whose scheme has a policy of its own."""
    known = set(traces)
    return [
        Cell(
            row["scheme"],
            int(row["racks"]),
            row["trace"],
            float(row["jct_mean_s"]),
            float(row["makespan_s"]),
        )
        for row in results
        if row["trace"] in known and row["scheme"] in SCHEMES
    ]


def compare(
    pool: Executor, recorded: Sequence[Cell], seeds: int, *, with_own: bool = False
) -> Iterator[dict[str, Any]]:
    """Ratios ours / theirs per cell: median, minimum and maximum over `seeds` orders of machines.

    A cell is yielded as soon as its runs are over. With `with_own`, theirs is not the recorded run
    but our run in the original's own order.
    """
    outcomes = pool.map(_outcome, product(recorded, (None, *range(seeds))), chunksize=4)
    for cell in recorded:
        own, *seeded = islice(outcomes, seeds + 1)
        yield _row(replace(cell, **own._asdict()) if with_own else cell, own, seeded)


def _outcome(cell_and_seed: tuple[Cell, int | None]) -> Outcome:
    cell, seed = cell_and_seed
    return outcome(run(cell.trace, cell.scheme, cell.racks, seed))


def _row(cell: Cell, own: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Ratios ours / theirs of one cell."""
    row: dict[str, Any] = {"scheme": cell.scheme, "racks": cell.racks, "trace": cell.trace}
    for name, theirs, same, ours in (
        ("jct_mean_ratio", cell.jct_mean_s, own.jct_mean_s, [one.jct_mean_s for one in outcomes]),
        ("makespan_ratio", cell.makespan_s, own.makespan_s, [one.makespan_s for one in outcomes]),
    ):
        row[name] = median(ours) / theirs
        row[f"{name}_min"] = min(ours) / theirs
        row[f"{name}_max"] = max(ours) / theirs
        row[f"{name}_own_order"] = same / theirs
        row[f"{name}_smaller"] = sum(one < theirs for one in ours)
    return row
