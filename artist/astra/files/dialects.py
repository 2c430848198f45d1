"""The two versions of ASTRA-sim that artist can write for, and the files that each of them reads.

`astra2` is ASTRA-sim 2.x. `astra1` is ASTRA-sim 1.0 as the original simulator of the Dally paper
calls it. Its bandwidth grows with the number of links, so `links` follows the original simulator's
rule for that number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from artist.astra.model.prepared_query import prepare
from artist.errors import BackendSettingError, ConfigError, did_you_mean
from artist.estimates.query import Dimension, LatencyQuery, Topology
from artist.registry import UnknownNameError
from artist.workload.layers import Parallelism


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version of ASTRA-sim: the queries that it can answer, and the files that it reads.

    `check` refuses a query, `arguments` are the program's flags. `files` maps the name of each
    rendered file to the keys that the program reads in it. A template that leaves out a key or
    writes another one is an error: ASTRA-sim would ignore a misspelt key, and it reads some
    missing ones uninitialised.
    """

    name: str
    check: Callable[[LatencyQuery], object]
    arguments: Callable[[LatencyQuery], tuple[str, ...]]
    files: dict[str, frozenset[str]]
    folders: tuple[str, ...]
    """Folders that the program writes to; it does not create all of them itself."""
    traces: bool = False
    """Whether the workload is read as one execution trace per NPU."""
    markers: tuple[str, ...] = ()
    """Words that only this program prints, to recognise it."""


def dialect(name: str) -> Dialect:
    """A dialect by name.

    Raises:
        ConfigError: there is no such dialect.
    """
    try:
        return DIALECTS[name]
    except KeyError:
        raise UnknownNameError("dialect", name, DIALECTS, "astra2 or astra1") from None


def check_keys(name: str, text: str, expected: frozenset[str]) -> None:
    """Compare a rendered file's keys with those its program reads.

    Raises:
        ConfigError: the template misses a key or writes one that would be ignored.
    """
    keys = set(_keys(name, text))
    for key in sorted(keys - expected):
        hint = did_you_mean(key, sorted(expected))
        raise ConfigError(f"template of {name}: ASTRA-sim would ignore key {key!r}: {hint}")
    if missing := sorted(expected - keys):
        raise ConfigError(f"template of {name}: keys are missing: {', '.join(missing)}")


def _keys(name: str, text: str) -> Iterable[str]:
    if name.endswith(".json"):
        try:
            document: dict[str, Any] = json.loads(text)
        except ValueError as cause:
            raise ConfigError(f"template of {name}: not valid JSON ({cause})") from cause
        return document
    return [line.partition(":")[0] for line in text.splitlines() if ":" in line]


def links(dimension: Dimension) -> int:
    """Links of a dimension for ASTRA-sim 1.0, by the original simulator's rule.

    There is one link per NPU. In a ring their number is even and at least 4.
    """
    if dimension.topology is not Topology.RING:
        return dimension.npus
    return max(4, dimension.npus + dimension.npus % 2)


def _check_astra1(query: LatencyQuery) -> None:
    """Refuse what ASTRA-sim 1.0 aborts on, misreads, or has no setting for."""
    system = query.system
    if system.scheduling_policy not in ("LIFO", "FIFO"):
        raise BackendSettingError(
            f"scheduling_policy is {system.scheduling_policy!r}, expected LIFO or FIFO: ASTRA-sim "
            "1.0 panics; use another policy"
        )
    for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
        if len(names := getattr(system, name)) != len(query.dimensions):
            raise BackendSettingError(
                f"{name} is {list(names)!r}, expected one algorithm per dimension "
                f"({len(query.dimensions)})"
            )
    if query.workload.parallelism not in (Parallelism.DATA, Parallelism.MICRO):
        raise BackendSettingError(
            f"parallelism is {query.workload.parallelism}, expected DATA or MICRO: artist "
            "renders no other for ASTRA-sim 1.0; use a data-parallel model"
        )
    for layer in query.workload.layers:
        for phase in (layer.forward, layer.input_grad, layer.weight_grad):
            if not 0 <= phase.compute_us < math.inf or nanoseconds(phase.compute_us) is None:
                raise BackendSettingError(
                    f"compute_us of layer {layer.name!r} is {phase.compute_us!r}, expected "
                    "whole nanoseconds: ASTRA-sim 1.0 truncates"
                )


def nanoseconds(microseconds: float) -> int | None:
    """Whole nanoseconds, or None where there is a fraction of one."""
    # A tolerance, as the product of a decimal fraction is not exact: 1.005 * 1000 < 1005.
    exact = microseconds * 1000
    return round(exact) if abs(exact - round(exact)) < 1e-4 else None


def _arguments_astra2(query: LatencyQuery) -> tuple[str, ...]:
    """The flags of ASTRA-sim 2."""
    return (
        "--workload-configuration=workload",
        "--system-configuration=system.json",
        "--network-configuration=network.yml",
        "--remote-memory-configuration=memory.json",
        f"--num-queues-per-dim={query.system.queues_per_dimension}",
        "--comm-scale=1",
        "--injection-scale=1",
        "--logging-folder=log",
    )


def _arguments_astra1(query: LatencyQuery) -> tuple[str, ...]:
    """The flags of ASTRA-sim 1.0."""
    return (
        "--workload-configuration=workload.txt",
        "--system-configuration=system.txt",
        "--network-configuration=network.json",
        f"--num-passes={query.passes}",
        f"--num-queues-per-dim={query.system.queues_per_dimension}",
        "--compute-scale=1",
        "--comm-scale=1",
        "--injection-scale=1",
        "--path=result/",  # a prefix: without the slash the files would lie beside it
        "--run-name=artist",
    )


_IMPLEMENTATIONS = {
    f"{name}-implementation"
    for name in ("all-reduce", "all-gather", "reduce-scatter", "all-to-all")
}
_SYSTEM = {
    *_IMPLEMENTATIONS,
    "scheduling-policy",
    "collective-optimization",
    "preferred-dataset-splits",
    "active-chunks-per-dimension",
    "endpoint-delay",
}
_SWITCHES = {"model-shared-bus", "roofline-enabled", "replay-only", "trace-enabled"}

DIALECTS = {
    "astra2": Dialect(
        "astra2",
        prepare,
        _arguments_astra2,
        {
            "system.json": frozenset(_SYSTEM | _SWITCHES | {"local-mem-bw", "track-local-mem"}),
            "network.yml": frozenset({"topology", "npus_count", "bandwidth", "latency"}),
            "memory.json": frozenset({"memory-type"}),
            "workload.txt": frozenset(),
        },
        ("log",),
        traces=True,
        markers=("(AstraSim/analytical", "(network/analytical)"),
    ),
    "astra1": Dialect(
        "astra1",
        _check_astra1,
        _arguments_astra1,
        {
            "system.txt": frozenset(
                _SYSTEM | {"boost-mode", "intra-dimension-scheduling", "inter-dimension-scheduling"}
            ),
            "network.json": frozenset(
                {"topology-name", "dimensions-count", "topologies-per-dim", "dimension-type"}
                | {"units-count", "links-count", "link-bandwidth", "link-latency"}
                | {"nic-latency", "router-latency", "hbm-latency", "hbm-bandwidth", "hbm-scale"}
            ),
            "workload.txt": frozenset(),
        },
        ("result",),
        markers=("[Analytical, main]",),
    ),
}
