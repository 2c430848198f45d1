"""Does `artist astra` replace ASTRA-sim: the same results, output lines and exit codes?"""

from __future__ import annotations

import json
import random
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from analytical_queries import A2A, AG, AR, RING, RS, dims, micro, query
from rendered_queries import tiny

from artist.astra.files.chakra_graph import nodes, workload_of
from artist.astra.files.chakra_reader import decode_node, decode_nodes
from artist.astra.files.chakra_schema import (
    InexpressibleTraceError,
    MalformedTraceError,
    Node,
    NodeKind,
)
from artist.astra.files.chakra_writer import encode_node, encode_workload
from artist.astra.files.input_reader import read_query
from artist.astra.files.render import render
from artist.astra.model.analytical import AnalyticalBackend, finishes
from artist.astra.programs.binary_backend import BinaryBackend
from artist.cli.main import main
from artist.errors import BackendError, BackendSettingError
from artist.estimates.query import Dimension, LatencyQuery, Topology
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Workload

SIZES = (1024, 37632, 1_000_003, 16_777_216)
ALGORITHMS = ("ring", "direct", "direct2", "oneRing", "oneDirect")

Run = Callable[..., tuple[int, str, str]]


def random_workload(dice: random.Random) -> Workload:
    def phase(*kinds: Collective) -> Phase:
        compute_us = float(dice.choice((0, 1, 17, 300)))
        return (
            Phase(compute_us, dice.choice(kinds), dice.choice(SIZES))
            if kinds
            else Phase(compute_us)
        )

    parallelism = dice.choice((Parallelism.DATA, Parallelism.DATA, Parallelism.MICRO))
    layers = tuple(
        Layer(f"l{i}", phase(), phase(), phase(Collective.NONE, AR, AR, RS, AG, A2A))
        for i in range(dice.randint(1, 5))
    )
    return Workload("random", parallelism, layers)


def random_query(seed: int) -> LatencyQuery:
    dice = random.Random(seed)
    network = tuple(
        Dimension(
            dice.choice(list(Topology)),
            dice.randint(2, 4),
            dice.choice((50.0, 299.7, 0.125)),
            dice.choice((0.0, 500.0, 936.25)),
        )
        for _ in range(dice.randint(1, 3))
    )
    trees = seed % 5 == 0
    if trees:
        network = tuple(replace(dimension, npus=4) for dimension in network[:2])
    names = ("doubleBinaryTree",) if trees else ALGORITHMS
    return query(
        random_workload(dice),
        network,
        [dice.choice(names) for _ in network],
        passes=dice.randint(1, 3),
        preferred_dataset_splits=dice.randint(1, 5),
        active_chunks_per_dimension=dice.choice((1, 2, 1000)),
        queues_per_dimension=dice.randint(1, 3),
        endpoint_delay_ns=dice.choice((1, 10, 500)),
        local_mem_bandwidth_gb_per_s=dice.choice((50.5, 1600.0)),
        scheduling_policy=dice.choice(("LIFO", "FIFO")),
        collective_optimization=dice.choice(("baseline", "localBWAware")),
    )


def answerable(count: int) -> list[LatencyQuery]:
    """The first random queries that ASTRA-sim answers."""
    queries: list[LatencyQuery] = []
    seed = 0
    while len(queries) < count:
        asked = random_query(seed := seed + 1)
        try:
            AnalyticalBackend().estimate(asked)
        except BackendSettingError:
            continue
        queries.append(asked)
    return queries


@pytest.fixture
def backend(tmp_path: Path) -> BinaryBackend:
    script = tmp_path / "astra"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m artist astra "$@"\n')
    script.chmod(0o755)
    return BinaryBackend(script)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in a folder that holds `tiny(2)` as rendered."""
    render(tiny(2), tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["artist", "astra", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        assert code is None or isinstance(code, int)
        return code or 0, *capsys.readouterr()

    return run


FLAGS = (
    "--workload-configuration=workload",
    "--system-configuration=system.json",
    "--network-configuration=network.yml",
    "--remote-memory-configuration=memory.json",
)


def test_a_binary_that_is_artist_answers_as_artist(backend: BinaryBackend) -> None:
    asked = answerable(8)
    assert {x.workload.parallelism for x in asked} == {Parallelism.DATA, Parallelism.MICRO}
    for one in asked:
        answer, expected = backend.estimate(one), AnalyticalBackend().estimate(one)
        assert (answer.finish_ns, answer.compute_ns) == (expected.finish_ns, expected.compute_ns)


def test_a_query_reads_back_except_for_names(tmp_path: Path) -> None:
    for number, asked in enumerate(answerable(60)):
        folder = tmp_path / str(number)
        render(asked, folder)
        read = read_query(
            folder / "workload",
            folder / "system.json",
            folder / "network.yml",
            folder / "memory.json",
            asked.system.queues_per_dimension,
        )
        assert (read.dimensions, read.system) == (asked.dimensions, asked.system)
        assert finishes(read) == finishes(asked)
        if asked.workload.parallelism is Parallelism.DATA:
            assert read.passes == asked.passes


def test_a_deadlock_reaches_the_caller_as_one(backend: BinaryBackend) -> None:
    """The query is that of `test_a_deadlock_names_the_setting_that_helps`."""
    three = dims((RING, 2), (RING, 4), (RING, 2), latency_ns=500.0)
    names = ("doubleBinaryTree", "doubleBinaryTree", "halvingDoubling")
    settings = {"preferred_dataset_splits": 4, "endpoint_delay_ns": 100}
    asked = query(micro((AR, 1_000_000)), three, names, **settings)
    with pytest.raises(BackendSettingError) as caught:
        backend.estimate(asked)
    assert caught.value.reason == "deadlock"


def test_output_lines_are_those_of_astra_sim(run: Run, tmp_path: Path) -> None:
    code, out, err = run(*FLAGS, "--num-queues-per-dim=1", "--logging-folder=new/log")
    estimate = AnalyticalBackend().estimate(tiny(2))
    finish, exposed = estimate.finish_ns, estimate.exposed_comm_ns
    assert (code, err) == (0, "")
    assert [line.partition("] ")[2] for line in out.splitlines()] == [
        f"[workload] [info] sys[{rank}] finished, {finish} cycles, "
        f"exposed communication {exposed} cycles."
        for rank in (0, 1)
    ]
    assert (tmp_path / "new/log/log.log").read_text() == out


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (FLAGS[1:], 255, "--workload-"),
        ((*FLAGS, "--num-queue-per-dim=2"), 255, "--num-queue-per-dim=2"),
        ((*FLAGS, "word"), 255, "'word'"),
        ((*FLAGS, "--injection-scale=2"), 255, "--injection-scale"),
        ((*FLAGS, "--num-queues-per-dim=0"), 134, "queues_per_dimension is 0"),
        ((*FLAGS, "--logging-folder=system.json"), 255, "system.json: cannot be written"),
        ((*FLAGS, "--workload-configuration=no"), 1, "no.0.et: cannot be read"),
        ((*FLAGS, "--system-configuration=no"), 1, "no: cannot be read"),
        ((*FLAGS, "--remote-memory-configuration=no"), 1, "no: cannot be read"),
        ((*FLAGS, "--network-configuration=no"), 255, "no: cannot be read"),
    ],
)
def test_bad_arguments(arguments: tuple[str, ...], code: int, why: str, run: Run) -> None:
    ended = run(*arguments)
    assert ended[:2] == (code, "")
    assert why in ended[2]


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("scheduling-policy", "LAFO", 1),
        ("scheduling-policy", None, 134),
        ("collective-optimization", "foo", 1),
        ("all-reduce-implementation", ["rong"], 1),
        ("all-reduce-implementation", "ring", 134),
        ("all-reduce-implementation", ["ring", "ring"], 134),
        ("preferred-dataset-splits", 0, 136),
        ("preferred-dataset-splits", None, 136),
        ("endpoint-delay", "x", 134),
        ("local-mem-bw", 0, 134),
        ("roofline-enabled", 1, 4),
        ("endpoint-dely", 1, 4),
    ],
)
def test_bad_system_settings(key: str, value: object, code: int, run: Run) -> None:
    document = json.loads(Path("system.json").read_text()) | {key: value}
    if value is None:
        del document[key]
    Path("system.json").write_text(json.dumps(document))
    ended = run(*FLAGS)
    assert ended[:2] == (code, "")
    assert key[:9] in ended[2].replace("_", "-")


def network(*npus: int) -> str:
    """A network file with these NPUs per dimension."""
    ones = [1] * len(npus)
    return json.dumps(
        {
            "topology": ["Ring"] * len(npus),
            "npus_count": npus,
            "bandwidth": ones,
            "latency": ones,
        }
    )


# Nine lines, each of which repeats the one above nine times.
LAUGHS = "a: &a [Ring]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("name", "text", "code", "why"),
    [
        ("system.json", "{", 134, "not valid JSON"),
        ("system.json", "[]", 134, "an object"),
        ("memory.json", '{"memory-type": "FOO"}', 1, "FOO"),
        ("network.yml", "{", 255, "not valid YAML"),
        ("network.yml", "3", 255, "topology"),
        ("network.yml", "{}", 255, "lists of one length"),
        ("network.yml", "topologies: [Ring]", 4, "did you mean 'topology'"),
        ("network.yml", network(40_000_000), 4, "40000000 NPUs, expected at most 4000000"),
        ("network.yml", network(*[2] * 22), 4, "4194304 NPUs, expected at most 4000000"),
        ("network.yml", LAUGHS, 255, "more than 2000000 values"),
        ("network.yml", f"npus_count: {LAUGHS}", 255, "mapping values are not allowed"),
        ("network.yml", "[" * 200 + "]" * 200, 255, "nested more than 100 deep"),
        ("network.yml", "topology: [Ring]\ntopology: [Ring]", 255, "given twice"),
        ("network.yml", "#" * 4_194_305, 4, "more than 4 MiB"),
        ("system.json", " " * 4_194_305, 4, "more than 4 MiB"),
    ],
)
def test_bad_files(name: str, text: str, code: int, why: str, run: Run) -> None:
    Path(name).write_text(text)
    ended = run(*FLAGS)
    assert ended[:2] == (code, "")
    assert f"{name}:" in ended[2]
    assert why in ended[2]


@pytest.mark.parametrize(
    ("column", "value"),
    [("topology", "Rng"), ("npus_count", "1"), ("bandwidth", "0"), ("latency", "-1")],
)
def test_bad_dimensions(column: str, value: str, run: Run) -> None:
    columns = {"topology": "Ring", "npus_count": "2", "bandwidth": "1e-05", "latency": "0"}
    columns[column] = value
    Path("network.yml").write_text("".join(f"{k}: [{v}]\n" for k, v in columns.items()))
    code, _, err = run(*FLAGS)
    assert code == 255
    assert f"{column} of dimension 0 is {value!r}" in err


def test_npus_that_run_different_traces(run: Run) -> None:
    Path("workload.1.et").unlink()
    assert run(*FLAGS)[0] == 1
    Path("workload.1.et").write_bytes(encode_workload(micro((AR, 1024))))
    code, _, err = run(*FLAGS)
    assert code == 4
    assert "workload.1.et: differs" in err


def test_a_truncated_trace_is_an_error_wherever_it_ends() -> None:
    data = encode_workload(tiny().workload)
    for end in range(len(data)):
        with pytest.raises(BackendError):
            workload_of(decode_nodes(data[:end]), "cut")


def test_random_bytes_are_not_a_trace() -> None:
    dice = random.Random(7)
    for _ in range(500):
        with pytest.raises(BackendError):
            workload_of(decode_nodes(dice.randbytes(dice.randint(0, 60))), "noise")
    with pytest.raises(MalformedTraceError, match="ends no number"):
        decode_nodes(b"\xff" * 20)


def test_other_graphs_are_refused() -> None:
    graph = list(nodes(tiny().workload, passes=2))
    collective = next(x for x in graph if x.kind is NodeKind.COLLECTIVE)
    others = [
        graph[:-1],
        [replace(graph[0], parents=(3,)), *graph[1:]],
        [*graph[:-1], replace(graph[-1], comm_bytes=1)],
        [*graph[:-1], replace(graph[-1], id=0)],
        [x for x in graph if x.kind is NodeKind.COMPUTE],
        [replace(collective, parents=(0,)), replace(collective, id=9)],
    ]
    for other in others:
        with pytest.raises(InexpressibleTraceError):
            workload_of(other, "other")


@pytest.mark.parametrize(
    "extra",
    [
        bytes.fromhex("20 01"),  # a control dependency
        bytes.fromhex("52 07 0a 01 78 48 01"),  # another attribute
        bytes.fromhex("18 05"),  # another kind
    ],
)
def test_nodes_with_more_are_refused(extra: bytes) -> None:
    with pytest.raises(BackendError):
        decode_node(encode_node(Node(1, "a", NodeKind.COMPUTE, (), 5)) + extra)
