"""Run the studies. Every file in `experiments/` is an experiment file of `artist sweep`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from records import LAST, Record, place, read, record, write

from artist.config import Scenario
from artist.experiments.executors import run_all
from artist.experiments.experiment import Run, load_experiment, runs
from artist.results.terms.columns import Table
from artist.run import simulate

ORDER = (
    "default",
    "flat",
    "machine-column",
    "bucketed",
    "one-ring",
    "h100",
    "recorded",
    "default-within-level",
    "within-level",
    "own-jobs-default",
    "own-jobs-flat",
    "own-jobs-machine-column",
    "own-jobs-bucketed",
    "own-jobs-one-ring",
    "own-jobs-h100",
    "own-jobs-recorded",
    "packed-default",
    "packed-bucketed",
    "packed-one-ring",
    "queued-2",
    "queued-4",
    "queued-8",
    "queued-16",
    "readings",
    "ladder-rules",
    "ladder-paper",
    "original-rules",
    "original-tiresias",
    "lease",
    "placement",
    "placement-poisson",
    "order",
    "load",
    "bounds",
    "gandiva",
    "no-communication",
)
"""Studies in the order of `results.csv`.

`own-jobs-...`, `ladder-rules` and `ladder-paper` need the paper's jobs, which artist does not ship.
"""

SAVE_EVERY = 10


def cells(studies: Path) -> list[tuple[str, Run]]:
    """Every run, study by study."""
    return [
        (name, run) for name in ORDER for run in runs(load_experiment(studies / f"{name}.yaml"))
    ]


def run_missing(
    wanted: Sequence[tuple[str, Run]],
    results: Path,
    workers: int,
    *,
    again: bool,
    on_done: Callable[[int, int], None],
) -> None:
    """Bring a results file up to date. `again` repeats the runs that have a row.

    Rows stay as they are if the trace of their run is missing. Rows of no study are dropped.
    """
    places = {place(study, run): (study, run) for study, run in wanted}
    kept = {row.key: row for row in read(results) if row.key in places}
    todo = [
        pair
        for key, pair in places.items()
        if (again or key not in kept) and at_hand(pair[1].scenario.trace)
    ]
    for done, (index, outcome) in enumerate(
        run_all(outcome_of, [run.scenario for _, run in todo], workers), start=1
    ):
        row = record(*todo[index], outcome)
        kept[row.key] = row
        on_done(done, len(todo))
        if done % SAVE_EVERY == 0 or done == len(todo):
            write(results, in_order(kept.values()))


def differing(wanted: Sequence[tuple[str, Run]], results: Path, workers: int) -> list[str]:
    """Repeat runs. The answer names those whose row is missing or different."""
    kept = {row.key: row for row in read(results)}
    todo = [pair for pair in wanted if at_hand(pair[1].scenario.trace)]
    names = []
    for index, outcome in run_all(outcome_of, [run.scenario for _, run in todo], workers):
        again = record(*todo[index], outcome)
        if kept.get(again.key) != again:
            names.append(" ".join(map(str, again.key)))
    return sorted(names)


def at_hand(trace: str) -> bool:
    """Whether a trace is built in, or a file that exists."""
    return not Path(trace).suffix or Path(trace).is_file()


def in_order(records: Iterable[Record]) -> list[Record]:
    """Rows in the order of the file: by study, then by their place."""
    rank = {name: index for index, name in enumerate(ORDER)}
    return sorted(records, key=lambda row: (rank[row.study], *row.key[1:]))


def outcome_of(scenario: Scenario) -> Mapping[str, Any]:
    """One run in a worker: its summary, and the placement of its last job."""
    result = simulate(scenario)
    return {**result.summary, **last_job(result.tables)}


def last_job(tables: Mapping[str, Table]) -> Mapping[str, Any]:
    """How slow the last job to finish was, and whether its last placement was even."""
    jobs, placements = tables["jobs"], tables["placements"]
    last = max(range(len(jobs["finish_s"])), key=lambda row: jobs["finish_s"][row])
    name = jobs["job_id"][last]
    row = max(row for row, job in enumerate(placements["job_id"]) if job == name)
    slowdown = float(jobs["run_s"][last]) / float(jobs["ideal_s"][last])
    values = (slowdown, placements["level"][row], even(placements["signature"][row]))
    return dict(zip(LAST, values, strict=True))


def even(signature: str) -> bool:
    """Whether racks, machines and sockets hold equal shares: `4+4,4+4` is even, `4+4,4` is not."""
    parts = [signature]
    for separator in "/,+":
        parts = [piece for part in parts for piece in part.split(separator)]
    racks = signature.split("/")
    machines = [rack.split(",") for rack in racks]
    sockets = [machine.split("+") for rack in machines for machine in rack]
    sizes = (parts, [len(rack) for rack in machines], [len(machine) for machine in sockets])
    return all(len(set(size)) == 1 for size in sizes)
