"""Seeded generators of job traces.

`family_trace` imitates a measured workload (`families`) so closely that results
on it stand for results on the original: for every seed the counts by model and
by GPU demand are exact, and GPU-hours per demand and the quantiles of the ideal
run time stay within a tenth. Run times are drawn stratified: the n jobs of one
demand take one value each from n equal slices of its quantile function, near
the middle of the slice, and are then scaled to the mean of those middles, so
that GPU-hours do not depend on the seed. What varies is everything a scheduler
can stumble over: who comes when, which model is long, the step length, the user.

`synth_jobs` draws freely from the same mix for any number of jobs, any cluster
and any load.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.trace.native.writer import digest
from artist.trace.synthetic.families import BATCH, COMPUTE_S, Demand, Family, Floats
from artist.units import MAX_TIME_S
from artist.workload.job import Job

Indices = npt.NDArray[np.int64]

_MODELS = tuple(COMPUTE_S)
_LOW_S, _HIGH_S = np.log(np.array(list(COMPUTE_S.values()))).T

# Width of the band around a slice's middle from which a stratified value comes,
# as a share of the slice. The whole slice (1) pushes p5 and p99 out of their tenth.
_JITTER = 0.4

# In the measured workloads the models with longer steps also run longer. Models
# are ranked by step length plus normal noise of this many ranks; with 2 the
# batch's median run times come out near the measured ones (BERT 80,000 s for
# 71,000 s, ResNet50 41,000 s for 47,000 s).
_RANK_NOISE = 2.0

_BLOCK_JOBS = 65_536


class _Draw(NamedTuple):
    """Jobs without id and arrival, column by column."""

    gpus: Indices
    model: Indices
    ideal_s: Floats


def family_trace(family: Family, seed: int) -> Trace:
    """A trace of a family's shape; the same for the same seed."""
    rng = stream(seed, f"trace.{family.id}")
    draws = [_stratified(rng, demand) for demand in family.demands]
    draw = _shuffled(rng, draws)
    # A Poisson process, given its number of arrivals, is that many uniform times.
    arrivals_s = np.sort(rng.random(len(draw.gpus)) * family.horizon_s)
    return _trace(family.id, tuple(_jobs(rng, draw, arrivals_s, family.users, first=0)))


def synth(jobs: int, load: float, gpus: int, seed: int) -> Trace:
    """The jobs of `synth_jobs` as a trace in memory."""
    return _trace(f"synth-{jobs}", tuple(synth_jobs(jobs, load, gpus, seed)))


def synth_jobs(jobs: int, load: float, gpus: int, seed: int) -> Iterator[Job]:
    """Draw `jobs` jobs that arrive as a Poisson process, a block at a time.

    The rate makes the expected demand `load` GPU-seconds per GPU-second of a
    cluster of `gpus` GPUs. The mix is the batch family's, less the gangs that
    the cluster cannot hold.

    Raises:
        ConfigError: a number that no trace can be made of.
    """
    if jobs < 1 or gpus < 1 or not 0 < load < math.inf:
        raise ConfigError(
            f"--jobs {jobs} --gpus {gpus} --load {load}: expected positive numbers; correct them"
        )
    demands = [demand for demand in BATCH.demands if demand.gpus <= gpus]
    share = np.array([demand.jobs for demand in demands], float)
    share /= share.sum()
    gpu_s = np.array([demand.gpus * demand.mean_ideal_s() for demand in demands])
    gap_s = float(share @ gpu_s) / (load * gpus)
    if jobs * gap_s > MAX_TIME_S / 2:
        raise ConfigError(
            f"--load {load}: {jobs} jobs would arrive over {jobs * gap_s:.1e} s, expected at "
            f"most {MAX_TIME_S / 2:.0e}; raise the load or lower the number of jobs"
        )
    return _blocks(jobs, demands, share, gap_s, seed)


def _blocks(
    jobs: int, demands: list[Demand], share: Floats, gap_s: float, seed: int
) -> Iterator[Job]:
    rng = stream(seed, "trace.synth")
    clock_s = 0.0
    for first in range(0, jobs, _BLOCK_JOBS):
        size = min(_BLOCK_JOBS, jobs - first)
        counts = rng.multinomial(size, share)
        draw = _shuffled(rng, [_free(rng, *x) for x in zip(demands, counts, strict=True)])
        arrivals_s = clock_s + np.cumsum(rng.exponential(gap_s, size))
        clock_s = float(arrivals_s[-1])
        yield from _jobs(rng, draw, arrivals_s, BATCH.users, first)


def _stratified(rng: np.random.Generator, demand: Demand) -> _Draw:
    size = demand.jobs
    middle = (np.arange(size) + 0.5) / size
    ideal_s = demand.ideal_s(middle + _JITTER * (rng.random(size) - 0.5) / size)
    ideal_s *= demand.ideal_s(middle).mean() / ideal_s.mean()
    counts = [demand.jobs_by_model.get(model, 0) for model in _MODELS]
    return _with_models(rng, demand, np.repeat(np.arange(len(_MODELS)), counts), ideal_s)


def _free(rng: np.random.Generator, demand: Demand, size: int) -> _Draw:
    weights = np.array([demand.jobs_by_model.get(model, 0) for model in _MODELS])
    models = rng.choice(len(_MODELS), size, p=weights / weights.sum())
    return _with_models(rng, demand, models, demand.ideal_s(np.sort(rng.random(size))))


def _with_models(
    rng: np.random.Generator, demand: Demand, models: Indices, ascending_s: Floats
) -> _Draw:
    """Give the longer run times to the models with the longer steps, noisily."""
    rank = models + _RANK_NOISE * rng.standard_normal(len(models))
    return _Draw(np.full(len(models), demand.gpus), models[np.argsort(rank)], ascending_s)


def _shuffled(rng: np.random.Generator, draws: list[_Draw]) -> _Draw:
    order = rng.permutation(sum(len(draw.gpus) for draw in draws))
    gpus, model, ideal_s = (np.concatenate(x)[order] for x in zip(*draws, strict=True))
    return _Draw(gpus, model, ideal_s)


def _jobs(
    rng: np.random.Generator, draw: _Draw, arrivals_s: Floats, users: int, first: int
) -> Iterator[Job]:
    size = len(arrivals_s)
    span = _HIGH_S[draw.model] - _LOW_S[draw.model]
    # Whole nanoseconds: the last bits of exp differ between processors.
    compute_s = np.round(np.exp(_LOW_S[draw.model] + span * rng.random(size)), 9)
    iterations = np.maximum(1, np.rint(draw.ideal_s / compute_s)).astype(np.int64)
    # A few users submit most jobs: the k-th in proportion to 1/k.
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


def _trace(name: str, jobs: tuple[Job, ...]) -> Trace:
    numbers = range(1, len(jobs) + 1)
    return Trace(name, "synthetic", jobs, digest(jobs), numbers, unit="job")
