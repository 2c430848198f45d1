"""Runs what a figure needs and has not been run yet, in one sweep per output folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from artist.experiments.experiment import Experiment, Run, runs
from artist.experiments.sweep import SweepResult, sweep
from artist.papers.definition import Item, Paper

PERMUTATION = 1
"""Every replicate has its own seed and this permutation, as in `studies/dally-paper`."""

FULL = 5
"""Seeds of a full reproduction: the fewest that give a verdict (`compare_values`)."""

Values: TypeAlias = Mapping[tuple[int, str, str], tuple[float, ...]]
"""(racks, policy, metric) -> value on each seed."""


def experiment_of(paper: Paper, item: Item, seeds: int) -> Experiment:
    """The runs of an item. All items of a paper have the same settings, so they share runs."""
    return Experiment(
        name=f"{paper.name}-figures",
        version=1,
        summary=f"{paper.source}: {item.id}",
        base=dict(paper.base),
        grid={
            "trace": [item.trace],
            "racks": list(item.racks),
            "policy": list(item.policies),
            "permutation": [PERMUTATION],
            "seed": list(range(seeds)),
        },
    )


def sweep_folder(out: Path) -> Path:
    """The folder of the runs inside the output folder."""
    return out / "sweep"


def run_missing(
    experiment: Experiment,
    out: Path,
    command: Sequence[str],
    *,
    workers: int | None,
    on_done: Callable[[SweepResult], None] | None = None,
) -> SweepResult:
    """Run what is missing; runs of the paper's other items stay.

    Raises:
        ConfigError: the folder holds something else or cannot be written.
    """
    folder = sweep_folder(out)
    return sweep(experiment, folder, command, workers=workers, resume=True, on_done=on_done)


def values_of(result: SweepResult, metrics: Sequence[str]) -> Values:
    """The metrics of a sweep's rows, seed by seed."""
    columns: dict[tuple[int, str, str], list[float]] = {}
    for row in result.rows:
        for metric in metrics:
            key = (int(row["racks"]), str(row["policy"]), metric)
            columns.setdefault(key, []).append(float(row[metric]))
    return {key: tuple(column) for key, column in columns.items()}


def run_folders(experiment: Experiment, out: Path) -> list[Path]:
    """The run directories of an experiment's grid."""
    grid: list[Run] = runs(experiment)
    return [sweep_folder(out) / "runs" / run.id for run in grid]
