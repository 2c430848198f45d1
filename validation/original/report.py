"""All comparisons on given files, as one document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from artist.errors import TraceError
from artist.policies.original.hash_order import HashOrder
from validation.original.aggregates import cells, compare
from validation.original.files import (
    RecordedRun,
    ReferenceTrace,
    read_results,
    read_run,
    read_trace,
    trace_of,
)
from validation.original.finishes import compare_jobs, jobs_trace, read_jobs
from validation.original.pools import read_totals, with_pools
from validation.original.replay import Agreement, Replay
from validation.original.runs import Latencies, cluster, workers
from validation.original.schemes import GRANULARITY, known, scheduler
from validation.original.tables import cell_line, outside

Recorded = TypeVar("Recorded")


class Without(NamedTuple):
    """Jobs to leave out for an experiment: of a model, on more than so many GPUs."""

    model: str
    gpus: int

    def reduced(self, trace: ReferenceTrace) -> ReferenceTrace:
        """The trace without them, by another name.

        Raises:
            TraceError: nothing is left.
        """
        jobs = (job for job in trace.jobs if job.model != self.model or job.gpus <= self.gpus)
        left = replace(trace, name=self.name(trace.name), jobs=tuple(jobs))
        if not left.jobs:
            raise TraceError(f"{trace.path}: no job is left without {self.model}:{self.gpus}")
        return left

    def name(self, trace: str) -> str:
        """Of a trace without them."""
        return f"{trace} without {self.model} on more than {self.gpus} GPUs"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What to compare with what."""

    allocations: Sequence[Path]
    traces: Mapping[str, Path]
    """Name in the results to file; their jobs are also looked up for allocations."""
    results: Path | None
    jobs: Sequence[Path]
    """Results per job; those of other traces are left out."""
    latencies: Latencies
    job_files: Sequence[Path]
    """What the original was given: they tell the pools of jobs (`pools.py`)."""
    witnesses: Sequence[Path]
    """Further recorded runs, for the same purpose."""
    seeds: int
    workers: int
    without: Without | None = None
    """Do medians stray without these jobs, too?"""


def replayed(run: RecordedRun, trace: ReferenceTrace) -> Agreement:
    """One recorded run."""
    tree = cluster(run.racks)
    rule = scheduler(run.scheme).rule
    return Replay(run, trace, tree, rule, HashOrder(tree), GRANULARITY).run()


def report(inputs: Inputs, tell: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """`replay`, `jobs` and `aggregates`; `tell` gets a line whenever a row is there.

    Raises:
        ArtistError: a file cannot be read or does not fit the others.
    """
    traces = {name: read_trace(path, name) for name, path in inputs.traces.items()}
    candidates = [*traces.values(), *_siblings(inputs)]
    runs = [run for run in map(read_run, inputs.allocations) if known(run.scheme)]
    theirs = [trace_of(run, candidates) for run in runs]
    finishes = [each for each in map(read_jobs, inputs.jobs) if known(each.scheme)]
    jobs = _matched(finishes, list(traces.values()), jobs_trace)
    asked = cells(read_results(inputs.results), traces) if inputs.results else []

    totals = read_totals(inputs.job_files)
    witnesses = _matched(map(read_run, inputs.witnesses), candidates, trace_of)
    witnesses += zip(runs, theirs, strict=True)
    pooled = {
        name: with_pools(trace, totals, witnesses, GRANULARITY) for name, trace in traces.items()
    }
    reduced = {}
    if without := inputs.without:
        reduced = {without.name(name): without.reduced(trace) for name, trace in pooled.items()}
    aggregates, experiment = [], []
    with workers(inputs.workers, {**pooled, **reduced}, inputs.latencies) as pool:
        found = list(pool.map(replayed, runs, theirs))
        finished = compare_jobs(pool, jobs)
        for row in compare(pool, asked, inputs.seeds):
            tell(cell_line(row))
            aggregates.append(row)
        if without:
            far = [
                replace(cell, trace=without.name(cell.trace))
                for cell, row in zip(asked, aggregates, strict=True)
                if outside(row)
            ]
            for row in compare(pool, far, inputs.seeds, with_own=True):
                tell(cell_line(row))
                experiment.append(row)
    taken, compared = {run.path for run in runs}, {cell.trace for cell in asked}
    return {
        "replay": [_replay_row(run.path, each) for run, each in zip(runs, found, strict=True)],
        "jobs": finished,
        "aggregates": aggregates,
        **({"without": experiment} if without else {}),
        "seeds": inputs.seeds,
        "left_out": [
            *(f"{path.name} (no policy)" for path in inputs.allocations if path not in taken),
            *(f"{name} (not in results)" for name in traces if name not in compared),
        ],
    }


def write(document: Mapping[str, Any], path: Path) -> None:
    """As JSON."""
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _matched(
    recorded: Iterable[Recorded],
    traces: Sequence[ReferenceTrace],
    match: Callable[[Recorded, Sequence[ReferenceTrace]], ReferenceTrace],
) -> list[tuple[Recorded, ReferenceTrace]]:
    """What was recorded of these traces, each with its own; the rest is left out."""
    found = []
    for each in recorded:
        try:
            found.append((each, match(each, traces)))
        except TraceError:
            continue
    return found


def _replay_row(path: Path, found: Agreement) -> dict[str, Any]:
    return {
        "file": path.name,
        "decisions": found.decisions,
        "agree": found.agree,
        "ties": found.ties,
        "same_gpus": found.same_gpus,
        "priorities_equal": found.priorities,
        "ends": found.idle_rounds,
        "ends_agree": found.idle_agree,
        "disagreements": found.disagreements[:20],
    }


def _siblings(inputs: Inputs) -> list[ReferenceTrace]:
    """Traces beside the given files: a recorded run may be of another trace than is asked for."""
    given = {path.resolve() for path in inputs.traces.values()}
    folders = {path.resolve().parent for path in inputs.traces.values()}
    folders |= {path.resolve().parent.parent for path in inputs.allocations}
    folders.add(inputs.latencies.golden.resolve().parent)
    found = sorted({path for folder in folders for path in folder.glob("trace_*_effective.csv")})
    return [read_trace(path, path.stem) for path in found if path not in given]
