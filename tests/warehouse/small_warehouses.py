"""Small warehouses, and an oracle for them that shares no code with the product."""

from __future__ import annotations

import math

import numpy as np

from artist.warehouse.instance import Instance, NumberLists
from artist.warehouse.warehouse_schema import PlanOptions


def instance(seed: int, tables: int = 7, regions: int = 3, jobs: int = 12) -> Instance:
    """A random one, whose start keeps all limits."""
    rng = np.random.default_rng(seed)
    lists = [
        np.unique(rng.integers(tables, size=int(rng.integers(1, 4)))).tolist() for _ in range(jobs)
    ]
    starts = np.cumsum([0, *map(len, lists)])
    size = rng.integers(1, 100, tables)
    home = rng.integers(regions, size=tables)
    supply = rng.uniform(20, 100, (regions, 2)) * (rng.random((regions, 2)) < 0.8)
    supply[:, 0] += 5.0
    used = np.bincount(home, size, regions).astype(np.int64)
    return Instance(
        tables=[f"t{i}" for i in range(tables)],
        regions=tuple(f"r{i}" for i in range(regions)),
        kinds=("a", "b"),
        applications=("app0", "app1"),
        jobs=[f"j{i}" for i in range(jobs)],
        size=size,
        home=home,
        storage=np.maximum(used, int(size.sum() * 0.6)) + rng.integers(1, 50, regions),
        supply=supply,
        reads=NumberLists(starts, np.concatenate(lists).astype(np.int64)),
        kind=rng.integers(-1, 2, jobs),
        priority=rng.integers(0, 7, jobs),
        gpu_h=rng.uniform(0, 40, jobs),
        cpu_h=rng.uniform(0, 10, jobs),
        application=rng.integers(-1, 2, jobs),
        cpu_limit=rng.uniform(30, 90, (2, regions)),
    )


def region_of(x: Instance, job: int, home: list[int]) -> int | None:
    """All tables for training, more than half for analytics."""
    tables = x.reads.of(job).tolist()
    for region in range(len(x.regions)):
        there = sum(home[table] == region for table in tables)
        if there == len(tables) or (x.kind[job] < 0 and 2 * there > len(tables)):
            return region
    return None


def oracle(x: Instance, options: PlanOptions, home: list[int]) -> tuple[float, bool]:
    """Figure 4 and overload, one loop each: the objective, and whether (4) and (5) hold."""
    regions, kinds, jobs = range(len(x.regions)), range(len(x.kinds)), range(len(x.jobs))
    place = [region_of(x, job, home) for job in jobs]
    total = sum(x.size[t] for j in jobs for t in x.reads.of(j))
    read = sum(x.size[t] for j in jobs for t in x.reads.of(j) if place[j] != home[t])
    cost = options.w_read * read / total
    for r in regions:
        for k in kinds:
            here = [j for j in jobs if x.kind[j] == k and place[j] == r]
            demand, supply = sum(x.gpu_h[j] for j in here), x.supply[r, k]
            over = math.inf if supply == 0 and demand > 0 else 0.0
            if supply > 0:
                over = max(0.0, (demand - supply) / supply)
            for p in range(7):
                whole = sum(x.gpu_h[j] for j in jobs if x.kind[j] == k and x.priority[j] == p)
                if whole == 0:
                    continue
                mine = sum(x.gpu_h[j] for j in here if x.priority[j] == p)
                weight = options.w_urgent if p < options.urgent else options.w_other
                everywhere = x.supply[:, k].sum() or 1.0  # no region may have the kind
                uneven = (mine / whole - supply / everywhere) ** 2
                cost += options.w_gpu * weight * uneven / (1 + math.exp(-over))
        urgent = [j for j in jobs if x.kind[j] >= 0 and x.priority[j] < options.urgent]
        ratio = sum(x.gpu_h[j] for j in urgent if place[j] == r) / x.supply[r].sum()
        cost += options.w_overload * max(0.0, ratio - options.full)
        stored = sum(x.size[t] for t in range(len(home)) if home[t] == r)
        uneven = stored / x.size.sum() - x.storage[r] / x.storage.sum()
        cost += options.w_storage * uneven**2
    fits = all(
        sum(x.size[t] for t in range(len(home)) if home[t] == r) <= x.storage[r] for r in regions
    )
    for app in range(len(x.applications)):
        for r in regions:
            used = sum(x.cpu_h[j] for j in jobs if x.application[j] == app and place[j] == r)
            start = [region_of(x, j, x.home.tolist()) for j in jobs]
            before = sum(x.cpu_h[j] for j in jobs if x.application[j] == app and start[j] == r)
            fits &= used <= max(x.cpu_limit[app, r], before) + 1e-6
    return float(cost), bool(fits)


def at_home(x: Instance, options: PlanOptions, home: list[int]) -> float:
    """GPU hours of (6)."""
    hours = 0.0
    for job in range(len(x.jobs)):
        region = region_of(x, job, home)
        urgent = x.kind[job] >= 0 and x.priority[job] < options.urgent
        if urgent and region is not None and x.supply[region, x.kind[job]] > 0:
            hours += float(x.gpu_h[job])
    return hours
