"""The rows of `results.csv`: one per run, with its place in its experiment and its results.

`results.csv` alone stands between the runs and the page. If you doubt a number on the page, you
find its runs there. `artist sweep studies/contention/experiment.yaml --out DIR` repeats them.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

from artist.experiments.experiment import Run, load_experiment, runs
from artist.run import simulate
from studies.common.rows import Row, RowsFile

HERE = Path(__file__).resolve().parent.parent
EXPERIMENTS = ("experiment", "slower")
"""One for each speed of the links, in the order of the page."""
PACKED = "-packed"
"""The experiment with this suffix has Gandiva with another placement; its rows come second."""
FILES = tuple(name + suffix for name in EXPERIMENTS for suffix in ("", PACKED))
"""The experiments' files, in the order of the rows."""

POLICIES = ("fifo", "las", "tiresias", "gandiva", "gandiva-packed", "themis", "dally")
RATIOS = (1, 2, 4)
RACK = "fabric.rack.oversubscription"
PLACE = ("experiment", "seed", "policy", "oversubscription", "contention")
METRICS = (
    "makespan_s",
    "jct_mean_s",
    "jct_p95_s",
    "queue_delay_mean_s",
    "comm_time_share",
    "gpu_allocated_share",
    "placements_machine",
    "placements_rack",
    "placements_network",
    "preemptions",
    "migrations",
    "contention_slowdown_mean",
    "contention_slowdown_p95",
    "contention_lost_job_h",
)
ROWS = RowsFile(HERE / "results.csv", (*PLACE, *METRICS), "contention")


def taken(folders: Sequence[Path]) -> list[Row]:
    """What the page needs of the results of the sweeps, in the order of the experiments."""
    rows: list[Row] = []
    for name, folder in zip(FILES, folders, strict=True):
        with (folder / "results.csv").open(encoding="utf-8", newline="") as stream:
            for run in csv.DictReader(stream):
                place = dict(zip(PLACE, place_of(name, run), strict=True))
                rows.append({column: place.get(column) or run[column] for column in ROWS.columns})
    return rows


def differing_runs(every: int) -> list[str]:
    """Repeat every Nth run of all experiments. The answer names those with another row."""
    kept = {tuple(row[column] for column in PLACE): row for row in ROWS.read()}
    planned = [(name, run) for name in FILES for run in planned_runs(name)]
    names = []
    for name, run in planned[::every]:
        place = place_of(name, dict(run.point))
        if place not in kept or not _same(kept[place], simulate(run.scenario).summary):
            names.append(" ".join(place))
    return names


def planned_runs(name: str) -> list[Run]:
    """The runs of an experiment's file."""
    return runs(load_experiment(HERE / f"{name}.yaml"))


def place_of(name: str, point: Mapping[str, object]) -> tuple[str, ...]:
    """The columns `PLACE` of a run of an experiment's file, from its settings in the grid."""
    packed = PACKED if name.endswith(PACKED) else ""
    policy = f"{point['policy']}{packed}"
    seed, ratio, contention = (str(point[key]) for key in ("seed", RACK, "contention"))
    return (name.removesuffix(PACKED), seed, policy, ratio, contention)


def _same(row: Row, summary: Mapping[str, object]) -> bool:
    """Whether a row says what a run says, to the last bit."""
    return all(row[name] == _text(summary.get(name)) for name in METRICS)


def _text(value: object) -> str:
    return "" if value is None else str(value)
