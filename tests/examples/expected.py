"""What the shipped experiments result in: `expected.csv` of examples and studies, one row per run.

    python tests/examples/expected.py [EXAMPLE...]      rewrite them (`make examples`)

Every figure of the summary stands there in full, so a changed result cannot hide in a
rounding. Figures about the simulator's own work, rather than the cluster, are left out.
"""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

from artist.experiments.experiment import Run, load_experiment, runs
from artist.run import simulate

ROOT = Path(__file__).parents[2]
OWN_ROWS = {"contention"}
"""Studies that keep a row per run in a file of their own (`tests/studies/`)."""
FOLDERS = {
    path.parent.name: path.parent
    for rooms in ("examples", "studies")
    for path in sorted(ROOT.glob(f"{rooms}/*/experiment.yaml"))
    if path.parent.name not in OWN_ROWS
}
NAMES = tuple(FOLDERS)

WORK = frozenset({"artist_version", "events", "wall_s"})


def experiment(example: str) -> Path:
    """The file that `artist sweep` reads."""
    return FOLDERS[example] / "experiment.yaml"


def expected(example: str) -> Path:
    """The file with its results."""
    return FOLDERS[example] / "expected.csv"


def row(run: Run) -> dict[str, str]:
    """Where a run stands in the grid, and its summary, as they are written."""
    point = {key: _written(value) for key, value in run.point}
    summary = simulate(run.scenario).summary
    figures = {
        key: _written(value)
        for key, value in summary.items()
        if key not in WORK and not key.startswith("latency_")
    }
    return {**figures, **point}


def rows(example: str) -> list[dict[str, str]]:
    """All rows of an example, simulated now."""
    return [row(run) for run in runs(load_experiment(experiment(example)))]


def known(example: str) -> list[dict[str, str]]:
    """All rows of an example, as they were written down."""
    with expected(example).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(example: str) -> None:
    """Simulate an example and write down what came out."""
    table = rows(example)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    expected(example).write_text(text.getvalue(), encoding="utf-8")


def _written(value: object) -> str:
    return repr(value) if isinstance(value, float) else str(value)


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        write(name)
        print(expected(name))  # noqa: T201 - a script
