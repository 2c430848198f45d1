"""Whole runs: mean completion time and makespan over many machine orders, against one recorded run.

The original's results are chaotic in the order in which it visits machines, of which its own is as
arbitrary as any other. So the median over seeded orders is compared. One more run in the
original's own order shows how much of a difference is the rules' and how much the order's; the
rank of the recorded run among the seeded ones, whether it is an ordinary one of them.
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
from validation.original.schemes import registered


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the recorded results."""

    scheme: str
    racks: int
    trace: str
    jct_mean_s: float
    makespan_s: float


class Outcome(NamedTuple):
    """Of one simulation, in seconds."""

    jct_mean_s: float
    makespan_s: float


def outcome(rows: Rows) -> Outcome:
    """Mean completion time, and the time from the first arrival to the last finish."""
    jct = fmean(seconds(row.finish - row.arrival) for row in rows.jobs)
    first = min(row.arrival for row in rows.jobs)
    return Outcome(jct, seconds(max(row.finish for row in rows.jobs) - first))


def cells(results: Iterable[Mapping[str, str]], traces: Iterable[str]) -> list[Cell]:
    """The rows of these traces whose scheme is registered."""
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
        if row["trace"] in known and registered(row["scheme"])
    ]


def compare(
    pool: Executor, found: Sequence[Cell], seeds: int, *, with_own: bool = False
) -> Iterator[dict[str, Any]]:
    """Ratios ours / theirs per cell: median, minimum and maximum over `seeds` machine orders.

    Cell by cell, as soon as its runs are over. `with_own`: theirs is not what was recorded,
    but our run in the original's own order.
    """
    outcomes = pool.map(_outcome, product(found, (None, *range(seeds))), chunksize=4)
    for cell in found:
        own, *seeded = islice(outcomes, seeds + 1)
        yield _row(replace(cell, **own._asdict()) if with_own else cell, own, seeded)


def _outcome(asked: tuple[Cell, int | None]) -> Outcome:
    cell, seed = asked
    return outcome(run(cell.trace, cell.scheme, cell.racks, seed))


def _row(cell: Cell, own: Outcome, outcomes: Sequence[Outcome]) -> dict[str, Any]:
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
