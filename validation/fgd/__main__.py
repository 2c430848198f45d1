"""`make fgd`: replay the published runs, and print how far each curve is from theirs."""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from artist.errors import ArtistError, ConfigError
from artist.pods.machine_file import MachineFile, load_machines
from artist.pods.pod_list import read_pods
from validation.fgd.go_random import GoRandom, read_table
from validation.fgd.replay import replay

PLACERS = {
    "02-DotProd": "dot-product",
    "03-GpuClustering": "gpu-clustering",
    "04-GpuPacking": "gpu-packing",
    "05-BestFit": "best-fit",
    "06-FGD": "fgd",
}
"""By the names in the published files. `01-Random` draws from several threads at once."""

COLUMNS = {
    "fgd_openb_alloc_1020runs.csv.gz": "allocated_percent",
    "fgd_openb_frag_amount_1020runs.csv.gz": "fragmented_percent",
}
PRINTED = 0.01
"""The published values are means of values with two digits, and have two digits."""

Run = tuple[str, str, int]
Published = dict[Run, npt.NDArray[np.float64]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Replay, compare, print a line for each workload and placer."""
    options = _parser().parse_args(arguments)
    try:
        file, table = load_machines("openb"), read_table(options.go_random)
        numbers = machine_numbers(file, options.data / "openb_node_list_gpu_node.csv")
        published = {column: read_runs(options.runs / name) for name, column in COLUMNS.items()}
        lines: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
        for run in published["allocated_percent"]:
            workload, placer, seed = run
            if options.workloads and workload not in options.workloads:
                continue
            path = options.data / f"{workload}.csv"
            pods, names = read_pods(path), [row["name"] for row in _rows(path)]
            found = replay(file, numbers, pods, names, PLACERS[placer], GoRandom(seed, table))
            at = found["demand_percent"].astype(int)
            kept = at < len(published["allocated_percent"][run])
            far = {
                column: float(np.nanmax(np.abs(found[column] - runs[run][at])[kept]))
                for column, runs in published.items()
            }
            lines[workload, placer].append(far)
    except (ArtistError, OSError) as cause:
        sys.stderr.write(f"error: {cause}\n")
        return cause.exit_code if isinstance(cause, ArtistError) else 3
    sys.stdout.write("workload\tplacer\truns\tequal\tallocated_max\tfragmented_max\n")
    for (workload, placer), runs in lines.items():
        equal = sum(max(run.values()) < PRINTED for run in runs)
        worst = (max(run[column] for run in runs) for column in COLUMNS.values())
        cells = (workload, placer, len(runs), equal, *(f"{value:.3f}" for value in worst))
        sys.stdout.write("\t".join(map(str, cells)) + "\n")
    return 0


def read_runs(path: Path) -> Published:
    """Percents by workload, policy and seed, at each percent of demand from 0; NaN where none."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    percents = [name for name in rows[0] if name.isdecimal()]
    return {
        (row["workload"], row["sc_policy"], int(row["seed"])): np.array(
            [float(row[name] or "nan") for name in percents]
        )
        for row in rows
        if row["sc_policy"] in PLACERS
    }


def machine_numbers(file: MachineFile, nodes: Path) -> list[int]:
    """The number in our file of each machine of the authors' list, which is sorted by name.

    Raises:
        ConfigError: a machine is in one of them only.
    """
    free: dict[tuple[str, ...], list[int]] = defaultdict(list)
    number = 0
    for group in file.machines:
        alike = (group.cpu_milli, group.memory_mib, group.gpus, group.kind)
        free[tuple(map(str, alike))] += range(number, number + group.count)
        number += group.count
    try:
        found = [
            free[row["cpu_milli"], row["memory_mib"], row["gpu"], row["model"]].pop(0)
            for row in sorted(_rows(nodes), key=lambda row: row["sn"])
        ]
    except IndexError as cause:
        raise ConfigError(f"{nodes}: has machines that {file.name} has not") from cause
    if len(found) != file.count:
        raise ConfigError(f"{nodes}: lacks machines of {file.name}")
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make fgd", description=__doc__)
    parser.add_argument("--runs", type=Path, required=True, help="folder of the published runs")
    parser.add_argument("--data", type=Path, required=True, help="data/csv of the authors' program")
    parser.add_argument("--go-random", type=Path, required=True, help="src/math/rand/rng.go of Go")
    parser.add_argument("--workloads", nargs="*", help="all of them by default")
    return parser


if __name__ == "__main__":
    sys.exit(main())
