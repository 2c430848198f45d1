"""Seeded generators of job traces.

`family_trace` imitates a measured workload (`families.py`) closely. For every seed, the number of
jobs and the GPU-hours of each model and GPU demand are the measured ones, and the quantiles of
the ideal run time stay within a tenth of them.

Its run times are a stratified sample. The quantile function of a cell with n jobs is cut into n
equal slices, and each job takes a value near the middle of its slice. Then all values are scaled
to the measured mean. Everything else that matters to a scheduler varies with the seed: arrivals,
users, and which job has which run time and step length.

`synth_jobs` draws independent jobs from the batch family, for any number of jobs, any cluster and
any load. `with_traits` adds what schedulers of elastic jobs and of several kinds of GPUs read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from artist.errors import ConfigError, did_you_mean, shortened
from artist.io.reading import as_float
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.trace.native.writer import digest
from artist.trace.synthetic.families import BATCH, COMPUTE_S, Cell, Floats, WorkloadFamily
from artist.units import MAX_TIME_S
from artist.workload.job import Job, is_ranged

Indices = npt.NDArray[np.int64]

_MODELS = tuple(COMPUTE_S)

# A stratified value comes from a band around the middle of its slice. This is the width of the
# band as a share of the slice. From 0.2 on, p99 leaves its tenth.
_JITTER = 0.15

_BLOCK_JOBS = 65_536

_MEAN_POINTS = 1_000
"""Points of a quantile function whose mean stands for its integral."""


class _Draw(NamedTuple):
    """Drawn jobs, column by column, without id and arrival. `model` is an index into `_MODELS`."""

    gpus: Indices
    model: Indices
    ideal_s: Floats
    compute_s: Floats


def family_trace(family: WorkloadFamily, seed: int) -> Trace:
    """A trace with the shape of a family. The same seed gives the same trace."""
    rng = stream(seed, f"trace.{family.id}")
    order = stream(seed, f"trace.{family.id}.arrival")
    draw = _shuffled(order, [_stratified(rng, cell) for cell in family.cells])
    # Given their number, the arrivals of a Poisson process are independent uniform times.
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

    Jobs are drawn from the batch family, without the jobs that exceed the cluster.

    Raises:
        ConfigError: a number is not positive, or arrivals would exceed the engine's clock.
    """
    check_positive(jobs, gpus, load)
    cells = [cell for cell in BATCH.cells if cell.gpus <= gpus]
    mean_gpu_s = sum(x.gpu_hours for x in cells) * 3600 / sum(x.jobs for x in cells)
    return _blocks(jobs, cells, _mean_gap_s(jobs, mean_gpu_s, load, gpus), seed)


MOST_JOBS = 100_000_000
"""A hundred times as many as the largest published traces hold."""


def check_positive(jobs: int, gpus: int, load: float | None) -> None:
    """Refuse numbers from which no trace can be drawn; a `load` of None was not given.

    Raises:
        ConfigError: one of them is not positive and finite, or there are too many jobs.
    """
    if not 1 <= jobs <= MOST_JOBS or gpus < 1 or not (load is None or 0 < load < math.inf):
        given = f"--jobs {jobs} --gpus {gpus}" + (f" --load {load}" if load is not None else "")
        raise ConfigError(f"{given}: expected positive numbers and at most {MOST_JOBS:,} jobs")


def poisson_arrivals(
    rng: np.random.Generator, gpu_s: Sequence[float], load: float, gpus: int
) -> Floats:
    """Poisson arrivals (s), the first at 0, so that jobs with these GPU-seconds have this load.

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


def _blocks(jobs: int, cells: list[Cell], gap_s: float, seed: int) -> Iterator[Job]:
    """Jobs block by block, `gap_s` apart on average."""
    rng = stream(seed, "trace.synth")
    share = np.array([cell.jobs for cell in cells], float)
    share /= share.sum()
    clock_s = 0.0
    for first in range(0, jobs, _BLOCK_JOBS):
        size = min(_BLOCK_JOBS, jobs - first)
        counts = rng.multinomial(size, share)
        drawn = [x for x in zip(cells, counts, strict=True) if x[1]]
        draw = _shuffled(rng, [_independent(rng, *x) for x in drawn])
        arrivals_s = clock_s + np.cumsum(rng.exponential(gap_s, size))
        clock_s = float(arrivals_s[-1])
        yield from _jobs(rng, draw, arrivals_s, BATCH.users, first)


def _stratified(rng: np.random.Generator, cell: Cell) -> _Draw:
    """All jobs of one cell of a family, with a stratified sample of run times."""
    middle = (np.arange(cell.jobs) + 0.5) / cell.jobs
    ideal_s = cell.relative_ideal_s(middle + _JITTER * (rng.random(cell.jobs) - 0.5) / cell.jobs)
    return _with_steps(rng, cell, ideal_s * (cell.mean_ideal_s / ideal_s.mean()))


def _independent(rng: np.random.Generator, cell: Cell, size: int) -> _Draw:
    """`size` jobs of one cell, with independent run times."""
    mean_s = cell.relative_ideal_s((np.arange(_MEAN_POINTS) + 0.5) / _MEAN_POINTS).mean()
    ideal_s = cell.relative_ideal_s(rng.random(size)) * (cell.mean_ideal_s / mean_s)
    return _with_steps(rng, cell, ideal_s)


def _with_steps(rng: np.random.Generator, cell: Cell, ideal_s: Floats) -> _Draw:
    """Jobs with these run times and steps of log-uniform length within the model's range.

    Steps are scaled, so that all jobs together have as many as in the measured workload.
    """
    size = len(ideal_s)
    shortest_s, longest_s = COMPUTE_S[cell.model]
    compute_s = shortest_s * (longest_s / shortest_s) ** rng.random(size)
    compute_s *= cell.step_s * (ideal_s / compute_s).sum() / ideal_s.sum()
    # Rounded to whole nanoseconds, because the last bits of exp differ between processors.
    compute_s = compute_s.clip(shortest_s, longest_s).round(9)
    model = np.full(size, _MODELS.index(cell.model))
    return _Draw(np.full(size, cell.gpus), model, ideal_s, compute_s)


def _shuffled(rng: np.random.Generator, draws: list[_Draw]) -> _Draw:
    order = rng.permutation(sum(len(draw.gpus) for draw in draws))
    return _Draw(*(np.concatenate(column)[order] for column in zip(*draws, strict=True)))


def _jobs(
    rng: np.random.Generator, draw: _Draw, arrivals_s: Floats, users: int, first: int
) -> Iterator[Job]:
    """The drawn jobs with ids from `first` on, and as many steps as their run time needs."""
    size = len(arrivals_s)
    iterations = np.maximum(1, np.rint(draw.ideal_s / draw.compute_s)).astype(np.int64)
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
        draw.compute_s.tolist(),
        [f"u{k}" for k in user.tolist()],
    )


def drawn_trace(name: str, jobs: tuple[Job, ...]) -> Trace:
    """Drawn jobs, in order of arrival, as a trace that has no file."""
    numbers = range(1, len(jobs) + 1)
    ranged = any(is_ranged(job) for job in jobs)
    return Trace(name, "synthetic", jobs, digest(jobs), numbers, unit="job", ranged=ranged)


_MOST_TIMES = 2
"""Most GPUs of an elastic job, relative to those drawn.

Pollux lets a job grow to twice what it has had (Qiao et al., OSDI 2021, section 4.2), so this is
one step of growth.
"""


def shares_of_kinds(text: str) -> dict[str, float]:
    """The share of the jobs that requires each kind, from `a100=0.3,h100=0.1`.

    Raises:
        ConfigError: a part is no `KIND=SHARE`, or the shares exceed 1.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        kind, _, share = (word.strip() for word in part.partition("="))
        value = as_float(share)
        if not kind or kind in shares or not 0 <= value <= 1:
            raise ConfigError(
                f"--gpu-kinds {shortened(text)}: {shortened(part)}, expected each kind once with a "
                "share from 0 to 1, as in a100=0.3,h100=0.1"
            )
        shares[kind] = value
    if (total := sum(shares.values())) > 1 + 1e-9:
        raise ConfigError(f"--gpu-kinds {shortened(text)}: shares of {total:g}, expected at most 1")
    return shares


def with_traits(
    jobs: Iterable[Job],
    *,
    elastic: float,
    kinds: Mapping[str, float],
    gpus: int,
    seed: int,
    there: Mapping[str, int] | None = None,
) -> Iterator[Job]:
    """The jobs, some of them elastic up to `gpus` GPUs, some with a kind.

    `elastic` is the share of jobs that may run on 1 GPU up to twice as many as drawn. Each kind is
    required by a share of the jobs; the others accept any. Both are drawn independently for each
    job. A job that wants more GPUs of its kind than are `there` accepts any. Nothing else changes,
    so the same seed gives the same jobs with and without these traits.

    Raises:
        ConfigError: none is there of a kind.
    """
    for kind in kinds:
        if there is not None and kind not in there:
            raise ConfigError(
                f"--gpu-kinds: the cluster has no GPUs of kind {shortened(kind)} "
                f"({did_you_mean(kind, list(there))}); correct it or --cluster"
            )
    draws = stream(seed, "trace.traits")
    for job in jobs:
        of_elastic, of_kind = draws.random(2).tolist()
        if of_elastic < elastic:
            most = max(job.gpus, min(_MOST_TIMES * job.gpus, gpus))
            job = replace(job, gpus_min=1, gpus_max=most)
        for kind, share in kinds.items():
            if of_kind < share:
                if there is None or job.gpus <= there[kind]:
                    job = replace(job, gpu_kinds=(kind,))
                break
            of_kind -= share
        yield job
