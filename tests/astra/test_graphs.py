"""Do graphs of hybrid-parallel jobs finish as in the real ASTRA-sim, or are they refused?"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from graph_traces import encode_program
from hybrid_cases import FOLDER, HybridCase, cases
from rendered_queries import tiny
from support import CASES

from artist.astra.files.chakra_folder import chakra_workload, digest_of_model, read_folder
from artist.astra.files.render import render
from artist.astra.model.all_npus import AllNpus
from artist.astra.model.analytical import AnalyticalBackend, finish_times
from artist.astra.model.prepared_graph import prepare_graph
from artist.astra.model.representatives import play_classes
from artist.errors import BackendSettingError, TraceError
from artist.estimates.query import Dimension, SystemSettings, Topology
from artist.workload.graph import GraphNode, JobGraph, NodeAction
from artist.workload.layers import Collective

RECORDED = pytest.mark.skipif(not FOLDER.is_dir(), reason="recorded runs are not beside this tree")
RING = ("ring", "ring")
SYSTEM = SystemSettings(RING, RING, RING, RING)
SQUARE = (Dimension(Topology.SWITCH, 4, 200.0, 500.0), Dimension(Topology.SWITCH, 4, 25.0, 1000.0))


def check(case: HybridCase) -> None:
    if None in case.finish_ns:
        with pytest.raises(BackendSettingError):
            finish_times(case.graph, case.dimensions, case.system)
        return
    ended = finish_times(case.graph, case.dimensions, case.system)
    assert ended == case.finish_ns, case.id
    exposed = [end - case.graph.compute_ns(gpu) for gpu, end in enumerate(ended)]
    assert exposed == case.exposed_ns, case.id


@RECORDED
@pytest.mark.parametrize("part", range(4))
def test_every_npu_finishes_when_astra_sim_says(part: int) -> None:
    for case in (*cases("mechanics", part, 16), *cases("hybrid", part, 16)):
        check(case)


@RECORDED
@pytest.mark.slow
@pytest.mark.parametrize("part", range(min(16, CASES // 500)))
@pytest.mark.parametrize("file", ["mechanics", "hybrid", "jobs"])
def test_every_npu_of_every_recorded_job_finishes_when_astra_sim_says(file: str, part: int) -> None:
    for case in cases(file, part, 16):
        check(case)


def node(after: tuple[int, ...] = (), us: int = 0, size: int = 0, **rest: object) -> GraphNode:
    kind = NodeAction.COLLECTIVE if size else NodeAction.COMPUTE
    collective = Collective.ALL_REDUCE if size else Collective.NONE
    return replace(GraphNode(kind, after, us, collective, size), **rest)  # type: ignore[arg-type]


def on_all(*nodes: GraphNode, npus: int = 16, **communicators: tuple[int, ...]) -> JobGraph:
    numbered = {int(name[1:]): ranks for name, ranks in communicators.items()}
    return JobGraph("g", (nodes,) * npus, numbered)


def message(kind: NodeAction, peer: int, *, size: int = 64, tag: int = 0) -> GraphNode:
    return GraphNode(kind, size_bytes=size, peer=peer, tag=tag)


def pair(first: GraphNode, second: GraphNode) -> JobGraph:
    idle = (node(us=1),)
    return JobGraph("g", ((first,), (second,), *(idle,) * 14))


BAD = {
    "a group of one": (on_all(node(size=64, over=1), c1=(0,)), "holds one GPU"),
    "a mask of nothing": (on_all(node(size=64, over=(False, False))), "holds no dimension"),
    "a short mask": (on_all(node(size=64, over=(True,))), "mask has 1 dimensions"),
    "no such group": (on_all(node(size=64, over=7)), "communicator 7 is in no list"),
    "not a member": (on_all(node(size=64, over=1), c1=(1, 2)), "does not hold GPU 0"),
    "a tiny all-gather": (
        on_all(node(size=3, collective=Collective.ALL_GATHER)),
        "all-gather of 3 bytes in 4 parts",
    ),
    "a cycle": (on_all(node((1,)), node((0,))), "node 0: it waits for itself"),
    "to itself": (on_all(message(NodeAction.SEND, 0)), "sends to itself"),
    "nothing to send": (on_all(message(NodeAction.SEND, 5, size=0)), "message has 0 bytes"),
    "to nobody": (on_all(message(NodeAction.SEND, 99)), "sends to GPU 99, but there are 16"),
    "too few GPUs": (on_all(node(), npus=8), "has 8 GPUs, but the placement has 16"),
    "no send": (
        pair(message(NodeAction.RECEIVE, 1), node(us=1)),
        "receives 64 bytes with tag 0 from GPU 1, which sends no such message",
    ),
    "another tag": (
        pair(message(NodeAction.RECEIVE, 1, tag=3), message(NodeAction.SEND, 0)),
        "with tag 3",
    ),
    "another order": (
        JobGraph(
            "g",
            tuple(
                tuple(node(size=64, over=mask) for mask in ((npu < 8, npu > 7), (npu > 7, npu < 8)))
                for npu in range(16)
            ),
        ),
        "waits in a collective",
    ),
}


@pytest.mark.parametrize(("graph", "reason"), BAD.values(), ids=BAD)
def test_graphs_that_hang_astra_sim_are_refused_with_the_reason(
    graph: JobGraph, reason: str
) -> None:
    with pytest.raises(BackendSettingError, match=reason):
        finish_times(graph, SQUARE, SYSTEM)


def test_no_event_may_happen_at_time_zero() -> None:
    with pytest.raises(BackendSettingError, match="endpoint_delay_ns is 0"):
        finish_times(on_all(node(size=64)), SQUARE, replace(SYSTEM, endpoint_delay_ns=0))


@pytest.mark.parametrize(
    ("algorithm", "ranks", "reason"),
    [
        ("doubleBinaryTree", (0, 1), "in a communicator: ASTRA-sim crashes"),
        ("halvingDoubling", (0, 1, 2), "communicator of 3 GPUs"),
    ],
)
def test_algorithms_that_crash_in_a_communicator_are_refused(
    algorithm: str, ranks: tuple[int, ...], reason: str
) -> None:
    line = (Dimension(Topology.RING, 8, 50.0, 500.0),)
    one = (algorithm,)
    busy, idle = (node(size=64, over=1),), (node(us=1),)
    programs = tuple(busy if gpu in ranks else idle for gpu in range(8))
    with pytest.raises(BackendSettingError, match=reason):
        finish_times(JobGraph("g", programs, {1: ranks}), line, SystemSettings(one, one, one, one))


def test_a_message_and_its_receive_take_the_time_of_the_message() -> None:
    graph = pair(
        message(NodeAction.SEND, 1, size=10**6), message(NodeAction.RECEIVE, 0, size=10**6)
    )
    message_ns = int(2 * 500 + 10**6 / (200 * 2**30 / 1e9))
    assert finish_times(graph, SQUARE, SYSTEM) == [message_ns, message_ns, *[1000] * 14]


def test_a_representative_finishes_when_all_npus_would() -> None:
    """A pipeline of four stages over the outer dimension, reduced over the inner one."""
    mask = (True, False)

    def stage(npu: int) -> tuple[GraphNode, ...]:
        nodes = [node(us=50)] if npu < 4 else [message(NodeAction.RECEIVE, npu - 4), node((0,), 50)]
        nodes.append(node((len(nodes) - 1,), size=10**6, over=mask))
        if npu < 12:
            nodes.append(replace(message(NodeAction.SEND, npu + 4), after=(len(nodes) - 1,)))
        return tuple(nodes)

    prepared = prepare_graph(JobGraph("g", tuple(map(stage, range(16)))), SQUARE, SYSTEM)
    assert play_classes(prepared) == AllNpus(prepared.work, prepared.programs).run()


def write(folder: Path, graph: JobGraph) -> Path:
    folder.mkdir()
    for gpu, nodes in enumerate(graph.programs):
        (folder / f"job.{gpu}.et").write_bytes(encode_program(nodes))
    groups = {str(number): list(ranks) for number, ranks in graph.communicators.items()}
    (folder / "comm_group.json").write_text(json.dumps(groups), encoding="utf-8")
    return folder


GRAPH = on_all(
    node(us=7), node((0,), size=4096, over=1), node((0, 1), size=64, over=(True, False)),
    npus=4, c1=(0, 2, 1, 3),
)  # fmt: skip


def test_a_folder_holds_the_graph_that_was_written(tmp_path: Path) -> None:
    read = read_folder(write(tmp_path / "traces", GRAPH))
    assert (read.programs, read.communicators) == (GRAPH.programs, GRAPH.communicators)


def test_a_rendered_query_is_a_folder_of_traces(tmp_path: Path) -> None:
    """The settings of the query are neither communicators nor part of the graph."""
    asked = tiny(4)
    render(asked, tmp_path)
    read, digest = chakra_workload(tmp_path), digest_of_model(f"chakra:{tmp_path}")
    answer = AnalyticalBackend().estimate(replace(asked, workload=read))
    assert answer.finish_ns == AnalyticalBackend().estimate(asked).finish_ns
    (tmp_path / "system.json").write_text("{}")
    assert digest_of_model(f"chakra:{tmp_path}") == digest


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda folder: (folder / "job.1.et").unlink(), "trace of GPU 1 is missing"),
        (lambda folder: (folder / "job.1.et").write_bytes(b"\x05\x01"), r"job\.1\.et: .*truncated"),
        (lambda folder: (folder / "comm_group.json").write_text("[1]"), "expected communicators"),
        *(
            (lambda folder, text=text: (folder / "comm_group.json").write_text(text), reason)
            for text, reason in (
                ('{"1": [0, 1], "1": [1, 0]}', "a key is given twice: '1'"),
                ('{"1": [0, true]}', "True is not a GPU"),
                ('{"1": [0.5]}', "0.5 is not a GPU"),
                ('{"1": [1e309]}', "inf is not a GPU"),
                ('{"x": [0]}', "a communicator called 'x'"),
                ("[" * 99_999, "expected communicators"),
            )
        ),
        (lambda folder: (folder / "more.json").write_text("{}"), "keep one list"),
        (lambda folder: (folder / "other.1.et").write_bytes(b""), "both of GPU 1"),
    ],
)
def test_a_damaged_folder_is_refused(tmp_path: Path, spoil: object, reason: str) -> None:
    folder = write(tmp_path / "traces", GRAPH)
    spoil(folder)  # type: ignore[operator]
    with pytest.raises(TraceError, match=reason):
        read_folder(folder)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(number: int, kind: int, name: str, *rest: bytes, **attributes: int | str) -> bytes:
    """A node as Chakra's converter writes those of PyTorch's profiler: its caller in field 4."""
    shown = [
        field(10, field(1, key) + field(29 if isinstance(value, str) else 9, value))
        for key, value in attributes.items()
    ]
    message = b"".join((field(1, number), field(2, name), field(3, kind), *rest, *shown))
    return varint(len(message)) + message


def from_pytorch(folder: Path, *groups: str, over: str = "7") -> Path:
    """A host call, the collective that it starts, and a computation of the host after it."""
    folder.mkdir()
    for gpu, listed in enumerate(groups):
        root = field(4, 1)  # the root of the call stack, which the converter drops
        inputs = field(8, field(1, f"['{listed}']"))
        lines = (
            b"\x00",
            record(2, 1, "## process_group:init ##", root, inputs),
            record(3, 7, "c10d::allreduce_", root, field(5, 2), field(7, 9), is_cpu_op=1),
            record(4, 7, "ncclDevKernel_AllReduce", field(4, 3), field(5, 3), field(7, 50),
                   is_cpu_op=0, comm_type=0, comm_size=4096, pg_name=over),
            record(5, 4, "aten::add", root, field(5, 3), field(7, 5), is_cpu_op=1),
        )  # fmt: skip
        (folder / f"ddp.{gpu}.et").write_bytes(b"".join(lines))
    return folder


PAIR = (
    '[{"pg_name": "0", "ranks": []}, {"pg_name": "ab12", "ranks": [0]}, {"pg_name": "7", "ranks": '
)


def test_process_groups_are_those_that_pytorch_lists(tmp_path: Path) -> None:
    program = (
        GraphNode(NodeAction.HOST, (), 9),
        GraphNode(NodeAction.COLLECTIVE, (0,), 50, Collective.ALL_REDUCE, 4096, 7),
        GraphNode(NodeAction.HOST, (0,), 5),
    )
    halves = (PAIR + "[0, 1]}]", PAIR + "[0, 1]}]")
    read = read_folder(from_pytorch(tmp_path / "pair", *halves))
    assert read.programs == (program,) * 2
    assert (read.communicators[0], read.communicators[7]) == ((0, 1), (0, 1))
    of_all = read_folder(from_pytorch(tmp_path / "all", *[PAIR + "[]}]"] * 3))
    assert of_all.communicators[7] == (0, 1, 2)
    listed = from_pytorch(tmp_path / "listed", *halves)
    (listed / "comm_group.json").write_text('{"7": [1, 0]}', encoding="utf-8")
    assert read_folder(listed).communicators == {7: (1, 0)}


def test_a_process_group_may_be_called_by_a_hash(tmp_path: Path) -> None:
    lists = [PAIR.replace("ab12", name) + "[]}]" for name in ("ab12", "cd34")]
    read = read_folder(from_pytorch(tmp_path / "ab", lists[0], lists[0], over="ab12"))
    assert [read.communicators[nodes[1].over] for nodes in read.programs] == [(0,), (0,)]  # type: ignore[index]
    with pytest.raises(TraceError, match=r"ddp\.1\.et: .*its pg_name is 'ab12'"):
        read_folder(from_pytorch(tmp_path / "cd", *lists, over="ab12"))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (PAIR + "[1, 0]}]", r"ddp\.1\.et: process group 7 has other ranks"),
        (PAIR + "[true]}]", r"ddp\.1\.et: node 2 .*True is not a GPU"),
        ("[{}]", "expected a list of process groups"),
        ("[1]", "expected a list of process groups"),
        ("[", "expected a list of process groups"),
    ],
)
def test_process_groups_that_disagree_are_refused(tmp_path: Path, second: str, reason: str) -> None:
    with pytest.raises(TraceError, match=reason):
        read_folder(from_pytorch(tmp_path / "traces", PAIR + "[0, 1]}]", second))
