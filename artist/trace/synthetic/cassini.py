"""The workload of CASSINI's evaluation (NSDI 2024, section 5.1 and Table 3).

13 models with equal probability, 1 to 12 workers, 200 to 1,000 iterations, batches of Table 3, all
drawn uniformly. Three kinds of trace:

    poisson     exponential gaps, so that jobs demand `load` of the cluster on average
    dynamic     one half of the jobs runs from the start, the other half arrives together later
    snapshot    all jobs are there at the start

The paper leaves open, and this module chooses:

- Table 3's batches of vision models cannot be ImageNet's images of 224 x 224 pixels: an A100 needs
  5.6 s for 1,400 of them with VGG16, and the paper's iteration takes 300 ms. With 32 x 32 pixels,
  1/49 of the arithmetic, it is 115 ms beside 150 ms of communication. So a batch of n counts as
  n / 49 images of the catalogue.
- The GPTs have no sizes there that the catalogue knows. GPT-2 is the small one, GPT-3 is XL (1.3
  billion parameters), within the paper's range of memory.
- All models are data-parallel unless `divided`. So DLRM computes for less than .1 ms and sends all
  of its tables.
- `divided` jobs, as in section 5.4, are the GPTs on pairs of GPUs: GPT-1 and GPT-2 in two stages of
  eight microbatches, GPT-3 with tensor parallelism (Fig. 1). The paper does not say how many GPUs
  divide a model. The catalogue divides no DLRM, so there is none.
- The second half of a dynamic trace arrives when half of the first would be done if isolated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from artist.errors import ConfigError
from artist.estimates.latency_service import single_gpu_ns
from artist.rng import stream
from artist.trace.native.choices import ArrivalKind
from artist.trace.native.trace import Trace
from artist.trace.synthetic.generate import check_positive, drawn_trace, poisson_arrivals
from artist.units import TICKS_PER_S
from artist.workload.job import Job
from artist.workload.models import with_settings, workload

MOST_WORKERS = 12
"""Workers when a job arrives (section 5.1)."""
ITERATIONS = (200, 1000)
"""Section 5.1."""

SMALL_IMAGES = 49
"""Images of 32 x 32 pixels that need as much arithmetic as one of 224 x 224."""


@dataclass(frozen=True, slots=True)
class Table3Row:
    """A row of Table 3: a model of the catalogue, and the smallest and largest batch per GPU."""

    model: str
    least: int
    most: int
    small_images: bool = False
    divided: str = ""
    """Settings of the catalogue that divide the model between the two GPUs of a pair."""

    def spec(self, batch: int) -> str:
        """The model as the catalogue trains it on such a batch."""
        if self.small_images:
            batch = max(round(batch / SMALL_IMAGES), 1)
        if self.divided:
            # The batch of a pair, in whole microbatches.
            batch = max(round(PAIR * batch / MICROBATCHES), 1) * MICROBATCHES
            return f"{self.model}@batch={batch},{self.divided}"
        return f"{self.model}@batch={batch}"


TABLE_3 = (
    Table3Row("vgg11", 512, 1800, small_images=True),
    Table3Row("vgg16", 512, 1800, small_images=True),
    Table3Row("vgg19", 512, 1800, small_images=True),
    Table3Row("wide-resnet101", 256, 1200, small_images=True),
    Table3Row("resnet50", 256, 1800, small_images=True),
    Table3Row("bert-base", 8, 32),
    Table3Row("roberta-base", 8, 32),
    Table3Row("camembert", 8, 32),
    Table3Row("xlm", 4, 32),
    Table3Row("gpt1", 32, 80),
    Table3Row("gpt2", 32, 80),
    Table3Row("gpt3-xl", 16, 48),
    Table3Row("dlrm", 16, 1024),
)
"""BERT is BERT-base: it has the 450 MB of the paper, the large one has 1,340."""

PAIR = 2
"""GPUs that divide a model."""

MICROBATCHES = 8
"""At four per stage and more, stages hardly wait (GPipe, arXiv:1811.06965, section 2.3)."""

_STAGES = f"stages={PAIR},microbatches={MICROBATCHES}"
DIVIDED = (
    Table3Row("gpt1", 32, 80, divided=_STAGES),
    Table3Row("gpt2", 32, 80, divided=_STAGES),
    Table3Row("gpt3-xl", 16, 48, divided=f"tensor={PAIR}"),
)
"""The models of Table 3 that both the paper and the catalogue divide (section 5.4)."""


def cassini(
    kind: ArrivalKind,
    jobs: int,
    gpus: int,
    seed: int,
    load: float | None = None,
    *,
    divided: bool = False,
) -> Trace:
    """A trace of this kind for a cluster of `gpus` GPUs. The same seed gives the same trace.

    `divided`: all jobs are divided models, on pairs of GPUs.

    `load` is the demand in GPU-seconds of computation per GPU-second; Poisson arrivals need it.
    The paper varies it from .8 to 1.

    Raises:
        ConfigError: a number is not positive, or the load is missing or out of place.
    """
    check_positive(jobs, gpus, load)
    if kind is ArrivalKind.POISSON and load is None:
        raise ConfigError(f"--arrivals {kind}: jobs arrive at a load; give --load")
    if kind is not ArrivalKind.POISSON and load is not None:
        raise ConfigError(f"--arrivals {kind}: --load belongs to --arrivals poisson; leave it out")
    if divided and gpus < PAIR:
        raise ConfigError(f"--divided --gpus {gpus}: a divided model needs {PAIR}; give more")
    rng = stream(seed, "trace.cassini")
    drawn = _drawn(rng, jobs, min(gpus, MOST_WORKERS), divided=divided)
    arrivals_s = [0.0] * jobs
    if load is not None:
        gpu_s = [job.gpus * job.ideal_s for job in drawn]
        arrivals_s = poisson_arrivals(rng, gpu_s, load, gpus).tolist()
    elif kind is ArrivalKind.DYNAMIC:
        first = -(-jobs // 2)
        later_s = float(np.median([job.ideal_s for job in drawn[:first]]))
        arrivals_s[first:] = [round(later_s, 9)] * (jobs - first)
    made = (replace(job, arrival_s=at_s) for at_s, job in zip(arrivals_s, drawn, strict=True))
    return drawn_trace(f"cassini-{kind}-{jobs}{'-divided' * divided}", tuple(made))


def _drawn(rng: np.random.Generator, jobs: int, most_workers: int, *, divided: bool) -> list[Job]:
    """Jobs in the order of arrival, without their arrivals.

    Each job takes four random numbers, even if it does not use all.
    """
    rows, each = (DIVIDED, PAIR) if divided else (TABLE_3, 1)
    drawn = []
    for number, (which, batch, workers, iterations) in enumerate(rng.random((jobs, 4))):
        row = rows[_uniform(which, 0, len(rows) - 1)]
        model = with_settings(row.spec(_uniform(batch, row.least, row.most)), GPU)
        gpus = each * _uniform(workers, 1, most_workers // each)
        steps = _uniform(iterations, *ITERATIONS)
        drawn.append(Job(str(number), 0.0, gpus, model, steps, _compute_s(model)))
    return drawn


def _uniform(part: float, least: int, most: int) -> int:
    """The whole number from `least` to `most`, both included, at this part of the range."""
    return least + math.floor(part * (most - least + 1))


GPU = "gpu=a100"
"""The GPU of the testbed. Names of models state it, so that compute times are those of this GPU."""


@cache
def _compute_s(model: str) -> float:
    return single_gpu_ns(workload(model)) / TICKS_PER_S
