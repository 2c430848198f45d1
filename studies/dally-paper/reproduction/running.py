"""Run the studies. Every file of `experiments/` is an experiment of `artist sweep`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from records import LAST, Record, place, read, record, write

from artist.config import Scenario
from artist.experiments.executors import run_all
from artist.experiments.experiment import Run, load_experiment, runs
from artist.results.metrics import Table
from artist.run import simulate

ORDER = (
    "recorded",
    "own-jobs",
    "ladder-rules",
    "ladder-paper",
    "within-level",
    "within-level-variants",
    "calibrated",
    "calibrated-within-level",
    "calibrated-within-level-variants",
    "original-rules",
    "original-tiresias",
    "lease",
    "placement",
    "placement-poisson",
    "order",
    "load",
    "h100-calibrated",
    "bounds",
    "gandiva",
    "no-communication",
    "h100-catalogue",
)
"""Studies in the order of the file; `own-jobs` and the two of the ladder need the paper's jobs."""

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
    """Bring a results file up to date; `again` repeats what is there.

    Rows of runs whose traces are not here stay as they are; rows of no study are dropped.
    """
    places = {place(study, run): (study, run) for study, run in wanted}
    kept = {found.key: found for found in read(results) if found.key in places}
    todo = [
        pair
        for key, pair in places.items()
        if (again or key not in kept) and at_hand(pair[1].scenario.trace)
    ]
    for done, (index, outcome) in enumerate(
        run_all(outcome_of, [run.scenario for _, run in todo], workers), start=1
    ):
        found = record(*todo[index], outcome)
        kept[found.key] = found
        on_done(done, len(todo))
        if done % SAVE_EVERY == 0 or done == len(todo):
            write(results, in_order(kept.values()))


def differing(wanted: Sequence[tuple[str, Run]], results: Path, workers: int) -> list[str]:
    """Runs, repeated, whose row is missing or different."""
    kept = {found.key: found for found in read(results)}
    todo = [pair for pair in wanted if at_hand(pair[1].scenario.trace)]
    found = []
    for index, outcome in run_all(outcome_of, [run.scenario for _, run in todo], workers):
        again = record(*todo[index], outcome)
        if kept.get(again.key) != again:
            found.append(" ".join(map(str, again.key)))
    return sorted(found)


def at_hand(trace: str) -> bool:
    """Whether a trace is built in, or a file that is here."""
    return not Path(trace).suffix or Path(trace).is_file()


def in_order(records: Any) -> list[Record]:
    """Rows as the file has them: study by study, then by their place."""
    rank = {name: index for index, name in enumerate(ORDER)}
    return sorted(records, key=lambda found: (rank[found.study], *found.key[1:]))


def outcome_of(scenario: Scenario) -> Mapping[str, Any]:
    """One run in a worker: its summary, and what its last job ran on."""
    result = simulate(scenario)
    return {**result.summary, **last_job(result.tables)}


def last_job(tables: Mapping[str, Table]) -> Mapping[str, Any]:
    """How slow the last job to finish was, and whether its last placement was even."""
    jobs, placements = tables["jobs"], tables["placements"]
    last = max(range(len(jobs["finish_s"])), key=lambda row: jobs["finish_s"][row])
    name = jobs["job_id"][last]
    row = max(row for row, found in enumerate(placements["job_id"]) if found == name)
    slowdown = float(jobs["run_s"][last]) / float(jobs["ideal_s"][last])
    found = (slowdown, placements["level"][row], even(placements["signature"][row]))
    return dict(zip(LAST, found, strict=True))


def even(signature: str) -> bool:
    """Whether racks, machines and sockets hold equal shares of a placement."""
    parts = [signature]
    for separator in "/,+":
        parts = [piece for part in parts for piece in part.split(separator)]
    racks = signature.split("/")
    machines = [rack.split(",") for rack in racks]
    sockets = [machine.split("+") for rack in machines for machine in rack]
    sizes = (parts, [len(rack) for rack in machines], [len(machine) for machine in sockets])
    return all(len(set(size)) == 1 for size in sizes)
