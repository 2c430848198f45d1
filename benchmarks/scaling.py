"""Measures how CPU time and memory grow with jobs and GPUs, in one fresh process per point.

    python benchmarks/scaling.py --out DIR [--jobs 1000 10000] [--racks 2 16] [--policies fifo]
        [--compiled build/compiled]
    python benchmarks/scaling.py --out DIR --draw docs/scaling.svg

Each point reads a generated trace (`artist trace synth`, load 0.9, seed 7), simulates it without
communication on racks of 8 machines with 8 GPUs, and writes a run directory. It adds a line to
DIR/scaling.csv. A point that the file already has is not run again. `--draw` draws the whole file.
With `--compiled`, the folder that `hatch_build.py` wrote, each point runs on both cores in turn.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

from cases import synthetic

from artist.cli.output import print_table

JOBS = (1_000, 10_000, 100_000, 1_000_000)
RACKS = (2, 16, 160, 1600)
POLICIES = ("fifo", "dally")
ROOT = Path(__file__).resolve().parents[1]
COLUMNS = (
    "core",
    "policy",
    "jobs",
    "gpus",
    "events",
    "loop_cpu_s",
    "whole_cpu_s",
    "wall_s",
    "peak_mib",
    "allocated_share",
)
MIB_PER_KIB = 1 / 1024


def main() -> None:
    """Run the missing points, print all points, draw them if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder of scaling.csv and traces")
    parser.add_argument("--jobs", type=int, nargs="*", default=JOBS)
    parser.add_argument("--racks", type=int, nargs="*", default=RACKS)
    parser.add_argument("--policies", nargs="*", default=POLICIES)
    parser.add_argument("--compiled", type=Path, help="what `hatch_build.py FOLDER` wrote")
    parser.add_argument("--draw", type=Path, help="an SVG of everything in scaling.csv")
    parser.add_argument("--point", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.point:
        trace, racks, policy = chosen.point
        print(json.dumps(point(Path(trace), int(racks), policy)))
        return
    chosen.out.mkdir(parents=True, exist_ok=True)
    results = chosen.out / "scaling.csv"
    packages = [ROOT, *([chosen.compiled.resolve()] if chosen.compiled else ())]
    for jobs, racks, policy in product(chosen.jobs, chosen.racks, chosen.policies):
        for package in packages:
            _run_missing(results, jobs, racks, policy, package)
    rows = read(results)
    print_table(
        "scaling", (*COLUMNS, "us_per_job"), [(*row.values(), cost_us(row)) for row in rows]
    )
    if chosen.draw:
        draw(rows, chosen.draw)


def point(trace: Path, racks: int, policy: str) -> dict[str, Any]:
    """One row of the table: simulate in this process and measure it."""
    from artist.config import Scenario
    from artist.engine.compiled_core import core
    from artist.results.run_directory import write_run
    from artist.run import simulate

    begun = time.perf_counter()
    marks: list[float] = []

    def mark(_simulator: object) -> None:
        """Keep the time of the first and of the latest question: they enclose the loop."""
        marks[1:] = [time.process_time()] if marks else []
        if not marks:
            marks.append(time.process_time())

    scenario = Scenario(trace=str(trace), racks=racks, policy=policy, backend="none")
    result = simulate(scenario, on_question=mark)
    with tempfile.TemporaryDirectory(dir=trace.parent) as folder:
        write_run(result, Path(folder, "run"), sys.argv)
    status = Path("/proc/self/status").read_text()
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None, "the kernel reports no peak memory"
    return {
        "core": core(),
        "policy": policy,
        "jobs": result.summary["jobs_finished"],
        "gpus": result.summary["gpus"],
        "events": result.summary["events"],
        "loop_cpu_s": round(marks[-1] - marks[0], 3),
        "whole_cpu_s": round(time.process_time(), 3),
        "wall_s": round(time.perf_counter() - begun, 3),
        "peak_mib": round(int(peak[1]) * MIB_PER_KIB),
        "allocated_share": round(result.summary["gpu_allocated_share"], 4),
    }


def read(results: Path) -> list[dict[str, Any]]:
    """The points of the file, sorted by core, policy, jobs and GPUs."""
    if not results.exists():
        return []
    with results.open(newline="") as file:
        rows = [
            {**row, "jobs": int(row["jobs"]), "gpus": int(row["gpus"])}
            for row in csv.DictReader(file)
        ]
    return sorted(rows, key=itemgetter("core", "policy", "jobs", "gpus"))


def cost_us(row: dict[str, Any]) -> float:
    """CPU microseconds of the whole process per job."""
    return 1e6 * float(row["whole_cpu_s"]) / row["jobs"]


def _run_missing(results: Path, jobs: int, racks: int, policy: str, package: Path) -> None:
    gpus, core = racks * 64, "pure" if package == ROOT else "compiled"
    known = {itemgetter("core", "policy", "jobs", "gpus")(row) for row in read(results)}
    if (core, policy, jobs, gpus) in known:
        return
    trace = synthetic(jobs, gpus, results.parent)
    command = [sys.executable, __file__, "--out", str(results.parent), "--point"]
    ended = subprocess.run(
        [*command, str(trace), str(racks), policy],
        env={**os.environ, "PYTHONPATH": str(package)},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    row = json.loads(ended.stdout)
    assert row["core"] == core, f"{package} has another core"
    print(row, flush=True)
    new = not results.exists()
    with results.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw CPU time per job and peak memory over jobs, without a date.

    There is a line per cluster: dashed on the compiled core.
    """
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "scaling", "svg.fonttype": "none", "font.size": 9})
    import matplotlib.pyplot as plt

    policies = sorted({row["policy"] for row in rows})
    clusters = sorted({row["gpus"] for row in rows})
    colours = mpl.colormaps["viridis"]
    figure, axes = plt.subplots(
        2, len(policies), figsize=(4 * len(policies), 5.6), sharex=True, sharey="row", squeeze=False
    )
    for column, policy in enumerate(policies):
        for (index, gpus), core in product(enumerate(clusters), ("pure", "compiled")):
            of_line = (core, policy, gpus)
            line = [row for row in rows if itemgetter("core", "policy", "gpus")(row) == of_line]
            jobs = [row["jobs"] for row in line]
            style = {
                "color": colours(index / len(clusters)),
                "linestyle": "-" if core == "pure" else "--",
                "marker": "o" if core == "pure" else "s",
                "markersize": 4,
                "label": f"{gpus:,} GPUs, {core}",
            }
            axes[0][column].plot(jobs, [cost_us(row) for row in line], **style)
            axes[1][column].plot(jobs, [float(row["peak_mib"]) for row in line], **style)
        axes[0][column].set_title(policy)
        axes[1][column].set_xlabel("jobs")
    axes[0][0].set_ylabel("CPU per job (µs), whole command")
    axes[1][0].set_ylabel("peak memory (MiB)")
    for axis in axes.flat:
        axis.set(xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    axes[0][-1].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
