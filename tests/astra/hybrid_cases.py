"""Hybrid-parallel iterations that the real ASTRA-sim ran, as graphs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from artist.estimates.query import Dimension, SystemSettings, Topology
from artist.workload.graph import GraphNode, JobGraph, NodeAction, Over
from artist.workload.layers import Collective

FOLDER = Path(__file__).parents[3] / "shared/groundwork/parallel"
_COLLECTIVES = {
    "AR": Collective.ALL_REDUCE,
    "AG": Collective.ALL_GATHER,
    "RS": Collective.REDUCE_SCATTER,
    "A2A": Collective.ALL_TO_ALL,
}


class HybridCase(NamedTuple):
    """One recorded run. `finish_ns` has None for an NPU that never finished."""

    id: str
    tags: tuple[str, ...]
    graph: JobGraph
    dimensions: tuple[Dimension, ...]
    system: SystemSettings
    finish_ns: list[int | None]
    exposed_ns: list[int | None]


def cases(file: str, part: int = 0, parts: int = 1) -> Iterator[HybridCase]:
    """The cases of `hybrid`, `mechanics` or `jobs`, or a part of them."""
    with gzip.open(FOLDER / f"{file}.jsonl.gz", "rt") as lines:
        for line in islice(lines, part, None, parts):
            yield _case(json.loads(line))


def network(row: dict[str, Any]) -> tuple[tuple[Dimension, ...], SystemSettings]:
    """The dimensions and the settings under which ASTRA-sim ran."""
    dims = tuple(Dimension(Topology(x[0]), *x[1:]) for x in row["topology"])
    given = row["system"]
    names = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
    system = SystemSettings(
        *(tuple(given[f"{name}-implementation"]) for name in names),
        given["scheduling-policy"],
        given["collective-optimization"],
        given["preferred-dataset-splits"],
        given["active-chunks-per-dimension"],
        given["endpoint-delay"],
        float(given["local-mem-bw"]),
        row["queues"],
    )
    return dims, system


def _case(row: dict[str, Any]) -> HybridCase:
    dims, system = network(row)
    answer = row["answer"]
    finish, exposed = answer["finish_ns"], answer["exposed_ns"]
    graph = _graph(row, len(finish))
    return HybridCase(row["id"], tuple(row["tags"]), graph, dims, system, finish, exposed)


def _graph(row: dict[str, Any], npus: int) -> JobGraph:
    listed = [(name, tuple(ranks)) for name, groups in row["groups"].items() for ranks in groups]
    communicators = {number: ranks for number, (_, ranks) in enumerate(listed, 1)}
    of_npu = {
        (name, npu): number for number, (name, ranks) in enumerate(listed, 1) for npu in ranks
    }
    programs: list[tuple[GraphNode, ...]] = [()] * npus
    for program in row["programs"]:
        for npu in program["npus"]:
            programs[npu] = tuple(_node(npu, x, of_npu) for x in program["nodes"])
    return JobGraph(row["id"], tuple(programs), communicators)


def _node(npu: int, row: list[Any], of_npu: dict[tuple[str, int], int]) -> GraphNode:
    deps = row[-1]
    if isinstance(deps, dict):
        deps = dict.fromkeys([*deps.get("data", []), *deps.get("ctrl", [])])
    after = tuple(deps)
    if row[0] == "c":
        return GraphNode(NodeAction.COMPUTE, after, row[1])
    if row[0] in ("s", "r"):
        kind = NodeAction.SEND if row[0] == "s" else NodeAction.RECEIVE
        return GraphNode(kind, after, size_bytes=row[1], peer=npu + row[2], tag=row[3])
    over: Over = None
    if row[2].startswith("d:"):
        over = tuple(digit == "1" for digit in row[2][2:])
    elif row[2].startswith("g:"):
        over = of_npu[row[2][2:], npu]
    collective = _COLLECTIVES[row[0]]
    return GraphNode(NodeAction.COLLECTIVE, after, 0, collective, row[1], over)
