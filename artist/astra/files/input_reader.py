"""Reads ASTRA-sim 2.x's input files back into the query that they hold.

This is the inverse of `artist.astra.files.render`. Every error has the exit code with which
ASTRA-sim ends on the same file. If ASTRA-sim would answer but artist cannot express the query, the
code is `INEXPRESSIBLE`, which ASTRA-sim never uses.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from artist.astra.files.chakra_graph import workload_of
from artist.astra.files.chakra_reader import decode_nodes
from artist.astra.files.chakra_schema import MalformedTraceError
from artist.astra.messages.groups import algorithm_of
from artist.astra.model.refusals import OPTIMIZATIONS, POLICIES
from artist.cluster.tree import MAX_GPUS
from artist.errors import BackendError, BackendSettingError, ConfigError, did_you_mean, shortened
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.io.reading import MAX_DOCUMENT_BYTES, open_binary
from artist.io.safe_yaml import parse_yaml
from artist.workload.layers import Workload

# Exit codes: first artist's own for a backend's error, then ASTRA-sim's. Codes from 128 on are
# 128 + N for signal N (6: abort, 8: division by zero).
INEXPRESSIBLE = 4
MISSING_OR_UNKNOWN = 1
ABORTED = 134
DIVIDED_BY_ZERO = 136
REFUSED = 255

# In memory a trace takes many times its size. The largest that artist writes has a few MiB.
MAX_TRACE_BYTES = 2**28

_LISTS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
_SWITCHES = (
    *("model-shared-bus", "roofline-enabled", "replay-only", "trace-enabled"),
    "track-local-mem",
)
_SCALARS = {
    "scheduling_policy": "scheduling-policy",
    "collective_optimization": "collective-optimization",
    "preferred_dataset_splits": "preferred-dataset-splits",
    "active_chunks_per_dimension": "active-chunks-per-dimension",
    "endpoint_delay_ns": "endpoint-delay",
    "local_mem_bandwidth_gb_per_s": "local-mem-bw",
}
_COLUMNS = ("topology", "npus_count", "bandwidth", "latency")

Value = TypeVar("Value")


class AstraInputError(BackendError):
    """An input file is missing, malformed or beyond what artist can express.

    `exit_code` is the one that ASTRA-sim ends with, or `INEXPRESSIBLE`.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (str(self), self.exit_code))


def read_query(
    workload: Path, system: Path, network: Path, memory: Path, queues: int
) -> LatencyQuery:
    """The query of one run. `workload` is the prefix of the traces PREFIX.RANK.et.

    Raises:
        AstraInputError: a file cannot be used; the message names it.
    """
    dimensions = read_network(network)
    read_memory(memory)
    settings = read_system(system, queues)
    layers, passes = read_traces(workload, math.prod(x.npus for x in dimensions))
    return LatencyQuery(layers, dimensions, settings, passes)


def read_network(path: Path) -> tuple[Dimension, ...]:
    """The dimensions of a network file.

    Raises:
        AstraInputError: the file cannot be used.
    """
    try:
        _, document = parse_yaml(_text(path, REFUSED), str(path), typed=False)
    except ConfigError as cause:
        raise AstraInputError(str(cause), REFUSED) from cause
    if not isinstance(document, dict):
        raise AstraInputError(f"{path}: expected {', '.join(_COLUMNS)}", REFUSED)
    _check_known(path, document, _COLUMNS)
    columns = [document.get(name) for name in _COLUMNS]
    if not all(isinstance(x, list) and len(x) == len(columns[0] or ()) for x in columns):
        raise AstraInputError(
            f"{path}: expected lists of one length for {', '.join(_COLUMNS)}", REFUSED
        )
    rows = zip(*(column for column in columns if column), strict=True)
    dimensions = tuple(_dimension(path, index, row) for index, row in enumerate(rows))
    if (npus := math.prod(x.npus for x in dimensions)) > MAX_GPUS:
        raise AstraInputError(
            f"{path}: npus_count makes {shortened(npus)} NPUs, expected at most {MAX_GPUS}",
            INEXPRESSIBLE,
        )
    return dimensions


def read_memory(path: Path) -> None:
    """Check that the memory file asks for no remote memory.

    Raises:
        AstraInputError: the file cannot be used, or it asks for remote memory.
    """
    document = _json(path)
    _check_known(path, document, ("memory-type",))
    memory_type = document.get("memory-type")
    if memory_type != "NO_MEMORY_EXPANSION":
        raise AstraInputError(
            f"{path}: memory-type is {shortened(memory_type)}, expected NO_MEMORY_EXPANSION",
            MISSING_OR_UNKNOWN,
        )


def read_system(path: Path, queues: int) -> SystemSettings:
    """The settings of a system file.

    Raises:
        AstraInputError: the file cannot be used.
    """
    document = _json(path)
    lists = {f"{name.replace('_', '-')}-implementation": name for name in _LISTS}
    _check_known(path, document, (*_SCALARS.values(), *_SWITCHES, *lists))
    for key in _SWITCHES:
        if document.get(key, 0) not in (0, False):
            raise AstraInputError(
                f"{path}: {key} is {shortened(document[key])}, expected 0: artist models no "
                "other value",
                INEXPRESSIBLE,
            )
    settings = {name: _scalar(path, document, key) for name, key in _SCALARS.items()}
    optimization = settings["collective_optimization"]
    _check_choice(path, "scheduling-policy", settings["scheduling_policy"], POLICIES)
    _check_choice(path, "collective-optimization", optimization, OPTIMIZATIONS)
    splits = settings["preferred_dataset_splits"]
    if splits == 0:
        raise AstraInputError(
            f"{path}: preferred-dataset-splits is 0, expected 1 or more", DIVIDED_BY_ZERO
        )
    settings |= {name: _algorithms(path, document, key) for key, name in lists.items()}
    return SystemSettings(**settings, queues_per_dimension=queues)


def read_traces(prefix: Path, npus: int) -> tuple[Workload, int]:
    """The workload that all NPUs run, and its number of passes.

    Raises:
        AstraInputError: a trace is missing or malformed, NPUs run different traces, or no
            workload of artist has the graph.
    """
    first_path = prefix.with_name(f"{prefix.name}.0.et")
    first = _read(first_path, MISSING_OR_UNKNOWN, MAX_TRACE_BYTES)
    for rank in range(1, npus):
        path = prefix.with_name(f"{prefix.name}.{rank}.et")
        # Rendered traces are links to the first one: no need to read them.
        if not (path.exists() and path.samefile(first_path)) and (
            _read(path, MISSING_OR_UNKNOWN, MAX_TRACE_BYTES) != first
        ):
            raise AstraInputError(
                f"{path}: differs from {first_path.name}: artist answers where all NPUs run the "
                "same",
                INEXPRESSIBLE,
            )
    try:
        return workload_of(decode_nodes(first), prefix.name)
    except BackendError as cause:
        code = ABORTED if isinstance(cause, MalformedTraceError) else INEXPRESSIBLE
        raise AstraInputError(f"{first_path}: {cause}", code) from cause


def _dimension(path: Path, index: int, row: Sequence[Any]) -> Dimension:
    """One dimension of a network file."""

    def cell(at: int, convert: Callable[[Any], Value], valid: Callable[[Value], bool]) -> Value:
        try:
            value = convert(row[at])
        except (TypeError, ValueError):
            pass
        else:
            if valid(value):
                return value
        raise AstraInputError(
            f"{path}: {_COLUMNS[at]} of dimension {index} is {shortened(row[at])}, expected "
            + ("Ring, FullyConnected or Switch", "2 or more", "more than 0", "0 or more")[at],
            REFUSED,
        )

    return Dimension(
        cell(0, Topology, bool),
        cell(1, int, lambda npus: npus > 1),
        cell(2, float, lambda bandwidth: 0 < bandwidth < math.inf),
        cell(3, float, lambda latency: 0 <= latency < math.inf),
    )


def _scalar(path: Path, document: dict[str, Any], key: str) -> Any:
    """A name or number of a system file."""
    named = key in ("scheduling-policy", "collective-optimization")
    value = document.get(key)
    expected = str if named else (int, float)
    if not isinstance(value, expected) or isinstance(value, bool):
        code = DIVIDED_BY_ZERO if key == "preferred-dataset-splits" and value is None else ABORTED
        got = "missing" if value is None else shortened(value)
        raise AstraInputError(
            f"{path}: {key} is {got}, expected {'a name' if named else 'a number'}", code
        )
    return value


def _algorithms(path: Path, document: dict[str, Any], key: str) -> tuple[str, ...]:
    """The algorithms of a collective in a system file, one per dimension."""
    names = document.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise AstraInputError(
            f"{path}: {key} is {shortened(names)}, expected a list of names", ABORTED
        )
    try:
        for name in names:
            algorithm_of(name)
    except BackendSettingError as cause:
        raise AstraInputError(f"{path}: {key}: {cause}", MISSING_OR_UNKNOWN) from cause
    return tuple(names)


def _check_choice(path: Path, key: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise AstraInputError(
            f"{path}: {key} is {value!r}, expected one of {', '.join(known)}", MISSING_OR_UNKNOWN
        )


def _check_known(path: Path, document: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in document:
        if key not in known:
            hint = did_you_mean(str(key), known)
            raise AstraInputError(f"{path}: unknown key {shortened(key)}: {hint}", INEXPRESSIBLE)


def _json(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(_text(path, MISSING_OR_UNKNOWN))
    except (ValueError, RecursionError) as cause:
        raise AstraInputError(f"{path}: not valid JSON ({cause})", ABORTED) from cause
    if not isinstance(document, dict):
        raise AstraInputError(f"{path}: expected an object of settings", ABORTED)
    return document


def _text(path: Path, code: int) -> str:
    return _read(path, code, MAX_DOCUMENT_BYTES).decode("utf-8", errors="replace")


def _read(path: Path, code: int, most: int) -> bytes:
    try:
        with open_binary(path) as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or str(cause)
        raise AstraInputError(f"{path}: cannot be read ({reason})", code) from cause
    if len(data) > most:
        raise AstraInputError(f"{path}: more than {most >> 20} MiB", INEXPRESSIBLE)
    return data
