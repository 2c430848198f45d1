"""Kinds of files that artist reads beside others: one is broken, and the others are sound."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from breaking import broken_json
from kinds import Break, Kind, break_run_file, run_folder, text_break

from artist.cluster.cluster_file import cluster_from
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.workload.graph import GraphNode, NodeAction
from artist.workload.layers import Collective, Parallelism, Workload

PAIR = (Dimension(Topology.RING, 2, 50.0, 500.0),)
SLURM = {
    "nodes": (
        "NodeName=g1 Arch=x86_64 CoresPerSocket=64\n   Gres=gpu:a100:8(S:0-1) OS=Linux 6.1\n"
        "   State=IDLE Weight=1 Owner=N/A\n\nNodeName=g[2-3] Gres=gpu:h100:4 State=DOWN*+DRAIN\n\n"
        "NodeName=cpu1 Gres=(null) State=IDLE\n"
    ),
    "topology": (
        "SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=g[1,3]\n"
        "SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=g2,cpu1\n"
        "SwitchName=spine Level=1 Nodes=g[1-3],cpu1 Switches=leaf[1-2]\n"
    ),
    "partitions": (
        "PartitionName=long\n   AllowAccounts=vision QoS=N/A Default=YES\n   MaxTime=2-00:00:00 "
        "Nodes=g[1-2] PriorityJobFactor=10 PriorityTier=3 PreemptMode=REQUEUE\n"
        "PartitionName=any MaxTime=UNLIMITED Nodes=g1 Default=NO\n"
    ),
    "qos": "Name|Priority|Preempt|GrpTRES\nhigh|100|low|gres/gpu=16\nlow|10||\n",
    "assoc": (
        "Cluster|Account|User|Share|ParentName|MaxJobs\nmine|root||1||\nmine|vision||50|root|\n"
        "mine|vision|ann|2||5\nmine|vision|ben|parent||\n"
    ),
    "config": "Configuration data as of now\nClusterName = mine\nPriorityWeightAge = 1000\n",
}


def read_slurm(path: Path) -> None:
    """What Slurm says of a cluster, one text of which is broken."""
    from artist.slurm.cluster_import import cluster_document

    for name, text in SLURM.items():
        if path.name != f"{name}.txt":
            path.with_name(f"{name}.txt").write_text(text)
    cluster_from(cluster_document(path.parent), "the imported cluster")


def _collective(size: int, *after: int) -> GraphNode:
    summed = Collective.ALL_REDUCE
    return GraphNode(NodeAction.COLLECTIVE, after, collective=summed, size_bytes=size, over=1)


@cache
def _traces() -> dict[str, bytes]:
    """The files of a folder of two GPUs, which compute and sum twice."""
    from graph_traces import encode_program

    program = (GraphNode(NodeAction.COMPUTE, compute_us=7), _collective(4096, 0))
    traces = {f"job.{gpu}.et": encode_program(program) for gpu in range(2)}
    return {**traces, "groups.json": b'{"1": [0, 1]}'}


def read_chakra_folder(path: Path) -> None:
    """A folder of execution traces, one file of which is broken; small ones are asked about."""
    from artist.astra.files.chakra_folder import read_folder
    from artist.astra.model.analytical import AnalyticalBackend

    for name, data in _traces().items():
        if path.name != name:
            path.with_name(name).write_bytes(data)
    graph = read_folder(path.parent)
    if sum(map(len, graph.programs)) < 100:
        work = Workload(graph.name, Parallelism.GRAPH, (), graph=graph)
        AnalyticalBackend().estimate(LatencyQuery(work, PAIR, SystemSettings(*[("ring",)] * 4)))


@cache
def warehouse_folder() -> Path:
    from artist.warehouse.files import write_warehouse
    from artist.warehouse.synthetic import synth_warehouse

    out = Path(tempfile.mkdtemp()) / "warehouse"
    write_warehouse(synth_warehouse(50, 64, seed=1, regions=3, tables=6), out, overwrite=False)
    return out


def read_warehouse_file(path: Path) -> None:
    """A warehouse, one file of which is broken."""
    from artist.warehouse.read import read_warehouse

    for file in warehouse_folder().iterdir():
        if file.name != path.name:
            shutil.copy(file, path.with_name(file.name))
    read_warehouse(path.parent)


def read_run(path: Path) -> None:
    """A run, one file of which is broken, as `artist why`, `export` and `artist.load` do."""
    import artist
    from artist.report.perfetto import perfetto_trace
    from artist.report.reader import read_runs
    from artist.results.waiting.job_story import job_story, worst_waits

    for file in run_folder().iterdir():
        if file.name != path.name:
            shutil.copy(file, path.with_name(file.name))
    run = artist.load(path.parent)
    assert all(len(run.tables[name]) for name in run.tables)
    (first, *_) = run.tables["jobs"]["job_id"]
    worst_waits(path.parent, "total")
    job_story(path.parent, str(first))
    perfetto_trace(read_runs([path.parent])[0])


def _bytes_of(make: Callable[[], bytes]) -> Break:
    return lambda rng: text_break(make())(rng)


def folder_kinds() -> dict[str, Kind]:
    """All of them by id."""
    made = [
        *(
            Kind(f"slurm-{name}", f"{name}.txt", text_break(text), read_slurm)
            for name, text in SLURM.items()
        ),
        Kind("chakra-folder", "job.1.et", _bytes_of(lambda: _traces()["job.1.et"]),
             read_chakra_folder),
        Kind("chakra-groups", "groups.json", lambda rng: broken_json({"1": [0, 1]}, rng),
             read_chakra_folder),
        *(
            Kind(f"warehouse-{name}", f"{name}.parquet",
                 _bytes_of(lambda name=name: (warehouse_folder() / f"{name}.parquet").read_bytes()),
                 read_warehouse_file)
            for name in ("tables", "regions", "demand", "applications")
        ),
        *(
            Kind(f"read-{name.partition('.')[0]}", name,
                 break_run_file(name), read_run)
            for name in ("manifest.json", "summary.json", "jobs.parquet", "placements.parquet",
                         "timeline.parquet", "waits.parquet")
        ),
    ]  # fmt: skip
    return {kind.id: kind for kind in made}


OPTIONAL = {
    "chakra-folder", "chakra-groups", "read-waits", "warehouse-applications",
    *(f"slurm-{name}" for name in SLURM if name != "nodes"),
}  # fmt: skip
"""Kinds without which the others are whole, or whose absence names the folder."""
