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
from artist.reference.files import ReferenceTrace, read_results, read_run, read_trace, trace_of
from artist.reference.replay import Agreement, Replay
from artist.reference.schemes import GRANULARITY, registered, scheduler


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


def replayed(path: Path, traces: Sequence[ReferenceTrace]) -> Agreement | None:
    """One file of allocations; None where its scheme has no policy."""
    run = read_run(path)
    if not registered(run.scheme):
        return None
    tree = cluster(run.racks)
    rule = scheduler(run.scheme).rule
    trace = trace_of(run, traces)
    return Replay(run, trace, tree, rule, HashOrder(tree), GRANULARITY).run()


def report(inputs: Inputs) -> dict[str, Any]:
    """`replay` and `aggregates`; further keys of a row explain its numbers.

    Raises:
        ArtistError: a file cannot be read or does not fit the others.
    """
    traces = {name: read_trace(path, name) for name, path in inputs.traces.items()}
    known = [*traces.values(), *_siblings(inputs)]
    with ProcessPoolExecutor(inputs.workers) as pool:
        found = list(pool.map(replayed, inputs.allocations, [known] * len(inputs.allocations)))
    rows = [
        _replay_row(path, agreement)
        for path, agreement in zip(inputs.allocations, found, strict=True)
        if agreement is not None
    ]
    asked = cells(read_results(inputs.results), traces) if inputs.results else []
    aggregates = compare(asked, traces, inputs.latencies, inputs.seeds, inputs.workers)
    return {"replay": rows, "aggregates": aggregates, "seeds": inputs.seeds}


def as_table(document: Mapping[str, Any]) -> str:
    """The document for people."""
    lines = ["file                                decisions  agree  ties  also same GPUs"]
    lines += [
        f"{row['file']:36}{row['decisions']:9}{row['agree']:7}{row['ties']:6}{row['same_gpus']:9}"
        for row in document["replay"]
    ]
    lines += ["", "ours / theirs: median (min .. max) over seeded machine orders"]
    lines += [
        f"{row['scheme']:16}{row['racks']:3} {row['trace']:28}"
        f"JCT {_spread(row, 'jct_mean_ratio')}   makespan {_spread(row, 'makespan_ratio')}"
        for row in document["aggregates"]
    ]
    return "\n".join(lines)


def write(document: Mapping[str, Any], path: Path) -> None:
    """As JSON."""
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _spread(row: Mapping[str, Any], key: str) -> str:
    return f"{row[key]:.3f} ({row[f'{key}_min']:.2f} .. {row[f'{key}_max']:.2f})"


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
    """Traces beside the given files: an allocation file may be of another trace."""
    given = {path.resolve() for path in inputs.traces.values()}
    folders = {path.resolve().parent for path in inputs.traces.values()}
    folders |= {path.resolve().parent.parent for path in inputs.allocations}
    found = sorted({path for folder in folders for path in folder.glob("trace_*_effective.csv")})
    return [read_trace(path, path.stem) for path in found if path not in given]
