"""Both comparisons on given files, as one document."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artist.policies.original_order import HashOrder
from artist.reference.aggregates import Latencies, cells, cluster, compare
from artist.reference.files import (
    RecordedRun,
    ReferenceTrace,
    read_results,
    read_run,
    read_trace,
    trace_of,
)
from artist.reference.pools import with_pools
from artist.reference.replay import Agreement, Replay
from artist.reference.schemes import GRANULARITY, known, scheduler


@dataclass(frozen=True, slots=True)
class Inputs:
    """What to compare with what."""

    allocations: Sequence[Path]
    traces: Mapping[str, Path]
    """Name in the results to file; their jobs are also looked up for allocations."""
    results: Path | None
    latencies: Latencies
    seeds: int
    workers: int


def replayed(run: RecordedRun, trace: ReferenceTrace) -> Agreement:
    """One recorded run."""
    tree = cluster(run.racks)
    rule = scheduler(run.scheme).rule
    return Replay(run, trace, tree, rule, HashOrder(tree), GRANULARITY).run()


def report(inputs: Inputs) -> dict[str, Any]:
    """`replay` and `aggregates`; further keys of a row explain its numbers.

    Raises:
        ArtistError: a file cannot be read or does not fit the others.
    """
    traces = {name: read_trace(path, name) for name, path in inputs.traces.items()}
    runs = [run for run in map(read_run, inputs.allocations) if known(run.scheme)]
    candidates = [*traces.values(), *_siblings(inputs)]
    theirs = [trace_of(run, candidates) for run in runs]
    replayed_paths = {run.path for run in runs}
    with ProcessPoolExecutor(inputs.workers) as pool:
        found = list(pool.map(replayed, runs, theirs))
    asked = cells(read_results(inputs.results), traces) if inputs.results else []
    pooled = {
        name: with_pools(trace, zip(runs, theirs, strict=True), GRANULARITY)
        for name, trace in traces.items()
    }
    return {
        "replay": [_replay_row(run.path, each) for run, each in zip(runs, found, strict=True)],
        "aggregates": compare(asked, pooled, inputs.latencies, inputs.seeds, inputs.workers),
        "seeds": inputs.seeds,
        "left_out": [path.name for path in inputs.allocations if path not in replayed_paths]
        + [name for name in traces if name not in {cell.trace for cell in asked}],
    }


def as_table(document: Mapping[str, Any]) -> str:
    """The document for people."""
    lines = ["file                                decisions  agree  ties  also same GPUs"]
    lines += [
        f"{row['file']:36}{row['decisions']:9}{row['agree']:7}{row['ties']:6}{row['same_gpus']:9}"
        for row in document["replay"]
    ]
    lines += [
        "",
        "ours / theirs: median (min .. max) over seeded machine orders, [in its own order]",
    ]
    lines += [
        f"{row['scheme']:16}{row['racks']:3} {row['trace']:28}"
        f"JCT {_spread(row, 'jct_mean_ratio')}   makespan {_spread(row, 'makespan_ratio')}"
        for row in document["aggregates"]
    ]
    if document["left_out"]:
        lines += ["", f"not compared (no policy, no results): {', '.join(document['left_out'])}"]
    return "\n".join(lines)


def write(document: Mapping[str, Any], path: Path) -> None:
    """As JSON."""
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _spread(row: Mapping[str, Any], key: str) -> str:
    spread = f"({row[f'{key}_min']:.2f} .. {row[f'{key}_max']:.2f})"
    return f"{row[key]:.3f} {spread} [{row[f'{key}_own_order']:.4f}]"


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
