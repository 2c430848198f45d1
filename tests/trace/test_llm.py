"""Does a drawn mix of language-model jobs match the published one, and does it run?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from artist.errors import ConfigError
from artist.trace.synthetic.llm import KINDS, JobKind, llm_jobs
from artist.workload.job import Job
from artist.workload.models import settings


@cache
def drawn() -> Sequence[Job]:
    return llm_jobs(20_000, 0.8, 16_384, seed=1).jobs


def kind(job: Job) -> JobKind:
    large = job.gpus >= min(KINDS[0].sizes)
    small = job.gpus < 8 or (job.gpus == 8 and job.model.partition("@")[0] == "qwen3-8b")
    return KINDS[0] if large else KINDS[1] if small else KINDS[2]


def test_jobs_have_the_published_mean_of_gpus() -> None:
    assert np.mean([job.gpus for job in drawn()]) == pytest.approx(26.8, rel=0.05)


def test_kinds_have_the_published_shares_of_gpu_time() -> None:
    gpu_s = [job.gpus * job.ideal_s for job in drawn()]
    pretraining = sum(x for x, job in zip(gpu_s, drawn(), strict=True) if kind(job) is KINDS[0])
    assert pretraining / sum(gpu_s) == pytest.approx(0.94, abs=0.03)


def test_the_median_evaluation_takes_two_minutes() -> None:
    runs = [job.ideal_s for job in drawn() if job.gpus < 8]
    assert np.median(runs) == pytest.approx(120, rel=0.1)


def test_the_load_is_the_one_asked_for() -> None:
    gpu_s = sum(job.gpus * job.ideal_s for job in drawn())
    assert gpu_s / drawn()[-1].arrival_s / 16_384 == pytest.approx(0.8, rel=0.05)


def test_every_drawn_job_fits_its_axes() -> None:
    for model, gpus in {(job.model, job.gpus) for job in drawn()}:
        chosen = settings(model)
        assert gpus % (chosen.tensor * chosen.pipeline) == 0, model


def test_the_same_seed_draws_the_same_jobs_and_small_clusters_no_large_ones() -> None:
    assert llm_jobs(50, 0.8, 512, seed=3).jobs == llm_jobs(50, 0.8, 512, seed=3).jobs
    assert llm_jobs(50, 0.8, 512, seed=3).jobs != llm_jobs(50, 0.8, 512, seed=4).jobs
    assert max(job.gpus for job in llm_jobs(500, 0.8, 512, seed=3).jobs) <= 512


def test_a_cluster_without_room_for_pretraining_is_refused() -> None:
    with pytest.raises(ConfigError, match="pretraining takes at least 256 GPUs"):
        llm_jobs(5, 0.8, 128, seed=0)
