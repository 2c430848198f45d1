"""The rows of `results.csv`: one per run, with its place in the plan and its results.

`results.csv` alone stands between the runs and the page. If you doubt a number on the page, you
find its runs there, and `study runs --every N` repeats a sample of them.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

import numpy as np
from plan import Planned, planned
from workloads import COUNTED_H, HOUR_S, WARM_H, gpus_of, jobs, tenants, tree

from artist.cluster.placement import Placement
from artist.contract import NO_SHARED_LINKS, JobView, Rate
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.io.writing import write_whole
from artist.rng import Draws
from artist.run import open_policy
from artist.units import Tick, seconds
from artist.workload.job import Job

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "results.csv"

URGENT_PRIORITIES = (1, 2, 3)
PLACE = ("cluster_gpus", "mix", "load", "quotas", "cell", "seed")
METRICS = (
    *(f"{name}_{priority}" for priority in URGENT_PRIORITIES for name in ("waits", "late")),
    "allocated_share", "preemptions", "jct_mean_s",
)  # fmt: skip
COLUMNS = (*PLACE, *METRICS)

Row: TypeAlias = Mapping[str, str]


class ComputeOnly:
    """Every job runs as long as its trace says: the paper's simulator does the same (5.6)."""

    links = NO_SHARED_LINKS

    def __call__(
        self, now: Tick, running: Mapping[int, JobView], changed: Sequence[JobView]
    ) -> Mapping[int, Rate]:
        """Rates of the changed jobs."""
        return {x.handle: self.alone(x.job, x.placement) for x in changed if x.placement}

    def alone(self, job: Job, placement: Placement) -> Rate:
        """No communication."""
        return Rate(job.compute_s, 1.0, "none", job.compute_s)


def row_of(run: Planned) -> dict[str, str]:
    """Do a run."""
    cluster_gpus, mix, load, quotas = run.regime
    gpus = gpus_of(cluster_gpus)
    made = jobs(mix, load, run.seed, gpus)
    policy = open_policy("mast", {"cell": run.cell}, Draws(run.seed), tenants(quotas, gpus))
    rows = Simulator(tree(cluster_gpus), made, ComputeOnly()).run(policy)
    queue = policy.tables()["queue"]
    values: dict[str, float] = {}
    for priority in URGENT_PRIORITIES:
        waits = [x["late"] for x in queue if x["priority"] == priority and _counts(made, x)]
        values[f"waits_{priority}"] = len(waits)
        values[f"late_{priority}"] = sum(waits)
    values["allocated_share"] = _allocated(rows, gpus)
    values["preemptions"] = sum(row.preemptions for row in rows.jobs)
    values["jct_mean_s"] = float(np.mean([seconds(x.finish - x.arrival) for x in rows.jobs]))
    return dict(zip(PLACE, run.place, strict=True)) | {x: f"{values[x]:.10g}" for x in METRICS}


def _counts(made: Sequence[Job], wait: Mapping[str, float]) -> bool:
    """Of jobs that were submitted after the regions filled, and waits that ended meanwhile."""
    submitted_h = made[int(wait["job"])].arrival_s / HOUR_S
    return submitted_h >= WARM_H and wait["time_s"] / HOUR_S <= WARM_H + COUNTED_H


def _allocated(rows: Rows, gpus: int) -> float:
    """GPU time held over GPU time, in the hours that count."""
    time_s = np.array([seconds(row.tick) for row in rows.timeline])
    held = np.array([row.gpus_held for row in rows.timeline])
    used = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(time_s))])
    edges = [WARM_H * HOUR_S, (WARM_H + COUNTED_H) * HOUR_S]
    return float(np.diff(np.interp(edges, time_s, used))[0]) / (COUNTED_H * HOUR_S * gpus)


def do_all(kept: Path, workers: int) -> None:
    """Do the runs that `kept` lacks, then write `results.csv`. `kept` has rows in any order."""
    done = _done(kept)
    todo = [run for run in planned() if run.place not in done]
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = not kept.is_file()
    with kept.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        with get_context("spawn").Pool(workers) as pool:
            for row in pool.imap_unordered(row_of, todo):
                writer.writerow(row)
                stream.flush()
    done = _done(kept)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(done[run.place] for run in planned())
    write_whole(RESULTS, text.getvalue())


def _done(kept: Path) -> dict[tuple[str, ...], Row]:
    if not kept.is_file():
        return {}
    with kept.open(encoding="utf-8", newline="") as stream:
        return {tuple(row[column] for column in PLACE): row for row in csv.DictReader(stream)}


def read() -> list[Row]:
    """The rows of `results.csv`; the program ends if it is missing or has other columns."""
    if RESULTS.is_file():
        with RESULTS.open(encoding="utf-8", newline="") as stream:
            rows = csv.DictReader(stream)
            if tuple(rows.fieldnames or ()) == COLUMNS:
                return list(rows)
    sys.exit(f"{RESULTS}: no rows with today's columns; `make study-mast` makes them anew")


def differing_runs(every: int) -> list[str]:
    """Repeat every Nth run. The answer names those with another row."""
    kept = {tuple(row[column] for column in PLACE): row for row in read()}
    return [" ".join(run.place) for run in planned()[::every] if kept.get(run.place) != row_of(run)]
