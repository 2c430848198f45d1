"""Seeded generators of job traces.

`family_trace` imitates a measured workload (`families.py`) closely. For every seed, the numbers
of jobs by model and by GPU demand are exactly the measured ones. The GPU-hours per demand and the
quantiles of the ideal run time stay within a tenth of them.

Its run times are a stratified sample. The quantile function of a demand with n jobs is cut into
n equal slices, and each job takes a value near the middle of its slice. Then all values are
scaled so that their mean is the mean of the middles: GPU-hours do not depend on the seed.
Everything else that matters to a scheduler varies with the seed: arrivals, the model of each run
time, step lengths and users.

`synth_jobs` draws independent jobs from the batch family, for any number of jobs, any cluster and
any load.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.trace.native.writer import digest
from artist.trace.synthetic.families import BATCH, COMPUTE_S, Demand, Floats, WorkloadFamily
from artist.units import MAX_TIME_S
from artist.workload.job import Job

Indices = npt.NDArray[np.int64]

_MODELS = tuple(COMPUTE_S)
_LOG_LOW_S, _LOG_HIGH_S = np.log(np.array(list(COMPUTE_S.values()))).T

# A stratified value comes from a band around the middle of its slice. This is the width of the
# band as a share of the slice. With the whole slice (1), p5 and p99 leave their tenth.
_JITTER = 0.4

# In the measured workloads, models with longer steps also run longer. So models are ranked by
# step length plus normal noise, whose standard deviation is this number of ranks. With 2, the
# median run times of the batch come close to the measured ones: BERT 80,000 s instead of
# 71,000 s, ResNet50 41,000 s instead of 47,000 s.
_RANK_NOISE = 2.0

_BLOCK_JOBS = 65_536


class _Draw(NamedTuple):
    """Drawn jobs, column by column, without id and arrival. `model` is an index into `_MODELS`."""

    gpus: Indices
    model: Indices
    ideal_s: Floats


def family_trace(family: WorkloadFamily, seed: int) -> Trace:
    """A trace with the shape of a family. The same seed gives the same trace."""
    rng = stream(seed, f"trace.{family.id}")
    draws = [_stratified(rng, demand) for demand in family.demands]
    draw = _shuffled(rng, draws)
    # The arrivals of a Poisson process, if their number is given, are independent uniform times.
    arrivals_s = np.sort(rng.random(len(draw.gpus)) * family.horizon_s)
    return drawn_trace(family.id, tuple(_jobs(rng, draw, arrivals_s, family.users, first=0)))


def synth(jobs: int, load: float, gpus: int, seed: int) -> Trace:
    """The jobs of `synth_jobs` as a trace in memory."""
    return drawn_trace(f"synth-{jobs}", tuple(synth_jobs(jobs, load, gpus, seed)))


def synth_jobs(jobs: int, load: float, gpus: int, seed: int) -> Iterator[Job]:
    """Draw `jobs` jobs with Poisson arrivals, a block at a time to save memory.

    `load` is the expected demand in GPU-seconds per GPU-second of a cluster of `gpus` GPUs; it
    sets the mean gap between arrivals:

        gap = mean GPU-seconds of a job / (load x gpus)

    Jobs are drawn from the batch family, without the demands that exceed the cluster.

    Raises:
        ConfigError: a number is not positive, or arrivals would exceed the engine's clock.
    """
    check_positive(jobs, gpus, load)
    demands = [demand for demand in BATCH.demands if demand.gpus <= gpus]
    share = np.array([demand.jobs for demand in demands], float)
    share /= share.sum()
    gpu_s = np.array([demand.gpus * demand.mean_ideal_s() for demand in demands])
    gap_s = _mean_gap_s(jobs, float(share @ gpu_s), load, gpus)
    return _blocks(jobs, demands, share, gap_s, seed)


def check_positive(jobs: int, gpus: int, load: float | None) -> None:
    """Refuse numbers from which no trace can be drawn; a `load` of None was not given.

    Raises:
        ConfigError: one of them is not positive and finite.
    """
    if jobs < 1 or gpus < 1 or not (load is None or 0 < load < math.inf):
        given = f"--jobs {jobs} --gpus {gpus}" + (f" --load {load}" if load is not None else "")
        raise ConfigError(f"{given}: expected positive numbers; correct them")


def poisson_arrivals(
    rng: np.random.Generator, gpu_s: Sequence[float], load: float, gpus: int
) -> Floats:
    """Poisson arrivals (s), the first at 0, at which jobs of these GPU-seconds make this load.

    Raises:
        ConfigError: arrivals would exceed the engine's clock.
    """
    gap_s = _mean_gap_s(len(gpu_s), math.fsum(gpu_s) / len(gpu_s), load, gpus)
    gaps_s = rng.exponential(gap_s, len(gpu_s))
    gaps_s[0] = 0.0
    # Whole nanoseconds: the last bits of the logarithm differ between processors.
    arrivals_s: Floats = gaps_s.cumsum().round(9)
    return arrivals_s


def _mean_gap_s(jobs: int, gpu_s: float, load: float, gpus: int) -> float:
    """The mean gap between arrivals if a job takes `gpu_s` GPU-seconds on average."""
    gap_s = gpu_s / (load * gpus)
    if jobs * gap_s > MAX_TIME_S / 2:
        raise ConfigError(
            f"--load {load}: {jobs} jobs would arrive over {jobs * gap_s:.1e} s, expected at "
            f"most {MAX_TIME_S / 2:.0e}; raise the load or lower the number of jobs"
        )
    return gap_s


def _blocks(
    jobs: int, demands: list[Demand], share: Floats, gap_s: float, seed: int
) -> Iterator[Job]:
    """Jobs block by block; `share` is the probability of each demand."""
    rng = stream(seed, "trace.synth")
    clock_s = 0.0
    for first in range(0, jobs, _BLOCK_JOBS):
        size = min(_BLOCK_JOBS, jobs - first)
        counts = rng.multinomial(size, share)
        draw = _shuffled(rng, [_independent(rng, *x) for x in zip(demands, counts, strict=True)])
        arrivals_s = clock_s + np.cumsum(rng.exponential(gap_s, size))
        clock_s = float(arrivals_s[-1])
        yield from _jobs(rng, draw, arrivals_s, BATCH.users, first)


def _stratified(rng: np.random.Generator, demand: Demand) -> _Draw:
    """All jobs of one demand of a family, with a stratified sample of run times."""
    size = demand.jobs
    middle = (np.arange(size) + 0.5) / size
    ideal_s = demand.ideal_s(middle + _JITTER * (rng.random(size) - 0.5) / size)
    ideal_s *= demand.ideal_s(middle).mean() / ideal_s.mean()
    counts = [demand.jobs_by_model.get(model, 0) for model in _MODELS]
    return _with_models(rng, demand, np.repeat(np.arange(len(_MODELS)), counts), ideal_s)


def _independent(rng: np.random.Generator, demand: Demand, size: int) -> _Draw:
    """`size` jobs of one demand, with independent models and run times."""
    weights = np.array([demand.jobs_by_model.get(model, 0) for model in _MODELS])
    models = rng.choice(len(_MODELS), size, p=weights / weights.sum())
    return _with_models(rng, demand, models, demand.ideal_s(np.sort(rng.random(size))))


def _with_models(
    rng: np.random.Generator, demand: Demand, models: Indices, ascending_s: Floats
) -> _Draw:
    """Jobs with these models and run times: longer steps get longer run times, with noise."""
    rank = models + _RANK_NOISE * rng.standard_normal(len(models))
    return _Draw(np.full(len(models), demand.gpus), models[np.argsort(rank)], ascending_s)


def _shuffled(rng: np.random.Generator, draws: list[_Draw]) -> _Draw:
    order = rng.permutation(sum(len(draw.gpus) for draw in draws))
    gpus, model, ideal_s = (np.concatenate(x)[order] for x in zip(*draws, strict=True))
    return _Draw(gpus, model, ideal_s)


def _jobs(
    rng: np.random.Generator, draw: _Draw, arrivals_s: Floats, users: int, first: int
) -> Iterator[Job]:
    """The drawn jobs with ids from `first` on, steps and users.

    A step is log-uniform in the model's range, and a job has as many as its run time needs.
    """
    size = len(arrivals_s)
    span = _LOG_HIGH_S[draw.model] - _LOG_LOW_S[draw.model]
    # Rounded to whole nanoseconds, because the last bits of exp differ between processors.
    compute_s = np.round(np.exp(_LOG_LOW_S[draw.model] + span * rng.random(size)), 9)
    iterations = np.maximum(1, np.rint(draw.ideal_s / compute_s)).astype(np.int64)
    # A few users submit most jobs: the k-th user's share is proportional to 1/k (Zipf's law).
    weights = 1 / np.arange(1, users + 1)
    user = rng.choice(users, size, p=weights / weights.sum())
    return map(
        Job,
        map(str, itertools.count(first)),
        arrivals_s.tolist(),
        draw.gpus.tolist(),
        [_MODELS[i] for i in draw.model.tolist()],
        iterations.tolist(),
        compute_s.tolist(),
        [f"u{k}" for k in user.tolist()],
    )


def drawn_trace(name: str, jobs: tuple[Job, ...]) -> Trace:
    """Drawn jobs, in order of arrival, as a trace that has no file."""
    numbers = range(1, len(jobs) + 1)
    return Trace(name, "synthetic", jobs, digest(jobs), numbers, unit="job")
