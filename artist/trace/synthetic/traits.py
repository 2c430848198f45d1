"""Adds to drawn jobs what schedulers of elastic jobs and of several kinds of GPUs read.

    elastic   a share of the jobs may run on 1 GPU to twice as many as drawn
    kinds     a share of the jobs for each kind requires it; the others accept any

Which jobs these are is drawn for each job by itself. Nothing else of a job changes, so the same
seed gives the same jobs with and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from artist.errors import ConfigError, shortened
from artist.io.reading import as_float
from artist.rng import stream
from artist.workload.job import Job

_MOST_TIMES = 2
"""GPUs of an elastic job over those drawn. Pollux lets a job grow to twice what it has had (Qiao et
al., OSDI 2021, section 4.2), so this is one step of growth."""


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
    jobs: Iterable[Job], *, elastic: float, kinds: Mapping[str, float], gpus: int, seed: int
) -> Iterator[Job]:
    """The jobs, some of them elastic up to `gpus` GPUs, some with a kind."""
    draws = stream(seed, "trace.traits")
    for job in jobs:
        of_elastic, of_kind = draws.random(2).tolist()
        if of_elastic < elastic:
            most = max(job.gpus, min(_MOST_TIMES * job.gpus, gpus))
            job = replace(job, gpus_min=1, gpus_max=most)
        for kind, share in kinds.items():
            if of_kind < share:
                job = replace(job, gpu_kinds=(kind,))
                break
            of_kind -= share
        yield job
