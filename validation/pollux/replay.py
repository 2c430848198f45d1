"""A published workload, run by artist."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.calibrate.fit_goodput import StepTimes
from artist.cluster.tree import regular
from artist.engine.simulator import Simulator
from artist.rng import Draws
from artist.run import open_policy
from artist.units import seconds, ticks
from artist.workload.goodput import Goodput
from artist.workload.job import Job
from validation.pollux.applications import Application
from validation.pollux.rates import RecordedSteps, Submitted

MACHINES, GPUS_PER_MACHINE = 16, 4
PERIOD_S, RESTART_S = 60.0, 30.0

POLICIES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "tiresias": ("tiresias-rounds", {}),
    "optimus": ("optimus", {"placement": "emptiest", "known": "stretch"}),
    "pollux": ("pollux", {}),
}
"""Policy and options, by the names in the published files."""

_NOT_ELASTIC = "ncf"
"""It runs on one GPU under `optimus` and `pollux` there."""

_MOST_NOISE = 1e12
"""Samples; gradients that are all noise have no end of it."""

_FIXED = {"ncf": 32768}
"""Batches that `pollux` never changes there; those of others begin at the application's smallest.
"""


@dataclass(frozen=True, slots=True)
class FromZero(Draws):
    """Rounds begin at multiples of the period from time 0, not from the first arrival."""

    first_s: float = 0.0

    def phase(self, period: int) -> int:
        """Until the next multiple."""
        return -ticks(self.first_s) % period


def replay(
    workload: Path, policy: str, applications: Mapping[str, Application]
) -> dict[str, float]:
    """The completion time of each job of a workload in seconds, by name."""
    with workload.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    submitted = {row["name"]: _submitted(row, policy, applications) for row in rows}
    jobs = [_job(row, submitted[row["name"]], policy) for row in rows]
    tree = regular(racks=1, machines_per_rack=MACHINES, gpus_per_machine=GPUS_PER_MACHINE)
    name, options = POLICIES[policy]
    draws = FromZero(first_s=jobs[0].arrival_s)
    run = open_policy(name, {"period_s": PERIOD_S, **options}, draws)
    rates = RecordedSteps(tree, submitted, PERIOD_S)
    done = Simulator(tree, jobs, rates).run(run)
    return {row.job.id: seconds(row.finish - row.arrival) for row in done.jobs}


def _submitted(
    row: Mapping[str, str], policy: str, applications: Mapping[str, Application]
) -> Submitted:
    application = applications[row["application"]]
    if policy != "pollux":
        return Submitted(application, int(row["batch_size"]))
    fixed = _FIXED.get(application.name)
    return Submitted(application, application.batch, fixed)


def _job(row: Mapping[str, str], submitted: Submitted, policy: str) -> Job:
    """A job with the epochs of its application as stretches of its noise scale.

    That of `pollux` is measured with the largest batch. There it is with the present one, which a
    scale by progress alone cannot say; with the smallest, large batches would seem worth less.
    """
    application, batch, _ = submitted
    gpus, elastic = int(row["num_replicas"]), policy != "tiresias"
    ends = application.iterations(batch)
    most, noise_of = batch // application.per_gpu_min, batch
    times = StepTimes(1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)
    if policy == "pollux":
        most, noise_of = application.batch_max // application.per_gpu_min, application.batch_max
        times = application.fitted
    if application.name == _NOT_ELASTIC:
        most = 1
    begins = (0.0, *((end - 0.5) / ends[-1] for end in ends[:-1]))
    noise = tuple(
        (begin, min(application.noise(noise_of, epoch), _MOST_NOISE))
        for epoch, begin in enumerate(begins)
    )
    goodput = Goodput(
        application.batch, application.batch_max, application.per_gpu_min, application.per_gpu_max,
        noise=noise, **times._asdict(),
    )  # fmt: skip
    return Job(
        id=row["name"],
        arrival_s=float(row["time"]),
        gpus=min(gpus, most) if elastic else gpus,
        model=f"{application.name}-{batch}",
        iterations=ends[-1],
        compute_s=1.0,
        gpus_min=1 if elastic else gpus,
        gpus_max=most if elastic else gpus,
        restart_s=RESTART_S,
        first_start_s=RESTART_S,
        goodput=goodput,
    )
