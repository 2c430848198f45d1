"""A folder of Chakra execution traces: one file per GPU, and the lists of its communicators.

    job.0.et  job.1.et  ...   the nodes of each GPU
    comm_group.json           {"1": [0, 1], "2": [2, 3]}: communicators by number, in ring order

These are the traces that ASTRA-sim 2.x runs: those of the symbolic tensor graph generator, and
those that Chakra's converter makes from PyTorch's profiler. The latter list their process groups in
a metadata node; `comm_group.json` takes precedence. A computation without a duration takes the time
of its `num_ops` on an A100, as matrix multiplications in BF16 (`workload/gpus.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from zlib import crc32

from artist.astra.files.chakra_reader import Fields, fields, messages, text_of, varints
from artist.astra.files.chakra_schema import COLLECTIVES, MalformedTraceError
from artist.errors import TraceError, shortened
from artist.io.digests import sha256
from artist.io.reading import decode, each_key_once, read_bytes
from artist.workload.gpus import Precision, gpu
from artist.workload.graph import GraphNode, JobGraph, NodeAction, Over
from artist.workload.layers import Collective, Parallelism, Workload
from artist.workload.models import CHAKRA

_FILE = re.compile(r"(?P<stem>.*)\.(?P<gpu>[0-9]{1,7})\.et")
_NUMBER = re.compile(r"[0-9]{1,9}")
_KINDS = {
    4: NodeAction.COMPUTE,
    5: NodeAction.SEND,
    6: NodeAction.RECEIVE,
    7: NodeAction.COLLECTIVE,
}
_METADATA = 1
_SKIPPED = (0, _METADATA)
"""Types of invalid and metadata nodes, which ASTRA-sim skips."""
_MEMORY = (2, 3)
_SETTINGS = ("memory.json", "system.json")
"""Configuration that `artist render` writes beside the traces. They list no communicators."""

Attributes = dict[str, "int | str | tuple[bool, ...]"]
Communicators = dict[int, tuple[int, ...]]


def chakra_workload(folder: Path) -> Workload:
    """The workload in a folder.

    Raises:
        TraceError: as `read_folder`.
    """
    return workload_of_graph(read_folder(folder))


def workload_of_graph(graph: JobGraph) -> Workload:
    """One iteration of a graph."""
    return Workload(graph.name, Parallelism.GRAPH, (), graph=graph)


def graph_of_model(model: str) -> JobGraph:
    """The graph of a job whose model is `chakra:DIR`.

    Raises:
        TraceError: as `read_folder`.
    """
    return read_folder(Path(model.removeprefix(CHAKRA)))


def digest_of_model(model: str) -> str:
    """The digest of the files that `graph_of_model` reads.

    Raises:
        TraceError: the folder or one of its traces is missing.
    """
    folder = Path(model.removeprefix(CHAKRA))
    read = (*_files(folder), *_lists(folder))
    return sha256("".join(sha256(read_bytes(path)) for path in read))


def read_folder(folder: Path) -> JobGraph:
    """The graph in a folder.

    Raises:
        TraceError: a file is missing or damaged, or holds what ASTRA-sim's analytical backends do
            not run.
    """
    files = _files(folder)
    listed = _communicators(folder)
    programs = []
    known: dict[bytes, tuple[GraphNode, ...]] = {}
    groups: Communicators = {}
    for path in files:
        data = read_bytes(path)
        if data not in known:
            read = _nodes(path, data)
            named = {} if listed is not None else _process_groups(path, read, len(files))
            _merge(groups, named, path)
            known[data] = _program(path, read, named)
        programs.append(known[data])
    return JobGraph(folder.name, tuple(programs), groups if listed is None else listed)


def _files(folder: Path) -> list[Path]:
    """The files with the traces, in the order of their GPUs."""
    if not folder.is_dir():
        raise TraceError(f"{folder}: no such folder; name one with a trace per GPU, NAME.0.et, ...")
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        match = _FILE.fullmatch(path.name)
        if match is None:
            continue
        gpu = int(match["gpu"])
        if gpu in found:
            raise TraceError(f"{folder}: {found[gpu].name} and {path.name} are both of GPU {gpu}")
        found[gpu] = path
    if not found:
        raise TraceError(f"{folder}: holds no trace; name its files NAME.GPU.et, from GPU 0 on")
    missing = next((gpu for gpu in range(len(found)) if gpu not in found), None)
    if missing is not None:
        raise TraceError(
            f"{folder}: the trace of GPU {missing} is missing, that of GPU {max(found)} is there"
        )
    return [found[gpu] for gpu in range(len(found))]


def _lists(folder: Path) -> list[Path]:
    """The JSON files of the folder that list communicators."""
    return [path for path in sorted(folder.glob("*.json")) if path.name not in _SETTINGS]


def _communicators(folder: Path) -> Communicators | None:
    """The communicators of the only list of the folder; None without one."""
    paths = _lists(folder)
    if not paths:
        return None
    if len(paths) > 1:
        raise TraceError(f"{folder}: {paths[0].name} and {paths[1].name}: keep one list of groups")
    path = paths[0]
    try:
        groups = json.loads(decode(path, read_bytes(path)), object_pairs_hook=each_key_once)
        return {_number(name): tuple(map(_rank, ranks)) for name, ranks in groups.items()}
    except (AttributeError, TypeError, ValueError, RecursionError) as cause:
        raise TraceError(
            f'{path}: expected communicators by number, such as {{"1": [0, 1]}} '
            f"({shortened(str(cause))})"
        ) from cause


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"a communicator called {shortened(text)}")
    return int(text)


def _rank(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a GPU")
    return value


def _process_groups(path: Path, read: Iterable[_FileNode], gpus: int) -> Communicators:
    """The groups that PyTorch lists in a trace: ['[{"pg_name": "1", "ranks": [0, 1]}]'].

    An empty list of ranks means all ranks.
    """
    groups: Communicators = {}
    for node in read:
        if node.type != _METADATA or "process_group:init" not in node.name or not node.values:
            continue
        try:
            rows = json.loads(node.values.removeprefix("['").removesuffix("']"))
            for row in rows:
                ranks = tuple(map(_rank, row["ranks"]))
                groups[_number_of(str(row["pg_name"]))] = ranks or tuple(range(gpus))
        except (KeyError, TypeError, ValueError, RecursionError) as cause:
            raise TraceError(
                f"{path}: node {node.id} {shortened(node.name)}: expected a list of process groups "
                f"with pg_name and ranks ({shortened(str(cause))})"
            ) from cause
    return groups


def _number_of(name: str) -> int:
    """The number of a process group: its name, or a digest of the name if that is not a number.

    A group that only its members create is named by PyTorch after a hash of their ranks.
    """
    return int(name) if _NUMBER.fullmatch(name) else 10**9 + crc32(name.encode())


def _merge(groups: Communicators, of_trace: Communicators, path: Path) -> None:
    """Add the groups of a trace to those of the traces before."""
    for number, ranks in of_trace.items():
        if groups.setdefault(number, ranks) != ranks:
            raise TraceError(
                f"{path}: process group {number} has other ranks than in the traces before; "
                "list the groups in comm_group.json"
            )


def _nodes(path: Path, data: bytes) -> list[_FileNode]:
    """The nodes of one trace in the order of their numbers."""
    try:
        read = [_FileNode(message) for message in list(messages(data))[1:]]
    except MalformedTraceError as cause:
        raise TraceError(f"{path}: {cause}") from cause
    if not read:
        raise TraceError(f"{path}: holds no nodes")
    read.sort(key=lambda node: node.id)
    return read


def _program(path: Path, read: list[_FileNode], named: Communicators) -> tuple[GraphNode, ...]:
    """The nodes of one GPU, in the order of their ids."""
    by_id = {node.id: node for node in read}
    if len(by_id) < len(read):
        raise TraceError(f"{path}: two nodes have the same id")
    kept = [node for node in read if node.type not in _SKIPPED]
    places = {node.id: place for place, node in enumerate(kept)}
    nodes = []
    for node in kept:
        try:
            after = tuple(sorted({places[x] for x in _parents(node, by_id)}))
            nodes.append(node.graph_node(after, named))
        except (KeyError, ValueError) as cause:
            no_node = isinstance(cause, KeyError)
            reason = f"it waits for {cause}, which is not a node" if no_node else cause
            raise TraceError(f"{path}: node {node.id} {shortened(node.name)}: {reason}") from cause
    return tuple(nodes)


def _parents(node: _FileNode, by_id: Mapping[int, _FileNode]) -> Iterator[int]:
    """The nodes that a node waits for; a skipped one is replaced by those that it waits for."""
    waiting, seen = _waits_for(node, by_id), set()
    while waiting:
        parent = waiting.pop()
        if parent in seen:
            continue
        seen.add(parent)
        if by_id[parent].type in _SKIPPED:
            waiting += _waits_for(by_id[parent], by_id)
        else:
            yield parent


def _waits_for(node: _FileNode, by_id: Mapping[int, _FileNode]) -> list[int]:
    """Its parents, and its callers in the file: Chakra's converter drops roots of call stacks."""
    return node.parents + [caller for caller in node.callers if caller in by_id]


class _FileNode:
    """A node of the file."""

    def __init__(self, message: bytes) -> None:
        self.id = self.type = self.duration_us = 0
        self.name = self.values = ""
        self.parents: list[int] = []
        self.callers: list[int] = []
        self.attributes: Attributes = {}
        for field, value in fields(message):
            match field, value:
                case 1, int():
                    self.id = value
                case 2, bytes():
                    self.name = text_of(value)
                case 3, int():
                    self.type = value
                case 4, bytes():
                    self.callers += varints(value)
                case 4, int():
                    self.callers.append(value)
                case 5, bytes():
                    self.parents += varints(value)
                case 5, int():
                    self.parents.append(value)
                case 8, bytes() if self.type == _METADATA:
                    values = dict(fields(value)).get(1, b"")
                    self.values = text_of(values) if isinstance(values, bytes) else ""
                case 7, int():
                    self.duration_us = value
                case 10, bytes():
                    self.attributes |= _attribute(fields(value))

    def graph_node(self, after: tuple[int, ...], named: Communicators) -> GraphNode:
        """The node of the graph. `named` are the process groups that its trace lists.

        Raises:
            ValueError: ASTRA-sim's analytical backends do not run it.
        """
        if self.type in _MEMORY:
            raise ValueError("it loads or stores remote memory, which artist does not model")
        if self.type not in _KINDS:
            raise ValueError(f"its type is {self.type}, expected one of {sorted(_KINDS)}")
        kind = _KINDS[self.type]
        host = self.attributes.get("is_cpu_op", False) in (True, 1)
        # This call on the host only starts a collective, which has a node of its own.
        call = host and kind is NodeAction.COLLECTIVE and "comm_type" not in self.attributes
        if kind is NodeAction.COMPUTE or call:
            return GraphNode(NodeAction.HOST if host else kind, after, self._compute_us())
        if kind is NodeAction.COLLECTIVE:
            collective = COLLECTIVES.get(self._number("comm_type"), Collective.NONE)
            size = self._number("comm_size") if collective is not Collective.NONE else 0
            return GraphNode(kind, after, self.duration_us, collective, size, self._over(named))
        peer = self._number("comm_dst" if kind is NodeAction.SEND else "comm_src")
        size, tag = self._number("comm_size"), self._number("comm_tag", 0)
        return GraphNode(kind, after, size_bytes=size, peer=peer, tag=tag)

    def _compute_us(self) -> int:
        operations = self._number("num_ops", 0)
        if self.duration_us or not operations:
            return self.duration_us
        device = gpu("a100", Precision.BF16, roofline=True)
        return round(device.kernel_us(operations, self._number("tensor_size", 0)))

    def _over(self, named: Communicators) -> Over:
        name = str(self.attributes.get("pg_name", ""))
        if name not in ("", "0"):
            number = _number_of(name)
            if number not in named and not _NUMBER.fullmatch(name):
                raise ValueError(f"its pg_name is {name!r}, expected a communicator's number")
            return number
        mask = self.attributes.get("involved_dim")
        return mask if isinstance(mask, tuple) else None

    def _number(self, name: str, default: int | None = None) -> int:
        value = self.attributes.get(name, default)
        if not isinstance(value, int):
            raise ValueError(f"it has no number {name}")
        return int(value)


# Fields of Chakra's AttributeProto for a number, a text, and a list of truth values.
_NUMBERS = (7, 9, 11, 13, 27)
_TEXT, _BOOLS = 29, 28


def _attribute(found: Fields) -> Attributes:
    """The attribute in these fields, if it is a number, a text or a mask; others are ignored.

    A number 0 and a list of False values may be left out of a file.
    """
    values = dict(found)
    name = values.get(1, b"")
    key = text_of(name) if isinstance(name, bytes) else ""
    for number in _NUMBERS:
        if isinstance(value := values.get(number), int):
            return {key: value}
    if isinstance(text := values.get(_TEXT), bytes):
        return {key: text_of(text)}
    if isinstance(listed := values.get(_BOOLS), bytes):
        packed = dict(fields(listed)).get(1, b"")
        bits = varints(packed) if isinstance(packed, bytes) else [packed]
        return {key: tuple(bool(bit) for bit in bits)}
    return {}
