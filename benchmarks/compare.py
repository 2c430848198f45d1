"""Prints the results of the benchmarks beside the committed baseline, with ratios.

    python benchmarks/compare.py RESULTS.json [--write]

    work = CPU seconds of the benchmark / CPU seconds of a calibration loop in the same run

Work hardly depends on the machine, so a baseline from one machine can be compared with a run on
another (`timing.py`). `--write` makes these results the baseline. Benchmarks that this run did not
contain keep their old baseline.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from artist.cli.output import print_table

BASELINE = Path(__file__).with_name("baseline.json")
NOTABLE = 1.25
"""Greater ratios, and ratios below 1 / 1.25, are marked. Repeats on one machine vary less."""


def main() -> None:
    """Read the results, print the table, write the baseline if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--write", action="store_true", help="make this the baseline")
    chosen = parser.parse_args()
    results = json.loads(chosen.results.read_text())["benchmarks"]
    baseline: dict[str, float] = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    columns = ("benchmark", "CPU s", "items per CPU s", "work", "baseline", "ratio", "")
    rows = [_row(bench, baseline) for bench in results]
    print_table("work: CPU time in calibration loops", columns, rows)
    if chosen.write:
        merged = baseline | {bench["name"]: round(_work(bench), 4) for bench in results}
        BASELINE.write_text(json.dumps(dict(sorted(merged.items())), indent=2) + "\n")


def _cpu_s(bench: dict[str, Any]) -> float:
    cpu_s: float = bench["stats"][bench["extra_info"].get("statistic", "min")]
    return cpu_s


def _work(bench: dict[str, Any]) -> float:
    unit: float = bench["extra_info"]["unit_s"]
    return _cpu_s(bench) / unit


def _row(bench: dict[str, Any], baseline: dict[str, float]) -> tuple[str, ...]:
    name, cpu_s, work = bench["name"], _cpu_s(bench), _work(bench)
    items = bench["extra_info"]["items"]
    cells = (name, f"{cpu_s:.4f}", f"{items / cpu_s:,.0f}" if items > 1 else "", f"{work:.3f}")
    if name not in baseline:
        return (*cells, "", "", "new")
    ratio = work / baseline[name]
    remark = "slower" if ratio > NOTABLE else "faster" if ratio < 1 / NOTABLE else ""
    return (*cells, f"{baseline[name]:.3f}", f"{ratio:.2f}", remark)


if __name__ == "__main__":
    main()
