"""A warehouse like V0, with which MAST's authors began (section 5.6).

By construction, the most overloaded region demands 2.63 times its supply for high priorities, and
the standard deviation over regions is 0.76. Supply is demand divided by such a ratio.

| what | from |
|---|---|
| sizes of tables | lognormal of what Tetris moves: median 565 MB, P90 103 GB (section 3.4) |
| readers of a table | in proportion to 3, 17, 45 at P50, P90, P99 (section 2) |
| GPU hours of a job | GPUs 16, 64, 128 and run times 20 min, 6.7 h, up to a day (5.1) |
| priorities | section 4.2; those without one count as the last |
| high-priority GPU hours at home | about 90.8 % at V0 (section 5.6) |

The paper leaves open, and this module chooses: region r is chosen by users in proportion to
1 / (r + 2); each region has two of three kinds of GPUs, and the largest has all; three of ten jobs
read two tables, an eighth of these in two regions; 4 % of the jobs want a kind that the region of
their tables lacks; an eighth of the rows is analytics that reads three tables; regions can store
three times what lies in them and at least as much as the mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from artist.errors import ConfigError
from artist.rng import stream
from artist.trace.synthetic.mast import (
    GPU_SHARES,
    PRIORITY_SHARES,
    RUN_MEDIAN_S,
    RUN_SIGMA,
    SHARING,
    SIZE_MEDIAN_BYTES,
    SIZE_MOST_BYTES,
    SIZE_SIGMA,
)
from artist.warehouse.instance import Floats, Ints

V0_MAX, V0_SD = 2.63, 0.76
"""Ratios of demand over supply at V0 (section 5.6)."""
KINDS = ("h100", "a100", "v100")
APPLICATIONS = 20
ANALYTICS, TWO_TABLES, APART, OTHER_KIND = 0.125, 0.3, 0.125, 0.04
SUPPLY_WEEK_H = 168.0
RUN_MOST_H = 24.0
"""Recurring jobs are trained again every day (section 3.1)."""


def synth_warehouse(
    jobs: int, gpus: int, seed: int, regions: int = 12, tables: int | None = None
) -> dict[str, dict[str, Any]]:
    """The columns of the four files. The same seed gives the same.

    `gpus` are offered for a week by all regions together; `tables` is a quarter of the jobs if it
    is not given.

    Raises:
        ConfigError: too few of something.
    """
    tables = max(regions, jobs // 4) if tables is None else tables
    if jobs < 50 or gpus < 1 or regions < 3 or tables < regions or regions > 62:
        raise ConfigError(
            f"--jobs {jobs} --gpus {gpus} --tables {tables}: a warehouse needs at least 50 jobs, 1 "
            f"GPU, 3 regions and a table per region ({regions}); raise them"
        )
    rng = stream(seed, "warehouse")
    home = _homes(rng, tables, regions)
    size = np.exp(math.log(SIZE_MEDIAN_BYTES) + SIZE_SIGMA * rng.standard_normal(tables))
    size = np.clip(np.rint(size), 1, SIZE_MOST_BYTES).astype(np.int64)
    has = np.ones((regions, len(KINDS)), np.bool_)
    has[np.arange(1, regions), np.arange(1, regions) % len(KINDS)] = False
    reads, analytics = _reads(rng, jobs, home, regions)
    kind = _kinds(rng, home[[x[0] for x in reads]], has)
    gpu_h, priority = _demand(rng, jobs)
    gpu_h = np.where(analytics, 0.0, gpu_h)
    together = np.array([len({int(home[t]) for t in x}) == 1 for x in reads])
    place = home[[x[0] for x in reads]]
    counted = together & ~analytics & (priority <= 3)
    urgent = np.zeros((regions, len(KINDS)))
    np.add.at(urgent, (place[counted], kind[counted]), gpu_h[counted])
    supply = _supply(urgent, has)
    scale = gpus * SUPPLY_WEEK_H / supply.sum()
    supply, gpu_h = np.round(supply * scale, 3), gpu_h * scale
    used = np.bincount(home, size.astype(float), regions)
    storage = np.maximum(3 * used, used.sum() / regions).astype(np.int64) + int(size.max())
    cpu_h = np.where(analytics, rng.exponential(100.0, jobs), 0.0).round(3)
    application = rng.integers(APPLICATIONS, size=jobs)
    names = [f"region{r}" for r in range(regions)]
    return {
        "tables": {
            "table": [f"table{t}" for t in range(tables)],
            "size_bytes": size,
            "home": [names[r] for r in home.tolist()],
        },
        "regions": {
            "region": names,
            "storage_bytes": storage,
            "kinds": [[k for k, x in zip(KINDS, row, strict=True) if x] for row in has],
            "supply_gpu_h": [supply[r][has[r]].tolist() for r in range(regions)],
        },
        "demand": {
            "job": [f"job{j}" for j in range(jobs)],
            "application": [f"app{a}" for a in application.tolist()],
            "kind": ["" if a else KINDS[k] for a, k in zip(analytics, kind.tolist(), strict=True)],
            "priority": priority,
            "gpu_h": gpu_h,
            "cpu_h": cpu_h,
            "tables": [[f"table{t}" for t in x] for x in reads],
        },
        "applications": _applications(application, cpu_h, place, names),
    }


def _homes(rng: np.random.Generator, tables: int, regions: int) -> Ints:
    """Users choose the first regions more often; every region has a table."""
    weight = 1 / (np.arange(regions) + 2)
    home: Ints = rng.choice(regions, tables, p=weight / weight.sum())
    home[:regions] = np.arange(regions)
    return home


def _reads(
    rng: np.random.Generator, jobs: int, home: Ints, regions: int
) -> tuple[list[list[int]], Any]:
    """The tables of each job, mostly of one region, and which jobs are analytics."""
    shares, workloads = zip(*SHARING, strict=True)
    hot = np.exp(np.interp(rng.random(len(home)), shares, np.log(workloads)))
    cumulated = np.cumsum(hot) / hot.sum()
    first = np.minimum(np.searchsorted(cumulated, rng.random(jobs)), len(home) - 1)
    by_region = [np.flatnonzero(home == r) for r in range(regions)]
    within = [np.cumsum(hot[x]) / hot[x].sum() for x in by_region]
    analytics = rng.random(jobs) < ANALYTICS
    more = np.where(analytics, 2, (rng.random(jobs) < TWO_TABLES).astype(int))
    apart = rng.random((jobs, 2)) < APART
    other, draw = rng.integers(regions, size=(jobs, 2)), rng.random((jobs, 2))
    region = np.where(apart, other, home[first][:, None])
    picked = np.zeros((jobs, 2), np.int64)
    for r in range(regions):
        chosen = region == r
        place = np.searchsorted(within[r], draw[chosen])
        picked[chosen] = by_region[r][np.minimum(place, len(by_region[r]) - 1)]
    columns = zip(first.tolist(), picked.tolist(), more.tolist(), strict=True)
    return [sorted({one, *others[:count]}) for one, others, count in columns], analytics


def _kinds(rng: np.random.Generator, home: Ints, has: Any) -> Ints:
    """A kind that the region of the first table has, with few exceptions."""
    draw = rng.random((len(home), len(KINDS)))
    lacks = rng.random(len(home)) < OTHER_KIND
    usable = np.where(lacks[:, None] & ~has[home].all(axis=1)[:, None], ~has[home], has[home])
    kind: Ints = np.where(usable, draw, -1.0).argmax(axis=1)
    return kind


def _demand(rng: np.random.Generator, jobs: int) -> tuple[Floats, Ints]:
    gpus = rng.choice(list(GPU_SHARES), jobs, p=_normed(GPU_SHARES.values()))
    run_h = np.exp(RUN_SIGMA * rng.standard_normal(jobs)) * RUN_MEDIAN_S / 3600.0
    priorities = [7 if x is None else x for x in PRIORITY_SHARES]
    priority = rng.choice(priorities, jobs, p=_normed(PRIORITY_SHARES.values()))
    return gpus * np.minimum(run_h, RUN_MOST_H), priority


def _normed(shares: Any) -> Floats:
    values = np.array(list(shares), float)
    normed: Floats = values / values.sum()
    return normed


def _supply(urgent: Floats, has: Any) -> Floats:
    """[R, K] supply such that demand over supply of regions has the maximum and deviation of V0."""
    regions = len(urgent)
    demand = urgent.sum(axis=1)
    if not (demand > 0).all():
        raise ConfigError(
            f"a region of {regions} has no job of high priority; raise --jobs, or use another seed"
        )
    ratio = np.empty(regions)
    ratio[np.argsort(-demand, kind="stable")] = _ratios(regions)
    share = np.where(has, urgent + 0.1 * demand[:, None], 0.0)
    share /= share.sum(axis=1, keepdims=True)
    supply: Floats = demand[:, None] / ratio[:, None] * share
    return supply


def _ratios(regions: int) -> Floats:
    """Ratios from `V0_MAX` down, with the standard deviation `V0_SD`: few are above 1."""
    falling = np.linspace(1.0, 0.0, regions) ** 3
    ratios: Floats = V0_MAX - V0_SD / falling.std() * (1.0 - falling)
    return ratios


def _applications(
    application: Ints, cpu_h: Floats, place: Ints, names: list[str]
) -> dict[str, Any]:
    """CPU hours that each application may use in a region.

    That is twice what it uses there, plus an even share of what it uses in all regions.
    """
    used = np.zeros((APPLICATIONS, len(names)))
    np.add.at(used, (application, place), cpu_h)
    limit = (2 * used + used.sum(axis=1, keepdims=True) / len(names)).round(3)
    app, region = np.indices(limit.shape).reshape(2, -1)
    return {
        "application": [f"app{a}" for a in app.tolist()],
        "region": [names[r] for r in region.tolist()],
        "cpu_h": limit.ravel(),
    }
