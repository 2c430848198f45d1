"""Runs all comparisons on given files and collects them in one document."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from artist.errors import TraceError
from artist.io.writing import write_whole
from validation.original.aggregates import cells, compare
from validation.original.files import (
    RecordedRun,
    RecordedTrace,
    read_results,
    read_run,
    read_trace,
    trace_of,
)
from validation.original.finishes import compare_jobs, jobs_trace, read_jobs
from validation.original.hash_order import HashOrder
from validation.original.pools import read_totals, with_pools
from validation.original.replay import Agreement, Replay
from validation.original.runs import Latencies, cluster, workers
from validation.original.schemes import GRANULARITY, known, scheduler
from validation.original.tables import cell_line, outside

Recorded = TypeVar("Recorded")


class Without(NamedTuple):
    """Jobs to leave out for an experiment: those of a model on more than this many GPUs."""

    model: str
    gpus: int

    def reduced(self, trace: RecordedTrace) -> RecordedTrace:
        """The trace without these jobs, under another name.

        Raises:
            TraceError: no job is left.
        """
        jobs = (job for job in trace.jobs if job.model != self.model or job.gpus <= self.gpus)
        left = replace(trace, name=self.name(trace.name), jobs=tuple(jobs))
        if not left.jobs:
            raise TraceError(f"{trace.path}: no job is left without {self.model}:{self.gpus}")
        return left

    def name(self, trace: str) -> str:
        """The name of a trace without these jobs."""
        return f"{trace} without {self.model} on more than {self.gpus} GPUs"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files to compare, and how."""

    allocations: Sequence[Path]
    traces: Mapping[str, Path]
    """Name in the results -> file. Files of allocations are matched with these traces, too."""
    results: Path | None
    jobs: Sequence[Path]
    """Results per job. Those of other traces are left out."""
    latencies: Latencies
    job_files: Sequence[Path]
    """The original's job files, which tell the pools of jobs (`pools.py`)."""
    witnesses: Sequence[Path]
    """Further recorded runs that tell pools."""
    seeds: int
    workers: int
    without: Without | None = None
    """Compare medians again without these jobs."""


def replayed(run: RecordedRun, trace: RecordedTrace) -> Agreement:
    """Replay one recorded run."""
    tree = cluster(run.racks)
    rule = scheduler(run.scheme).rule
    return Replay(run, trace, tree, rule, HashOrder(tree), GRANULARITY).run()


def report(inputs: Inputs, tell: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The document. `tell` gets a line whenever a row of `aggregates` or `without` is complete.

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
        agreements = list(pool.map(replayed, runs, theirs))
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
        "replay": [_replay_row(run.path, each) for run, each in zip(runs, agreements, strict=True)],
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
    """Write the document as JSON.

    Raises:
        ConfigError: the file cannot be written.
    """
    write_whole(path, json.dumps(document, indent=1) + "\n")


def _matched(
    recorded: Iterable[Recorded],
    traces: Sequence[RecordedTrace],
    match: Callable[[Recorded, Sequence[RecordedTrace]], RecordedTrace],
) -> list[tuple[Recorded, RecordedTrace]]:
    """Each recording with its trace. Recordings of other traces are left out."""
    matched = []
    for each in recorded:
        try:
            matched.append((each, match(each, traces)))
        except TraceError:
            continue
    return matched


def _replay_row(path: Path, agreement: Agreement) -> dict[str, Any]:
    return {
        "file": path.name,
        "decisions": agreement.decisions,
        "agree": agreement.agree,
        "ties": agreement.ties,
        "same_gpus": agreement.same_gpus,
        "priorities_equal": agreement.priorities,
        "ends": agreement.idle_rounds,
        "ends_agree": agreement.idle_agree,
        "disagreements": agreement.disagreements[:20],
    }


def _siblings(inputs: Inputs) -> list[RecordedTrace]:
    """Traces beside the given files. A recorded run may be of a trace that was not asked for."""
    given = {path.resolve() for path in inputs.traces.values()}
    folders = {path.resolve().parent for path in inputs.traces.values()}
    folders |= {path.resolve().parent.parent for path in inputs.allocations}
    folders.add(inputs.latencies.golden.resolve().parent)
    paths = sorted({path for folder in folders for path in folder.glob("trace_*_effective.csv")})
    return [read_trace(path, path.stem) for path in paths if path not in given]
