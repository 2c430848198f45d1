"""Whole runs: mean completion time and makespan over many machine orders, against one recorded run.

The original's results are chaotic in the order in which it visits machines, of which its own is as
arbitrary as any other. So the median over seeded orders is compared. One more run in the
original's own order shows how much of a difference is the rules' and how much the order's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from artist.cluster.tree import ClusterTree, regular
from artist.engine.simulator import Simulator
from artist.reference.astra1 import Astra1
from artist.reference.files import ReferenceTrace
from artist.reference.rates import RecordedRates
from artist.reference.schemes import registered, scheduler
from artist.reference.speeds import RecordedSpeeds
from artist.units import seconds


@dataclass(frozen=True, slots=True)
class Cell:
    """One row of the recorded results."""

    scheme: str
    racks: int
    trace: str
    jct_mean_s: float
    makespan_s: float


@dataclass(frozen=True, slots=True)
class Latencies:
    """Where speeds come from: the recording, and workloads for what it lacks."""

    golden: Path
    workloads: Path

    def speeds(self) -> RecordedSpeeds:
        """Read them."""
        return RecordedSpeeds(self.golden, Astra1(self.workloads))


class Outcome(NamedTuple):
    """Of one simulation, in seconds."""

    jct_mean_s: float
    makespan_s: float


def cluster(racks: int) -> ClusterTree:
    """The original's: 8 machines of 2 sockets of 4 GPUs per rack."""
    return regular(racks=racks, machines_per_rack=8, gpus_per_machine=8, gpus_per_socket=4)


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


def simulate(
    trace: ReferenceTrace, scheme: str, racks: int, seed: int | None, speeds: RecordedSpeeds
) -> Outcome:
    """One run with the original's rules; `seed` None for its own machine order."""
    tree = cluster(racks)
    simulator = Simulator(tree, trace.jobs, RecordedRates(tree, speeds))
    rows = simulator.run(scheduler(scheme, seed))
    jct = fmean(seconds(row.finish - row.arrival) for row in rows.jobs)
    first = min(row.arrival for row in rows.jobs)
    return Outcome(jct, seconds(max(row.finish for row in rows.jobs) - first))


def compare(
    found: Sequence[Cell],
    traces: Mapping[str, ReferenceTrace],
    latencies: Latencies,
    seeds: int,
    workers: int,
) -> list[dict[str, Any]]:
    """Ratios ours / theirs per cell: median, minimum and maximum over `seeds` machine orders."""
    with ProcessPoolExecutor(workers, initializer=_prepare, initargs=(traces, latencies)) as pool:
        asked = list(product(found, (None, *range(seeds))))
        outcomes = list(pool.map(_outcome, asked, chunksize=4))
    size = seeds + 1
    return [
        _row(cell, outcomes[index * size], outcomes[index * size + 1 : (index + 1) * size])
        for index, cell in enumerate(found)
    ]


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
    return row


# What a worker process needs for every simulation; set once per process, not per task.
_traces: Mapping[str, ReferenceTrace] = {}
_speeds: list[RecordedSpeeds] = []


def _prepare(traces: Mapping[str, ReferenceTrace], latencies: Latencies) -> None:
    global _traces
    _traces = traces
    _speeds[:] = [latencies.speeds()]


def _outcome(asked: tuple[Cell, int | None]) -> Outcome:
    cell, seed = asked
    return simulate(_traces[cell.trace], cell.scheme, cell.racks, seed, _speeds[0])
