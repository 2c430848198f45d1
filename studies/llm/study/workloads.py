"""Twenty jobs that train language models, divided as was published.

| what | here | source |
|---|---|---|
| models and axes | Llama 3 8B, 70B, 405B; Qwen3 235B | `workload/division/job_parallelism.py` |
| GPUs | 64 to 1,024, multiples of a replica | Acme's pretraining jobs; the weights are ours |
| compute time of an iteration | efficiencies fitted to published throughput | `timing=fitted` |
| run time | 4 to 48 hours, uniform in the logarithm | ours |
| arrivals | Poisson; the jobs want 1.2 times the GPUs | ours |
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from artist.rng import stream
from artist.workload.models import workload
from artist.workload.stage_steps import alone_ns

GPUS = 2048
JOBS = 20
LOAD = 1.2
SHORTEST_H, LONGEST_H = 4.0, 48.0
HEADER = "job_id,arrival_s,gpus,model,iterations,compute_s\n"
HARDWARE = "timing=fitted,gpu=h100,precision=bf16"


class Kind(NamedTuple):
    """Jobs of one model."""

    model: str
    how: str
    gpus: tuple[int, ...]


KINDS = (
    Kind("llama3-8b", "batch=16,sequence=8192,sharded=zero1", (64, 128, 256)),
    Kind(
        "llama3-70b",
        "batch=32,sequence=8192,tensor=4,microbatches=32,pipeline=8,sharded=zero1",
        (64, 128, 256, 512),
    ),
    Kind(
        "llama3-405b",
        "batch=32,sequence=8192,tensor=8,microbatches=32,pipeline=16,sharded=zero1",
        (512, 1024),
    ),
    Kind(
        "qwen3-235b-a22b",
        "batch=32,tensor=2,microbatches=32,pipeline=8,expert=32,sharded=zero1",
        (256, 512),
    ),
)


def trace(seed: int, order: str) -> str:
    """The jobs of a replicate as CSV, with an order of ranks (`best` or axes)."""
    rng = stream(seed, "study.llm")
    kinds = rng.integers(0, len(KINDS), JOBS)
    gpus = [int(rng.choice(KINDS[kind].gpus)) for kind in kinds]
    spread = np.log(LONGEST_H / SHORTEST_H)
    run_s = 3600 * SHORTEST_H * np.exp(spread * rng.random(JOBS))
    gap_s = float(np.mean(np.array(gpus) * run_s)) / GPUS / LOAD
    arrivals = np.cumsum(rng.exponential(gap_s, JOBS))
    lines = [HEADER]
    for job in range(JOBS):
        kind = KINDS[kinds[job]]
        name = f"{kind.model}@{kind.how},{HARDWARE}"
        compute_s = alone_ns(workload(name)) / 1e9
        iterations = max(1, round(float(run_s[job]) / compute_s))
        lines.append(
            f'{job},{arrivals[job]:.0f},{gpus[job]},"{name},order={order}",'
            f"{iterations},{compute_s:.6g}\n"
        )
    return "".join(lines)
