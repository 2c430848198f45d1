"""Print a run of the benchmarks beside the committed baseline, as ratios.

    python benchmarks/compare.py RESULTS.json [--write]

A benchmark's work is its CPU seconds over those of a calibration loop in the same run
(`timing.py`), so that the baseline of one machine can be compared with a run on another. `--write`
makes these results the baseline; what they do not contain stays.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from artist.cli.output import print_table

BASELINE = Path(__file__).with_name("baseline.json")
NOTABLE = 1.25
"""Ratios beyond this, either way, are pointed out; repeats of one machine stay within it."""


def main() -> None:
    """Read, print, perhaps write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true", help="make this the baseline")
    chosen = parser.parse_args()
    found = json.loads(chosen.results.read_text())["benchmarks"]
    baseline: dict[str, float] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    columns = ("benchmark", "CPU s", "items per CPU s", "work", "baseline", "ratio", "")
    print_table("work: CPU time in calibration loops", columns, [_row(b, baseline) for b in found])
    if chosen.write:
        merged = baseline | {bench["name"]: round(_work(bench), 4) for bench in found}
        BASELINE.write_text(json.dumps(dict(sorted(merged.items())), indent=2) + "\n")


def _work(bench: dict[str, Any]) -> float:
    least: float = bench["stats"]["min"]
    unit: float = bench["extra_info"]["unit_s"]
    return least / unit


def _row(bench: dict[str, Any], baseline: dict[str, float]) -> tuple[str, ...]:
    name, cpu_s, work = bench["name"], bench["stats"]["min"], _work(bench)
    items = bench["extra_info"]["items"]
    cells = (name, f"{cpu_s:.4f}", f"{items / cpu_s:,.0f}" if items > 1 else "", f"{work:.3f}")
    if name not in baseline:
        return (*cells, "", "", "new")
    ratio = work / baseline[name]
    remark = "slower" if ratio > NOTABLE else "faster" if ratio < 1 / NOTABLE else ""
    return (*cells, f"{baseline[name]:.3f}", f"{ratio:.2f}", remark)


if __name__ == "__main__":
    main()
