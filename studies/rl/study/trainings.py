"""Trainings with several seeds: how much chance there is in a network.

`trainings.csv` has the mean JCT of each training on the traces of the judgement. Networks that do
not ship are not kept; the page has the commands that train them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

from artist.policies.learned.weights import read_weights
from studies.common.page import table
from studies.common.rows import Row, RowsFile
from studies.rl.study.observations import HERE, jct_mean_s
from studies.rl.study.plan import BATCH, FIRST_SEED, SEEDS, scenario

COLUMNS = ("network", "training_seed", "steps", "machines", "load", "seed", "jct_mean_s")
TRAININGS = RowsFile(HERE / "trainings.csv", COLUMNS, "rl")

CELLS = ((4, "0.8"), (4, "0.9"), (4, BATCH))


class Training(NamedTuple):
    """A file of weights, `FOLDER/NETWORK-SEED/policy.npz`, and how it is run.

    `options.json` beside it has options of policy `learned`, if there are any.
    """

    network: str
    seed: int
    file: Path
    options: dict[str, Any]


def trainings(folder: Path) -> list[Training]:
    """The trainings in a folder, by network and seed."""
    every = []
    for file in sorted(folder.glob("*-*/policy.npz")):
        network, _, seed = file.parent.name.rpartition("-")
        beside = file.with_name("options.json")
        options = json.loads(beside.read_text(encoding="utf-8")) if beside.is_file() else {}
        every.append(Training(network, int(seed), file, options))
    return every


def write_trainings(folder: Path) -> None:
    """Run all trainings of a folder on the traces of the judgement, and write their rows."""
    TRAININGS.write([row for training in trainings(folder) for row in _rows(training)])


def _rows(training: Training) -> Iterator[dict[str, object]]:
    steps = read_weights(training.file)[1].steps
    for machines, load in CELLS:
        for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
            options = {"weights": str(training.file), **training.options}
            jct = jct_mean_s(scenario(machines, load, "learned", options, seed))
            row = (training.network, training.seed, steps, machines, load, seed, f"{jct:.10g}")
            yield dict(zip(COLUMNS, row, strict=True))


def seeds_table(rows: Sequence[Row], base: dict[tuple[int, str], list[float]]) -> str:
    """Each training against a baseline, and mean and spread of a network's trainings.

    `base` has the baseline's mean JCT by cell, trace by trace.
    """
    by_training: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_training.setdefault((row["network"], row["training_seed"]), []).append(row)
    lines: list[list[str]] = []
    shares: dict[str, list[list[float]]] = {}
    for (network, seed), own in by_training.items():
        of_cells = [_more(own, cell, base[cell]) for cell in CELLS]
        shares.setdefault(network, []).append(of_cells)
        steps = f"{int(own[0]['steps']):,} steps"
        lines.append([f"{network}, seed {seed}, {steps}", *(f"{x:+.1f} %" for x in of_cells)])
    for network, every in shares.items():
        if len(every) > 1:
            columns = [*zip(*every, strict=True)]
            both = [f"{fmean(x):+.1f} % ± {stdev(x):.1f}" for x in columns]
            lines.append([f"{network}: mean ± standard deviation", *both])
    head = [f"{machines} machines, {load}" for machines, load in CELLS]
    return table(["training", *head], lines)


def _more(rows: Sequence[Row], cell: tuple[int, str], base: Sequence[float]) -> float:
    """Mean over traces of the JCT over the baseline's, less 1, in percent."""
    own = {
        int(row["seed"]): float(row["jct_mean_s"])
        for row in rows
        if (int(row["machines"]), row["load"]) == cell
    }
    values = [value for _, value in sorted(own.items())]
    return 100 * (fmean(x / y for x, y in zip(values, base, strict=True)) - 1)
