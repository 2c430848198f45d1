"""Reproduces an item of a paper: does the missing runs, compares, writes tables and pictures.

All items of a paper share one sweep per output folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artist.errors import ConfigError
from artist.experiments.experiment import Experiment, runs
from artist.experiments.sweep import RunOutcome, SweepResult, sweep
from artist.io.writing import check_parent
from artist.papers import pictures
from artist.papers.comparing import (
    Values,
    claim_rows,
    judge,
    latency_rows,
    own_rows,
    value_rows,
)  # fmt: skip
from artist.papers.definition import Item, Paper
from artist.results.table_files import write_table

Rows = Sequence[Mapping[str, Any]]

PERMUTATION = 1
"""Every replicate has its own seed and this permutation, as in `studies/dally-paper`."""

FULL = 5
"""Seeds of a full reproduction: the fewest that give a verdict (`compare_values`)."""


@dataclass(slots=True)
class Reproduced:
    """The results of one item."""

    item: Item
    own: Rows = ()
    """Our values: policy, racks, metric, mean and range over the seeds."""
    beside: Rows = ()
    """Our values next to the paper's."""
    files: list[Path] = field(default_factory=list)
    failures: Sequence[RunOutcome] = ()
    """Runs that failed, and why; if there are any, the other fields are empty."""


def check_out(items: Sequence[Item], out: Path, *, overwrite: bool) -> None:
    """Refuse to replace the files of an earlier reproduction unasked; its runs are kept anyway.

    Raises:
        ConfigError: such files exist, or the folder cannot be written.
    """
    check_parent(out)
    for item in items:
        there = [*out.glob(f"{item.slug}.*"), *out.glob(f"{item.slug}-*")] if out.is_dir() else []
        if there and not overwrite:
            raise ConfigError(
                f"--out {out}: holds {there[0].name} already; choose another folder, or replace "
                "tables and pictures with --overwrite (runs are kept)"
            )


def reproduce(
    paper: Paper,
    item: Item,
    out: Path,
    command: Sequence[str],
    *,
    seeds: int,
    workers: int | None = None,
    on_done: Callable[[SweepResult], None] | None = None,
) -> Reproduced:
    """Run, compare and write one item. Without matplotlib, pictures are left out.

    Raises:
        ArtistError: the folder cannot be written, or belongs to another experiment.
    """
    made = Reproduced(item)
    if item.latencies:
        base = paper.base
        made.beside = latency_rows(item, str(base["fabric"]), str(base["calibration"]))
        out.mkdir(parents=True, exist_ok=True)
        _write(made, out)
        unit = "iteration time / compute time" if item.id == "figure 1" else "percent of compute"
        _draw(made, lambda: pictures.draw_pairs(
            made.beside, "level", "model", unit, out / item.slug))  # fmt: skip
        return made
    experiment = experiment_of(paper, item, seeds)
    folder = out / "sweep"
    result = sweep(experiment, folder, command, workers=workers, resume=True, on_done=on_done)
    if result.failures:
        made.failures = result.failures
        return made
    values = values_of(result, item.metrics)
    judged = judge(item, values)
    made.own = own_rows(item, values)
    made.beside = value_rows(item, values) or claim_rows(judged)
    _write(made, out)
    if item.drawn:
        folders = [folder / "runs" / run.id for run in runs(experiment)]
        _draw(made, lambda: pictures.draw_of_report(item, folders, out))
    elif item.values:
        stem = out / item.slug
        _draw(made, lambda: pictures.draw_pairs(made.beside, "metric", "policy", "s", stem))
    else:
        _draw(made, lambda: pictures.draw_bars(item, values, judged, out))
    return made


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


def values_of(result: SweepResult, metrics: Sequence[str]) -> Values:
    """The metrics of a sweep's rows, seed by seed."""
    columns: dict[tuple[int, str, str], list[float]] = {}
    for row in result.rows:
        for metric in metrics:
            key = (int(row["racks"]), str(row["policy"]), metric)
            columns.setdefault(key, []).append(float(row[metric]))
    return {key: tuple(column) for key, column in columns.items()}


def _write(made: Reproduced, out: Path) -> None:
    """Write `ITEM.csv` with our values, and `ITEM-paper.csv` with ours next to the paper's."""
    tables = {f"{made.item.slug}.csv": made.own, f"{made.item.slug}-paper.csv": made.beside}
    for name, rows in tables.items():
        if rows:
            write_table(rows, out / name)
            made.files.append(out / name)


def _draw(made: Reproduced, draw: Callable[[], list[Path]]) -> None:
    if pictures.can_draw():
        made.files += draw()
