"""Compares the simulation loop of the compiled core with that of the sources, in one run.

    python hatch_build.py build/compiled
    python benchmarks/cores.py --compiled build/compiled [--cases common480 philly82k million]
        [--policies fifo las] [--repeats 5]

Each loop runs in a process of its own, the cores turn by turn, and the median of the CPU times
counts. Both must write the same rows. `million` is a generated trace of a million jobs on 102,400
GPUs; it runs only if it is named.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
POLICIES = ("fifo", "las", "tiresias", "dally")
CORES = ("pure", "compiled")


def main() -> None:
    """Measure every case under every policy, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiled", type=Path, help="what `hatch_build.py FOLDER` wrote")
    parser.add_argument("--cases", nargs="*", default=("common480", "common5000", "philly82k"))
    parser.add_argument("--policies", nargs="*", default=POLICIES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--point", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.point:
        trace, racks, policy = chosen.point
        print(json.dumps(point(trace, int(racks), policy)))
        return
    from cases import COMMON480, COMMON1000, COMMON5000, PHILLY, Case

    from artist.cli.output import print_table

    known = {case.name: case for case in (COMMON480, COMMON1000, COMMON5000, PHILLY)}
    known["million"] = Case("million", "-", 1_000_000, 1600)
    packages = {"pure": ROOT, "compiled": chosen.compiled.resolve()}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.cases:
            trace, racks = known[name].trace(Path(folder)), known[name].racks
            for policy in chosen.policies:
                runs: dict[str, list[dict[str, Any]]] = {core: [] for core in CORES}
                for _ in range(chosen.repeats):
                    for core in CORES:
                        told = measured(packages[core], trace, racks, policy)
                        assert told["core"] == core, f"{packages[core]} has another core"
                        runs[core].append(told)
                rows.append((name, policy, *compared(runs)))
                print(*rows[-1], flush=True, file=sys.stderr)
    columns = ("trace", "policy", "pure, s", "compiled, s", "pure / compiled", "MiB, compiled")
    print_table(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", columns, rows)


def measured(package: Path, trace: Path, racks: int, policy: str) -> dict[str, Any]:
    """A loop of the package in a folder, in a fresh process."""
    command = [sys.executable, __file__, "--point", str(trace), str(racks), policy]
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONHASHSEED": "0"}
    ended = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    told: dict[str, Any] = json.loads(ended.stdout)
    return told


def compared(runs: dict[str, list[dict[str, Any]]]) -> tuple[str, str, str, str]:
    """Median CPU seconds of both cores, their ratio, and the compiled core's peak memory."""
    assert len({told["rows"] for told in runs["pure"] + runs["compiled"]}) == 1, "rows differ"
    pure_s, compiled_s = (median(told["loop_cpu_s"] for told in runs[core]) for core in CORES)
    peak_mib = max(told["peak_mib"] for told in runs["compiled"])
    return f"{pure_s:.3f}", f"{compiled_s:.3f}", f"{pure_s / compiled_s:.2f}", f"{peak_mib:,}"


def point(trace: str, racks: int, policy: str) -> dict[str, Any]:
    """CPU seconds of one loop in this process, a digest of its rows, and the peak memory."""
    import time

    from artist.config import Scenario
    from artist.engine.compiled_core import core
    from artist.garbage_collector import search_rarely
    from artist.run import prepare

    search_rarely()  # as `artist sim` does
    prepared = prepare(Scenario(trace=trace, racks=racks, policy=policy, backend="none"))
    begun = time.process_time()
    rows = prepared.simulator.run(prepared.policy)
    spent = time.process_time() - begun
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None, "the kernel reports no peak memory"
    digest = hashlib.sha256()
    for part in (rows.jobs, rows.placements, rows.timeline):
        for row in part:
            digest.update(repr(row).encode())
    return {
        "core": core(),
        "loop_cpu_s": spent,
        "rows": digest.hexdigest(),
        "peak_mib": int(peak[1]) // 1024,
    }


if __name__ == "__main__":
    main()
