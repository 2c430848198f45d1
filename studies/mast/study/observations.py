"""The rows of `results.csv`: one per run, with its place in the plan and its results.

`results.csv` alone stands between the runs and the page. If you doubt a number on the page, you
find its runs there, and `study runs --every N` repeats a sample of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from artist.cluster.placement import Placement
from artist.contract import NO_SHARED_LINKS, JobView, Rate
from artist.engine.rows import Rows
from artist.engine.simulator import Simulator
from artist.rng import Draws
from artist.run import open_policy
from artist.units import Tick, seconds
from artist.workload.job import Job
from studies.common.rows import RowsFile, Runs
from studies.mast.study.plan import Planned, planned
from studies.mast.study.workloads import COUNTED_H, HOUR_S, WARM_H, gpus_of, jobs, tenants, tree

HERE = Path(__file__).resolve().parent.parent

URGENT_PRIORITIES = (1, 2, 3)
PLACE = ("cluster_gpus", "mix", "load", "quotas", "cell", "seed")
METRICS = (
    *(f"{name}_{priority}" for priority in URGENT_PRIORITIES for name in ("waits", "late")),
    "allocated_share", "preemptions", "jct_mean_s",
)  # fmt: skip
COLUMNS = (*PLACE, *METRICS)


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
    time_s = np.array([seconds(tick) for tick in rows.timeline.tick])
    held = np.array(rows.timeline.gpus_held)
    used = np.concatenate([[0.0], np.cumsum(held[:-1] * np.diff(time_s))])
    edges = [WARM_H * HOUR_S, (WARM_H + COUNTED_H) * HOUR_S]
    return float(np.diff(np.interp(edges, time_s, used))[0]) / (COUNTED_H * HOUR_S * gpus)


ROWS = RowsFile(HERE / "results.csv", COLUMNS, "mast")
RUNS = Runs(ROWS, PLACE, planned, row_of)
