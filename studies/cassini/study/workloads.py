"""The jobs of the runs: those of the catalogue (`trace synth --shape cassini`), divided ones
(`--divided`), matched ones, and odd ones.

**Matched** jobs are a fit. Table 2 of the paper has jobs of one iteration time that are Up for .41
to .50 of it where their score is 1. Most jobs of the catalogue are Up for .7 to .9 of theirs, at
unequal times, so hardly any two are compatible. A matched job has a batch with which its iteration
takes 300 ms alone on four workers of the testbed (snapshot 1). It is Up for less than half of it.

**Odd** jobs are matched ones with 3, 5 or 7 workers: in racks of two servers each must span racks,
and meets another one.

**Elastic** jobs are matched ones of ten times as many iterations, since Pollux decides once a
minute. They run on one worker up to twice as many as drawn, and a restart costs 30 s (Pollux,
section 5.3). `goodput.py` has their parameters, which are **assumed**.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

from artist.estimates.latency_service import single_gpu_ns
from artist.rng import stream
from artist.trace.native.choices import ArrivalKind
from artist.trace.synthetic.cassini import cassini
from artist.units import TICKS_PER_S
from artist.workload.job import Job
from artist.workload.models import workload

CATALOGUE, MATCHED, DIVIDED, ODD, ELASTIC = "catalogue", "matched", "divided", "odd", "elastic"

MATCHED_MODELS = (
    "vgg11@batch=152",
    "vgg16@batch=75",
    "vgg19@batch=59",
    "wide-resnet101@batch=50",
    "resnet50@batch=283",
    "bert-base@batch=59",
    "roberta-base@batch=41",
    "camembert@batch=43",
    "gpt1@batch=32",
    "gpt2@batch=14",
)
"""Each takes 300 ms an iteration on four workers, within 1 % (gpt2: 308). XLM, GPT-3 and DLRM have
no such batch."""

ODD_WORKERS = (3, 5, 7)

LONGER = 10
RESTART_S = 30.0

LOADS = (0.8, 1.0)
"""Section 5.1; the replicates of Poisson traces are spread evenly between both."""


def jobs_of(
    kind: str, arrivals: str, jobs: int, gpus: int, seed: int, load: float
) -> tuple[Job, ...]:
    """The jobs of a run, by order of arrival."""
    poisson = arrivals == ArrivalKind.POISSON
    divided = kind == DIVIDED
    made = cassini(
        ArrivalKind(arrivals), jobs, gpus, seed, load if poisson else None, divided=divided
    )
    if kind not in (MATCHED, ODD, ELASTIC):
        return made.jobs
    matched = _matched(made.jobs, seed)
    if kind == ELASTIC:
        return tuple(map(_elastic, matched))
    return matched if kind == MATCHED else _odd(matched, seed)


def load_of(seed: int, replicates: int) -> float:
    """The load of a replicate of Poisson arrivals."""
    least, most = LOADS
    return round(least + (most - least) * seed / max(replicates - 1, 1), 6)


def _matched(jobs: tuple[Job, ...], seed: int) -> tuple[Job, ...]:
    """As many matched jobs with the same numbers of workers and iterations.

    Arrivals are scaled so that the same computation arrives per second.
    """
    rng = stream(seed, "study.cassini.matched")
    chosen = [MATCHED_MODELS[x] for x in rng.integers(len(MATCHED_MODELS), size=len(jobs)).tolist()]
    before = math.fsum(job.gpus * job.iterations * job.compute_s for job in jobs)
    after = math.fsum(
        job.gpus * job.iterations * compute_s(model)
        for job, model in zip(jobs, chosen, strict=True)
    )
    return tuple(
        Job(job.id, round(job.arrival_s * after / before, 9), job.gpus, model, job.iterations,
            compute_s(model))
        for job, model in zip(jobs, chosen, strict=True)
    )  # fmt: skip


def _odd(jobs: tuple[Job, ...], seed: int) -> tuple[Job, ...]:
    """The same jobs with odd numbers of workers, each equally likely."""
    workers = stream(seed, "study.cassini.odd").choice(ODD_WORKERS, len(jobs)).tolist()
    return tuple(
        Job(job.id, job.arrival_s, gpus, job.model, job.iterations, job.compute_s)
        for job, gpus in zip(jobs, workers, strict=True)
    )


def _elastic(job: Job) -> Job:
    """The job ten times as long, so ten times as late."""
    return replace(
        job,
        arrival_s=LONGER * job.arrival_s,
        iterations=LONGER * job.iterations,
        gpus_min=1,
        gpus_max=2 * job.gpus,
        restart_s=RESTART_S,
    )


@cache
def compute_s(model: str) -> float:
    """Computation of an iteration."""
    return single_gpu_ns(workload(model)) / TICKS_PER_S
