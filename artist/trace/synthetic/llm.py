"""Today's mix of jobs around language models: many short evaluations, few long pretrainings.

The shares are those of Kalos, a cluster of Acme (Hu et al., NSDI 2024, arXiv:2403.07648):

    kind          of jobs   of GPU time   section
    pretraining     3.2 %        94.0 %   3.2, figure 4
    evaluation     92.9 %         0.8 %   3.2, figure 4
    tuning          3.9 %         5.2 %   the rest: alignment, fine-tuning, debugging

A job has 26.8 GPUs on average, and the median one runs for 124 s (`cluster_summary.csv` of the
published trace). So does the median evaluation here, within 4 s. Run times of a kind are
log-normal; their mean follows from the shares. Assumed are the spread of run times, the sizes
within a kind, and the models. These have published axes (`workload/division/job_parallelism.py`),
and their steps take the catalogue's time on H100s.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.trace.synthetic.generate import check_positive, drawn_trace, poisson_arrivals
from artist.workload.job import Job

USERS = 100

SPREAD = 1.5
"""Standard deviation of the logarithm of run times. This is an assumption.

The longest of a thousand runs takes a hundred times as long as the median.
"""

MEDIAN_EVALUATION_S = 120.0


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job. `sizes` are GPUs with their shares, `models` are equally probable."""

    name: str
    of_jobs: float
    of_gpu_time: float
    sizes: dict[int, float]
    models: tuple[str, ...]

    def mean_gpus(self, most: int) -> float:
        """Mean GPUs of a job, if no job has more than `most`."""
        sizes = {gpus: share for gpus, share in self.sizes.items() if gpus <= most}
        return sum(g * share for g, share in sizes.items()) / sum(sizes.values())


KINDS = (
    JobKind(
        "pretraining",
        0.032,
        0.940,
        {256: 0.20, 512: 0.35, 1024: 0.45},
        ("llama3-70b", "qwen3-235b-a22b", "deepseek-v3"),
    ),
    JobKind(
        "evaluation",
        0.929,
        0.008,
        {1: 0.25, 2: 0.25, 4: 0.25, 8: 0.25},
        ("llama3-8b", "qwen3-8b"),
    ),
    JobKind(
        "tuning",
        0.039,
        0.052,
        {8: 0.25, 16: 0.25, 32: 0.25, 64: 0.25},
        ("llama3-8b", "llama3-70b", "qwen3-30b-a3b"),
    ),
)


def llm_jobs(jobs: int, load: float, gpus: int, seed: int) -> Trace:
    """Jobs with Poisson arrivals that demand `load` of a cluster of `gpus` GPUs on average.

    Jobs larger than the cluster are left out of the mix; each kind keeps its share of GPU time.

    Raises:
        ConfigError: a number is not positive, or the cluster is too small for a kind.
    """
    check_positive(jobs, gpus, load)
    smallest = max(min(kind.sizes) for kind in KINDS)
    if gpus < smallest:
        raise ConfigError(
            f"--shape llm --gpus {gpus}: pretraining takes at least {smallest} GPUs; give that many"
        )
    rng = stream(seed, "trace.llm")
    kinds = rng.choice(len(KINDS), jobs, p=[kind.of_jobs for kind in KINDS])
    drawn = [_drawn(rng, KINDS[kind], gpus) for kind in kinds.tolist()]
    arrivals_s = poisson_arrivals(
        rng, [size * iterations * step_s for size, _, iterations, step_s in drawn], load, gpus
    )
    weights = 1 / np.arange(1, USERS + 1)  # Zipf's law, as in `generate.py`
    users = rng.choice(USERS, jobs, p=weights / weights.sum())
    return drawn_trace(
        f"llm-{jobs}",
        tuple(
            Job(str(number), arrival_s, size, model, iterations, step_s, f"u{user}")
            for number, arrival_s, user, (size, model, iterations, step_s) in zip(
                itertools.count(), arrivals_s.tolist(), users.tolist(), drawn, strict=False
            )
        ),
    )


def _drawn(rng: np.random.Generator, kind: JobKind, most: int) -> tuple[int, str, int, float]:
    """GPUs, model, iterations and seconds of an iteration of one job."""
    sizes = {gpus: share for gpus, share in kind.sizes.items() if gpus <= most}
    shares = np.array(list(sizes.values()))
    gpus = list(sizes)[int(rng.choice(len(sizes), p=shares / shares.sum()))]
    model = kind.models[int(rng.integers(len(kind.models)))]
    name, step_s = _on_gpus(model, gpus)
    run_s = median_s(kind, most) * math.exp(SPREAD * rng.standard_normal())
    return gpus, name, max(1, round(run_s / step_s)), step_s


def median_s(kind: JobKind, most: int) -> float:
    """The median run time of a kind, in seconds.

    Kinds have equal spreads, so medians have the same ratios as means. GPU time is jobs x GPUs x
    run time.
    """
    _, evaluation, _ = KINDS

    def of(one: JobKind) -> float:
        return one.of_gpu_time / one.of_jobs / one.mean_gpus(most)

    return MEDIAN_EVALUATION_S * of(kind) / of(evaluation)


@cache
def _on_gpus(model: str, gpus: int) -> tuple[str, float]:
    """A model's name with its axes on this number of GPUs, and the compute time of a step."""
    from artist.estimates.latency_service import single_gpu_ns
    from artist.trace.native.divided_models import published_model
    from artist.workload.models import canonical, workload

    name = f"{model}@gpu=h100"
    name = published_model(name, gpus) or canonical(name)
    return name, single_gpu_ns(workload(name)) / 1e9
