"""A workload with the published quantiles of MAST's (OSDI 2024): `mast-synth`.

| what | P50, P90, P99 | drawn from |
|---|---|---|
| GPUs of a workload | 16, 64, 128 (section 5.1) | powers of two, `GPU_SHARES` |
| run time | 20 min, 6.7 h, 66 h (section 5.1) | lognormal, median 20 min, sigma 2.3 |
| start of containers, `restart_s` | 150, 278, 449 s (section 5.5) | lognormal, sigma .48 |
| size of a partition | 565 MB, 103 GB, 7.5 TB (section 3.4) | lognormal, sigma 4.07 |
| workloads that share a partition | 3, 17, 45 (section 2) | log-linear between these |

Priorities have the shares of section 4.2. Draws are stratified: n values lie in n equal slices of
the quantile function, so that also a short trace has these quantiles.

The paper leaves open, and this module chooses:

- The paper's run times last until the next preemption; here a job ends after this time. No job
  runs longer than 30 days. GPUs and run times are independent.
- Sharing is not lognormal: a lognormal with the P50 and P90 misses the P99 by half.
- 40 tenants; the k-th submits a share proportional to 1/k. Jobs read two partitions, mostly of
  their own tenant, and a table has four partitions.
- A table lies in 1 to 5 regions with the shares `REGION_SHARES`, in an order of regions that the
  tenant has. So about 40 % of the jobs can run in four and more (section 5.3, Figure 7).
- All jobs train one model in steps of about a second: the paper names no models.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import NormalDist
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from artist.cluster.cluster_file import Cluster
from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.native.trace import Trace
from artist.trace.synthetic.generate import check_positive, drawn_trace, poisson_arrivals
from artist.units import size_text
from artist.workload.job import Job

Floats = npt.NDArray[np.float64]
Value = TypeVar("Value")

GPU_SHARES = {
    1: 0.05, 2: 0.05, 4: 0.08, 8: 0.22, 16: 0.25, 32: 0.15, 64: 0.15, 128: 0.046, 256: 0.004,
}  # fmt: skip
"""Shares of jobs. Only the three quantiles are published; each lies well inside its step."""

PRIORITY_SHARES = {1: 3.0, 2: 20.0, 3: 16.0, 4: 54.0, 5: 0.2, 6: 0.5, 7: 0.02, None: 6.0}
"""Percent of workloads (section 4.2). They sum to 99.72."""

REGION_SHARES = {1: 0.10, 2: 0.13, 3: 0.138, 4: 0.316, 5: 0.316}
"""Shares of tables. For 0.632^2 = 40 % of the jobs, two tables are both in four regions or more."""

RUN_MEDIAN_S, RUN_SIGMA, RUN_MOST_S = 1200.0, 2.3, 30 * 86_400.0
START_MEDIAN_S, START_SIGMA = 150.0, 0.48
SIZE_MEDIAN_BYTES, SIZE_SIGMA, SIZE_MOST_BYTES = 565e6, 4.07, 100e12
SHARING = ((0.0, 1.0), (0.5, 3.0), (0.9, 17.0), (0.99, 45.0), (1.0, 60.0))
"""Cumulative share of partitions, and the workloads that share one; both ends are assumed."""

# As in `generate.py`: with the whole slice (1), the P99 of short traces leaves its tenth.
_JITTER = 0.4

TENANTS = 40
PARTITIONS_PER_TABLE = 4
PARTITIONS_PER_JOB = 2
MODEL = "bert-large"


@dataclass(frozen=True, slots=True)
class TablePartition:
    """A partition of a tenant's table, which jobs read."""

    table: str
    name: str
    size_bytes: int
    tenant: int


@dataclass(frozen=True)
class MastWorkload:
    """Jobs and the partitions that they read."""

    trace: Trace
    partitions: tuple[TablePartition, ...]
    seed: int


def mast_synth(jobs: int, load: float, gpus: int, seed: int) -> MastWorkload:
    """Draw a workload for a cluster of `gpus` GPUs. The same seed gives the same workload.

    `load` is the demand in GPU-seconds per GPU-second. It sets the mean gap between arrivals.

    Raises:
        ConfigError: a number is not positive, or arrivals would exceed the engine's clock.
    """
    check_positive(jobs, gpus, load)
    rng = stream(seed, "trace.mast")
    shares = {count: share for count, share in GPU_SHARES.items() if count <= gpus}
    demand = _by_share(rng, shares, jobs)
    run_s = np.minimum(_lognormal(rng, jobs, RUN_MEDIAN_S, RUN_SIGMA), RUN_MOST_S).round(3)
    start_s = _lognormal(rng, jobs, START_MEDIAN_S, START_SIGMA).round(3)
    priorities = _by_share(rng, PRIORITY_SHARES, jobs)
    tenants = _by_share(rng, {k: 1 / (k + 1) for k in range(TENANTS)}, jobs)
    gpu_s = np.array(demand, float) * run_s
    arrivals_s = poisson_arrivals(rng, gpu_s.tolist(), load, gpus).tolist()
    partitions, reads = _partitions(rng, tenants)
    iterations = np.maximum(1, np.rint(run_s)).astype(np.int64)
    made = tuple(
        Job(
            str(number),
            arrivals_s[number],
            demand[number],
            MODEL,
            int(iterations[number]),
            float(run_s[number] / iterations[number]),
            restart_s=float(start_s[number]),
            tenant=f"t{tenants[number]}",
            priority=priorities[number],
            tables=tuple(f"{partitions[x].table}/{partitions[x].name}" for x in reads[number]),
        )
        for number in range(jobs)
    )
    return MastWorkload(drawn_trace(f"mast-synth-{jobs}", made), partitions, seed)


def data_file(workload: MastWorkload, cluster: Cluster) -> str:
    """The tables on the regions of a cluster file, as the text of a data file (`artist/data`).

    A region gets a table only if it has room: first the home, then the others of its tenant.

    Raises:
        ConfigError: a table fits into no region.
    """
    rng = stream(workload.seed, "data.mast")
    count = len(cluster.regions)
    room = [math.inf if x is None else x for x in cluster.storage_bytes[cluster.file.levels[0]]]
    orders = [rng.permutation(count).tolist() for _ in range(TENANTS)]
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow(("table", "partition", "size", "regions"))
    tables = [list(x) for _, x in groupby(workload.partitions, key=lambda part: part.table)]
    copies = _by_share(rng, REGION_SHARES, len(tables))
    for table, wanted in zip(tables, copies, strict=True):
        size = sum(partition.size_bytes for partition in table)
        regions = [x for x in orders[table[0].tenant] if room[x] >= size][:wanted]
        if not regions:
            raise ConfigError(
                f"table {table[0].table!r} of {size_text(size)} has no room in a region of "
                f"cluster {cluster.file.name!r}; give regions more storage, or draw fewer jobs"
            )
        for region in regions:
            room[region] -= size
        names = " ".join(cluster.regions[region] for region in regions)
        rows.writerows((x.table, x.name, x.size_bytes, names) for x in table)
    return out.getvalue()


def _stratified(rng: np.random.Generator, count: int) -> Floats:
    """Uniform numbers, one near the middle of each of `count` equal slices, in random order."""
    return (rng.permutation(count) + 0.5 + _JITTER * (rng.random(count) - 0.5)) / count


def _lognormal(rng: np.random.Generator, count: int, median: float, sigma: float) -> Floats:
    normal = NormalDist()
    # Never 0 or 1, where the normal distribution has no quantile.
    shares = np.clip(_stratified(rng, count), 1e-12, 1 - 1e-12).tolist()
    return np.array([median * math.exp(sigma * normal.inv_cdf(share)) for share in shares])


def _by_share(rng: np.random.Generator, shares: Mapping[Value, float], count: int) -> list[Value]:
    """Values with these shares, which need not sum to 1."""
    values, weights = list(shares), np.array(list(shares.values()))
    edges = np.cumsum(weights) / weights.sum()
    picked = np.searchsorted(edges[:-1], _stratified(rng, count), side="right")
    return [values[index] for index in picked.tolist()]


def _partitions(
    rng: np.random.Generator, tenants: Sequence[int]
) -> tuple[tuple[TablePartition, ...], list[list[int]]]:
    """Partitions, and for each job which of them it reads.

    The jobs are a deck of cards, in which those of a tenant lie together. A partition that k
    workloads share is dealt to the next k jobs. Each pass through the deck gives every job one
    partition.
    """
    jobs = len(tenants)
    reads: list[list[int]] = [[] for _ in range(jobs)]
    owners: list[int] = []
    for _ in range(PARTITIONS_PER_JOB):
        within = rng.permutation(jobs)
        deck = within[np.argsort(np.array(tenants)[within], kind="stable")].tolist()
        place = 0
        for shared in _sharing(rng, jobs):
            dealt = deck[place : place + shared]
            if not dealt:
                break
            for job in dealt:
                reads[job].append(len(owners))
            owners.append(tenants[dealt[0]])
            place += shared
    sizes = np.minimum(_lognormal(rng, len(owners), SIZE_MEDIAN_BYTES, SIZE_SIGMA), SIZE_MOST_BYTES)
    return _named(owners, np.maximum(1, np.rint(sizes)).astype(np.int64).tolist()), reads


def _named(owners: Sequence[int], sizes: Sequence[int]) -> tuple[TablePartition, ...]:
    """Group neighbouring partitions of a tenant into tables of up to `PARTITIONS_PER_TABLE`."""
    partitions: list[TablePartition] = []
    table = inside = 0
    for index, (owner, size) in enumerate(zip(owners, sizes, strict=True)):
        if index and (inside == PARTITIONS_PER_TABLE or owner != owners[index - 1]):
            table, inside = table + 1, 0
        partitions.append(TablePartition(f"table{table}", f"p{inside}", size, owner))
        inside += 1
    return tuple(partitions)


def _sharing(rng: np.random.Generator, jobs: int) -> list[int]:
    """The number of workloads that share each partition, for more partitions than needed."""
    shares, workloads = zip(*SHARING, strict=True)
    count = math.ceil(jobs / 6) + 50  # the mean is above 6
    drawn = np.exp(np.interp(_stratified(rng, count), shares, np.log(workloads)))
    counts: list[int] = np.minimum(np.rint(drawn), jobs).astype(np.int64).tolist()
    return counts
