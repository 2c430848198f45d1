"""Compares the CPU time of backend `analytical` with that of the real ASTRA-sim program.

    python benchmarks/latency.py [--cases CASES.csv --workloads DIR] [--binary PATH]

Without `--binary` only the times of `analytical` are printed. No query uses the answer of an
earlier one.
"""

from __future__ import annotations

import argparse
import csv
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path

from artist.astra.files.case_table import run_cases
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.run import open_backend
from artist.workload.layers import quantised
from artist.workload.models import workload

REPEATS = 20


def resnet50_on_1024() -> LatencyQuery:
    """ResNet50 on 16 x 8 x 8 GPUs, ring on every level, 4 splits."""
    rings = ("ring",) * 3
    dims = (
        Dimension(Topology.SWITCH, 8, 400.0, 936.25),
        Dimension(Topology.SWITCH, 8, 50.0, 500.0),
        Dimension(Topology.SWITCH, 16, 12.5, 5000.0),
    )
    system = SystemSettings(rings, rings, rings, rings, preferred_dataset_splits=4)
    return LatencyQuery(quantised(workload("resnet50")), dims, system)


def cpu_s(backend: str, query: LatencyQuery, repeats: int) -> tuple[float, int]:
    """Median CPU seconds of a query, with child processes, and its answer in nanoseconds."""
    answering = open_backend(backend)
    times, finish = [], 0
    for _ in range(repeats):
        before = _used_s()
        finish = answering.estimate(query).finish_ns
        times.append(_used_s() - before)
    return statistics.median(times), finish


def _used_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def median_case_s(cases: Path, workloads: Path) -> tuple[float, int]:
    """Median wall seconds per case that was answered, and the number of these cases."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "results.csv")
        run_cases(cases, workloads, out)
        with out.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if not row["artist_error"]]
    return statistics.median(float(row["artist_wall_s"]) for row in rows), len(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--workloads", type=Path)
    parser.add_argument("--binary", type=Path)
    chosen = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    if chosen.cases and chosen.workloads:
        median, count = median_case_s(chosen.cases, chosen.workloads)
        print(f"recorded cases: {count}, median {median * 1e3:.2f} ms in process")
    query = resnet50_on_1024()
    ours, finish = cpu_s("analytical", query, REPEATS)
    print(f"resnet50 on 1,024 GPUs: {ours * 1e3:.2f} ms of CPU in process ({finish} ns)")
    if chosen.binary:
        theirs, real = cpu_s(f"astra-binary:{chosen.binary}", query, 1)
        print(f"  the real binary: {theirs:.1f} s of CPU ({real} ns), ratio {theirs / ours:,.0f}")


if __name__ == "__main__":
    main()
