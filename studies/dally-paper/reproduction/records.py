"""The rows of `results.csv`: one per run, with its place in its study and its results.

`results.csv` alone stands between the runs and the pages. If you doubt a number on a page, you
find its runs there and can repeat them: `artist sweep experiments/NAME.yaml --out DIR`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from artist.experiments.experiment import Run
from artist.io.writing import write_whole

SECONDS = (
    "makespan_s",
    "jct_mean_s",
    "jct_p50_s",
    "jct_p95_s",
    "jct_p99_s",
    "queue_delay_mean_s",
    "queue_delay_p95_s",
    "queue_delay_p99_s",
    "comm_time_mean_s",
    "compute_time_mean_s",
)
SHARES = (
    "gpu_allocated_share",
    "gpu_computing_share",
    "gpu_communicating_share",
    "gpu_stalled_share",
    "gpu_lost_share",
)
COUNTS = (
    "preemptions",
    "migrations",
    "placements_machine",
    "placements_rack",
    "placements_network",
)
LAST = ("last_job_slowdown", "last_job_level", "last_job_even")
"""The job that finished last: its run time over its ideal run time, and its last placement."""

PLACE = ("study", "trace", "racks", "policy", "options", "seed", "permutation")
Place: TypeAlias = tuple[str, str, int, str, str, int, int]
ORIGINAL_RULES = {
    "validation/original/policies.py:Dally": "dally",
    "validation/original/policies.py:DallyFullyConsolidated": "dally-fully-consolidated",
    "validation/original/policies.py:Tiresias": "tiresias",
}
"""Policies with the original program's rules -> those with the paper's.

The study's name tells the rules. So a row has the latter name, and rows stay comparable.
"""
COLUMNS = (*PLACE, *SECONDS, *SHARES, *COUNTS, *LAST)


@dataclass(frozen=True, slots=True)
class Record:
    """A row. `options` are the run's other settings: `KEY=VALUE`, separated by blanks."""

    study: str
    trace: str
    racks: int
    policy: str
    options: str
    seed: int
    permutation: int
    values: Mapping[str, str]

    @property
    def key(self) -> Place:
        """The columns that tell rows apart."""
        return (
            self.study,
            self.trace,
            self.racks,
            self.policy,
            self.options,
            self.seed,
            self.permutation,
        )

    def number(self, metric: str) -> float:
        """The value of a metric."""
        return float(self.values[metric])


def place(study: str, run: Run) -> Place:
    """The columns that tell a run's row apart, in the order of `PLACE`."""
    scenario = run.scenario
    named = {"trace", "racks", "policy", "seed", "permutation"}
    others = [f"{key}={_text(value)}" for key, value in run.point if key not in named]
    return (
        study,
        Path(scenario.trace).stem,
        scenario.racks,
        ORIGINAL_RULES.get(scenario.policy, scenario.policy),
        " ".join(others),
        scenario.seed,
        scenario.permutation,
    )


def record(study: str, run: Run, outcome: Mapping[str, Any]) -> Record:
    """The row of a run."""
    values = {name: _rounded(name, outcome[name]) for name in COLUMNS if name not in PLACE}
    return Record(*place(study, run), values)


def read(path: Path) -> list[Record]:
    """The rows of a results file. No file, or one of other columns: no rows."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            return []
        return [
            Record(
                row["study"],
                row["trace"],
                int(row["racks"]),
                row["policy"],
                row["options"],
                int(row["seed"]),
                int(row["permutation"]),
                {name: row[name] for name in COLUMNS if name not in PLACE},
            )
            for row in rows
        ]


def write(path: Path, records: Iterable[Record]) -> None:
    """Replace a results file, whole or not at all.

    Raises:
        ConfigError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([*row.key, *row.values.values()] for row in records)
    write_whole(path, text.getvalue())


def _rounded(name: str, value: Any) -> str:
    if name in SECONDS:
        return f"{round(value, 1) + 0.0:.1f}"  # no "-0.0"
    if name in SHARES:
        return f"{value:.4f}"
    return f"{value:.2f}" if name == "last_job_slowdown" else str(value)


def _text(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(_text(part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
