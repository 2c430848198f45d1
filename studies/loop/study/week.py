"""The simulated weeks: a warehouse that begins at MAST's V0, its regions as clusters, and jobs.

| what | here | source |
|---|---|---|
| tables, homes, readers, urgent demand | `artist trace synth --shape warehouse` | V0, section 5.6 |
| regions | 12, whole racks of 32 GPUs, at least two | supply of V0; 64 GPUs is the P90 of jobs |
| kinds of GPUs | one: measured demand has no kinds | ours |
| recurring jobs | 30 % of the runs; each runs every day | sections 3.1, 5.1 |
| first-time jobs | run once; each week draws again among the same | "share input tables" (3.1) |
| priorities 4 to 7 | GPU hours times a factor, so that all jobs want `LOAD` times the GPUs | ours |
| a run | near 4 h; two and more where one took above 12 h on 64 GPUs | ours |
| tenants | 10, quotas together 1.5 times the GPUs | ours |
| wide-area network | 100 Gbit/s per region | ours |
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from artist.rng import stream
from artist.warehouse.synthetic import synth_warehouse

ROWS, TABLES, GPUS, REGIONS = 1200, 200, 1536, 12
RECURRING = 0.3
"""Of the runs of a week."""
LOAD = 1.1
WEEK_H, HOUR_S = 168, 3600.0
RUNS, MOST_GPUS, MOST_H, USUAL_H = 7, 64, 12.0, 4.0
TENANTS, QUOTAS = 10, 1.5
RACK = 32
URGENT = 3

Columns = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class World:
    """What does not change from week to week."""

    truth: Columns
    """The warehouse with all rows of demand: of these weeks draw."""
    racks: tuple[int, ...]
    """Of each region."""
    recurring: np.ndarray
    """NumberLists of demand with GPUs that come every week."""
    others: np.ndarray
    seed: int

    @property
    def gpus(self) -> int:
        """All of them."""
        return RACK * sum(self.racks)


def world(seed: int) -> World:
    """The warehouse of a replicate, with one kind of GPUs in whole racks."""
    made = synth_warehouse(ROWS, GPUS, seed, REGIONS, TABLES)
    demand = made["demand"]
    with_gpus = np.flatnonzero([bool(kind) for kind in demand["kind"]])
    training = stream(seed, "study.loop.recurring").permutation(with_gpus)
    count = round(len(training) * RECURRING / (RECURRING + RUNS * (1 - RECURRING)))
    recurring = np.sort(training[:count])
    gpu_h, urgent = np.array(demand["gpu_h"]), np.array(demand["priority"]) <= URGENT
    before = _at_home(made, gpu_h * urgent)
    gpu_h[recurring] *= RUNS
    supply = np.array([sum(hours) for hours in made["regions"]["supply_gpu_h"]])
    supply *= _at_home(made, gpu_h * urgent) / before
    scale = GPUS * WEEK_H / supply.sum()
    gpu_h, supply = gpu_h * scale, supply * scale
    racks = np.maximum(MOST_GPUS // RACK, np.rint(supply / WEEK_H / RACK)).astype(int)
    made["regions"]["kinds"] = [["gpu"]] * REGIONS
    made["regions"]["supply_gpu_h"] = [[float(RACK * WEEK_H * count)] for count in racks]
    demand["kind"] = ["gpu" if kind else "" for kind in demand["kind"]]
    wanted = LOAD * RACK * WEEK_H * racks.sum() - gpu_h[urgent].sum()
    demand["gpu_h"] = np.where(urgent, gpu_h, gpu_h * max(0.0, wanted) / gpu_h[~urgent].sum())
    return World(made, tuple(racks.tolist()), recurring, training[count:], seed)


def _at_home(made: Columns, gpu_h: np.ndarray) -> np.ndarray:
    """GPU hours of each region: those of jobs whose tables are all there."""
    homes = dict(zip(made["tables"]["table"], made["tables"]["home"], strict=True))
    summed = dict.fromkeys(made["regions"]["region"], 0.0)
    for tables, hours in zip(made["demand"]["tables"], gpu_h.tolist(), strict=True):
        regions = {homes[table] for table in tables}
        if len(regions) == 1:
            summed[regions.pop()] += hours
    return np.array(list(summed.values()))


def known(of: World) -> Columns:
    """What the first plan knows: recurring jobs, as many GPU hours as all, and analytics."""
    demand = of.truth["demand"]
    kinds = np.array(demand["kind"]) != ""
    rows = np.sort(np.concatenate([of.recurring, np.flatnonzero(~kinds)]))
    gpu_h = np.array(demand["gpu_h"])
    gpu_h = gpu_h * gpu_h[kinds].sum() / gpu_h[of.recurring].sum()
    picked = {name: [column[x] for x in rows] for name, column in demand.items()}
    picked["gpu_h"] = gpu_h[rows].tolist()
    return {**of.truth, "demand": picked}


def write_cluster(of: World, path: Path) -> None:
    """The regions as a cluster file, with the storage of the warehouse."""
    regions = of.truth["regions"]
    lines = [
        "name: loop",
        "summary: Regions of a synthetic warehouse",
        "fabric: hgx-h100",
        "levels: [region, rack, machine]",
        "wide_area: {bandwidth: 100Gbit/s, latency: 30ms, source: an assumption}",
        "tree:",
    ]
    for name, storage, racks in zip(
        regions["region"], regions["storage_bytes"], of.racks, strict=True
    ):
        inside = f"rack: {{count: {racks}, machine: {{count: {RACK // 8}, gpus: 8}}}}"
        lines.append(f"  - {{name: {name}, storage_bytes: {int(storage)}, {inside}}}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_week(of: World, number: int, path: Path) -> None:
    """The jobs of a week as a trace. First-time rows are redrawn each week."""
    rng = stream(of.seed, f"study.loop.week.{number}")
    firsts = rng.choice(of.others, len(of.others))
    demand, jobs = of.truth["demand"], []
    for place, row in enumerate([*of.recurring.tolist(), *firsts.tolist()]):
        name = f"job{row}" if place < len(of.recurring) else f"first{number}-{place}"
        tenant = f"team-{_tenant(demand, row)}"
        recurs = place < len(of.recurring)
        gpus, count, run_s = _runs(float(demand["gpu_h"][row]), RUNS if recurs else 1)
        arrivals = (np.arange(count) + rng.random()) / count if recurs else rng.random(count)
        jobs += [
            (at * WEEK_H * HOUR_S, f"{name}@{number}-{x}", gpus, run_s, tenant, row)
            for x, at in enumerate(arrivals.tolist())
        ]
    with path.open("w", encoding="utf-8", newline="") as stream_:
        writer = csv.writer(stream_, lineterminator="\n")
        head = "job_id,arrival_s,gpus,model,iterations,compute_s,tenant,priority,tables"
        writer.writerow(head.split(","))
        for at, name, gpus, run_s, tenant, row in sorted(jobs):
            steps = max(1, round(run_s / 10))
            tables = " ".join(demand["tables"][row])
            cells = (steps, 10.0, tenant, int(demand["priority"][row]), tables)
            writer.writerow((name, f"{at:.3f}", gpus, "bert-large", *cells))


def _tenant(demand: Mapping[str, Any], row: int) -> int:
    """Teams are those of applications."""
    return int(demand["application"][row].removeprefix("app")) % TENANTS


def _runs(gpu_h: float, least: int) -> tuple[int, int, float]:
    """GPUs of a run, runs in a week, and seconds of a run: near `USUAL_H` where GPUs allow it."""
    count = least * math.ceil(gpu_h / least / (MOST_GPUS * MOST_H))
    gpus = min(MOST_GPUS, 2 ** max(0, round(math.log2(max(1.0, gpu_h / count / USUAL_H)))))
    return gpus, count, max(60.0, gpu_h / count / gpus * HOUR_S)


def tenants(of: World) -> dict[str, int]:
    """Quotas in GPUs."""
    return {f"team-{x}": min(of.gpus, int(QUOTAS * of.gpus / TENANTS)) for x in range(TENANTS)}
