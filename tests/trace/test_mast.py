"""Does a workload of `mast-synth` have the quantiles that MAST's authors published?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from artist.cluster.cluster_file import load_cluster
from artist.cluster.tree import nested
from artist.data.catalogue import load_catalogue
from artist.data.store import Store
from artist.errors import ConfigError
from artist.trace.synthetic.mast import PRIORITY_SHARES, MastWorkload, data_file, mast_synth

SEEDS = (0, 1)
JOBS = 10_000

GB, TB = 1e9, 1e12
PUBLISHED = {
    "gpus": (16, 64, 128),
    "run_s": (20 * 60, 6.7 * 3600, 66 * 3600),
    "restart_s": (150, 278, 449),
    "size_bytes": (565e6, 103 * GB, 7.5 * TB),
    "sharing": (3, 17, 45),
}
"""P50, P90 and P99: sections 5.1, 5.5, 3.4 and 2."""


@cache
def synthetic(seed: int) -> MastWorkload:
    return mast_synth(JOBS, 1.0, 100_000, seed)


def values(workload: MastWorkload, what: str) -> list[float]:
    jobs = workload.trace.jobs
    if what == "sharing":
        return list(Counter(name for job in jobs for name in job.tables).values())
    if what == "size_bytes":
        return [partition.size_bytes for partition in workload.partitions]
    if what == "run_s":
        return [job.ideal_s for job in jobs]
    return [getattr(job, what) for job in jobs]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("what", PUBLISHED)
def test_each_published_quantile_is_met_within_a_tenth(what: str, seed: int) -> None:
    drawn = np.percentile(values(synthetic(seed), what), [50, 90, 99])
    assert drawn == pytest.approx(PUBLISHED[what], rel=0.1)


@pytest.mark.parametrize("seed", SEEDS)
def test_priorities_have_the_published_shares(seed: int) -> None:
    counts = Counter(job.priority for job in synthetic(seed).trace.jobs)
    total = sum(PRIORITY_SHARES.values())
    for priority, percent in PRIORITY_SHARES.items():
        # Stratified: a class has its share, but for a job at each of its ends.
        assert abs(counts[priority] - JOBS * percent / total) <= 2


def test_every_job_reads_two_partitions_and_a_partition_has_one_table_with_one_home() -> None:
    workload = synthetic(0)
    names = [f"{x.table}/{x.name}" for x in workload.partitions]
    assert len(set(names)) == len(names)
    assert {len(set(job.tables)) for job in workload.trace.jobs} == {2}
    assert {name for job in workload.trace.jobs for name in job.tables} == set(names)


def test_jobs_have_as_many_regions_to_run_in_as_at_meta(tmp_path: Path) -> None:
    """Figure 7: most have two and more candidate regions, about 40 % have four and more."""
    cluster = load_cluster("mast-5-regions")
    (tmp_path / "d.csv").write_text(data_file(synthetic(0), cluster))
    catalogue = load_catalogue(tmp_path / "d.csv", cluster)
    store = Store(catalogue, nested(("machine", "region"), [1]), 1, copied=True)
    candidates = [len(store.regions_holding(job)) for job in synthetic(0).trace.jobs]
    assert 0.35 < np.mean([count >= 4 for count in candidates]) < 0.45
    assert np.mean([count >= 2 for count in candidates]) > 0.5
    assert np.mean([count == 0 for count in candidates]) < 0.02


def test_tables_without_room_in_any_region_are_refused() -> None:
    cluster = load_cluster("mast-5-regions")
    small = replace(cluster, storage_bytes={"region": (10**9,) * 5})
    with pytest.raises(ConfigError, match="has no room in a region of cluster 'mast-5-regions'"):
        data_file(synthetic(0), small)
