"""What ASTRA-sim crashes or hangs on, said beforehand in one sentence.

`prepare` checks a query and takes it apart; nothing behind it checks again.
Only a deadlock shows up later, when the NPUs are played through.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from artist.astra.model.bundles import Delays
from artist.astra.model.collectives import (
    LOCAL_BW_AWARE,
    Cut,
    Request,
    chunks,
    smallest_message_bytes,
    stages,
)
from artist.astra.model.messages import Algorithm, Group, Kind, Network, groups
from artist.astra.model.training_loop import Program, program
from artist.cluster.tree import MAX_GPUS
from artist.errors import BackendSettingError
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Collective, Parallelism, Scope, Workload

MAX_GROUPS = 4
# Each of these parts is simulated by itself; ASTRA-sim's examples have 1 to 64 of them.
MAX_SPLITS = 10_000
# A byte a second, and eleven days for a message: far from any network, and far from overflow.
SLOWEST_GIB_PER_S = 1e-9
LONGEST_NS = 1e15
POLICIES = ("LIFO", "FIFO", "EXPLICIT")
OPTIMIZATIONS = ("baseline", LOCAL_BW_AWARE)

_ALGORITHM = re.compile(
    r"(?P<ring>ring|oneRing)|(?P<halving>halvingDoubling|oneHalvingDoubling)"
    r"|(?P<tree>doubleBinaryTree)|(?P<direct>direct|oneDirect)(?P<window>[1-9][0-9]{0,4})?"
)


@dataclass(frozen=True, slots=True)
class Setup:
    """A checked query.

    `work` is one pass, `cuts` its distinct collectives; each dimension has `queues`
    queues, which share its `active_chunks`.
    """

    network: Network
    delays: Delays
    work: Program
    cuts: dict[Request, Cut]
    queues: int
    active_chunks: int
    passes: int

    @property
    def slots(self) -> int:
        """Chunks that run at a time in each queue."""
        return -(-self.active_chunks // self.queues)


def prepare(query: LatencyQuery) -> Setup:
    """Check a query and take it apart.

    Raises:
        BackendSettingError: ASTRA-sim would crash, hang or answer nonsense.
    """
    system = query.system
    _check_dimensions(query.dimensions)
    _check_system(system)
    _whole("passes", query.passes, 1)
    _check_workload(query.workload, system)
    work = program(query.workload)
    _check_start(work, system)
    network = Network(query.dimensions)
    lists = _lists(system, network)
    used = {collective for collective, _ in work.collectives}
    over = {
        c: _used_groups(name, names, c, network) for c, (name, names) in lists.items() if c in used
    }
    cuts = {
        (collective, size): _cut(collective, size, over[collective], system, network.total_npus)
        for collective, size in dict.fromkeys(work.collectives)
    }
    delays = Delays(system.endpoint_delay_ns, system.local_mem_bandwidth_gb_per_s * 1e9)
    queues, active_chunks = system.queues_per_dimension, system.active_chunks_per_dimension
    return Setup(network, delays, work, cuts, queues, active_chunks, query.passes)


def algorithm(name: str) -> Algorithm:
    """The algorithm of a name.

    Raises:
        BackendSettingError: ASTRA-sim does not know the name.
    """
    match = _ALGORITHM.fullmatch(name)
    if match is None:
        raise BackendSettingError(
            f"unknown collective algorithm {name!r}: ASTRA-sim exits; use ring, direct, directN "
            "(N peers at a time), halvingDoubling, doubleBinaryTree, oneRing, oneDirect or "
            "oneHalvingDoubling"
        )
    kinds = {
        "ring": Kind.RING,
        "halving": Kind.HALVING_DOUBLING,
        "tree": Kind.TREE,
        "direct": Kind.DIRECT,
    }
    kind = next(kind for part, kind in kinds.items() if match[part])
    window = int(match["window"]) if match["window"] else None
    return Algorithm(kind, name.startswith("one"), window)


def _check_dimensions(dimensions: tuple[Dimension, ...]) -> None:
    if not dimensions:
        raise BackendSettingError("the query has no network dimension; give at least one")
    for index, dimension in enumerate(dimensions):
        where = f"of dimension {index}"
        _choice(f"topology {where}", dimension.topology, tuple(Topology))
        _whole(f"npus {where}", dimension.npus, 2, MAX_GPUS)
        _rate(f"bandwidth_gib_per_s {where}", dimension.bandwidth_gib_per_s)
        if not 0 <= dimension.latency_ns <= LONGEST_NS:
            _refuse(
                f"latency_ns {where}", dimension.latency_ns, f"from 0 to {LONGEST_NS:g} nanoseconds"
            )


def _check_system(system: SystemSettings) -> None:
    _choice("scheduling_policy", system.scheduling_policy, POLICIES)
    _choice("collective_optimization", system.collective_optimization, OPTIMIZATIONS)
    _whole("preferred_dataset_splits", system.preferred_dataset_splits, 1, MAX_SPLITS)
    _whole("active_chunks_per_dimension", system.active_chunks_per_dimension, 1)
    _whole("queues_per_dimension", system.queues_per_dimension, 1)
    _whole("endpoint_delay_ns", system.endpoint_delay_ns, 0)
    _rate("local_mem_bandwidth_gb_per_s", system.local_mem_bandwidth_gb_per_s)


def _check_workload(workload: Workload, system: SystemSettings) -> None:
    splits = system.preferred_dataset_splits
    _choice("parallelism", workload.parallelism, (Parallelism.DATA, Parallelism.MICRO))
    for layer in workload.layers:
        for phase in (layer.forward, layer.input_grad, layer.weight_grad):
            if not (0 <= phase.compute_us < math.inf and phase.compute_us == int(phase.compute_us)):
                name = f"compute_us of layer {layer.name!r}"
                _refuse(name, phase.compute_us, "whole microseconds: quantise the workload")
        phase = layer.weight_grad
        _choice(f"scope of layer {layer.name!r}", phase.scope, (Scope.ALL,))
        name = f"comm_bytes of layer {layer.name!r}"
        _whole(name, phase.comm_bytes, 0)
        if phase.collective is Collective.ALL_GATHER and phase.comm_bytes < splits:
            expected = (
                f"at least preferred_dataset_splits ({splits}): an all-gather of less never ends"
            )
            _refuse(name, phase.comm_bytes, expected)


def _check_start(work: Program, system: SystemSettings) -> None:
    starts_at_once = bool(work.collectives) and not work.computes
    if system.endpoint_delay_ns == 0 and starts_at_once:
        raise BackendSettingError(
            f"endpoint_delay_ns is 0 and a {Parallelism.MICRO} workload begins with a collective: "
            "ASTRA-sim aborts on an event at time zero; set endpoint_delay_ns to 1 or more",
            "zero-endpoint-delay",
        )


def _lists(
    system: SystemSettings, network: Network
) -> dict[Collective, tuple[str, tuple[Algorithm, ...]]]:
    named = {
        Collective.ALL_REDUCE: ("all_reduce", system.all_reduce),
        Collective.ALL_GATHER: ("all_gather", system.all_gather),
        Collective.REDUCE_SCATTER: ("reduce_scatter", system.reduce_scatter),
        Collective.ALL_TO_ALL: ("all_to_all", system.all_to_all),
    }
    for name, names in named.values():
        if len(names) > len(network.npus):
            expected = f"one algorithm per dimension ({len(network.npus)}): ASTRA-sim aborts"
            _refuse(name, list(names), expected)
    return {
        collective: (name, tuple(algorithm(x) for x in names))
        for collective, (name, names) in named.items()
    }


def _used_groups(
    name: str, algorithms: tuple[Algorithm, ...], collective: Collective, network: Network
) -> tuple[Group, ...]:
    over = groups(network.npus, algorithms)
    if not over:
        _refuse(name, "empty", f"one algorithm per dimension: the workload needs {collective}")
    if len(over) > MAX_GROUPS:
        raise BackendSettingError(
            f"{name} runs over {len(over)} dimensions: ASTRA-sim reads beyond its own list from "
            f"the fifth on and hangs by chance; use at most {MAX_GROUPS}, or a one* algorithm"
        )
    for group in over:
        kind = group.algorithm.kind
        if kind in (Kind.HALVING_DOUBLING, Kind.TREE) and group.nodes & (group.nodes - 1):
            raise BackendSettingError(
                f"{name} has {kind.value} over {group.nodes} NPUs: ASTRA-sim crashes or hangs "
                "unless that is a power of two; use ring or direct there"
            )
        if kind is Kind.HALVING_DOUBLING and collective is Collective.ALL_TO_ALL:
            raise BackendSettingError(
                f"{name} has {kind.value}: ASTRA-sim exits, having no such all-to-all; "
                "use ring or direct"
            )
    last = over[-1]
    if last.algorithm.kind is Kind.TREE and last.index < len(network.npus) - 1:
        expected = "an algorithm for the dimensions after doubleBinaryTree: ASTRA-sim crashes"
        _refuse(name, f"{len(over)} of {len(network.npus)} entries", expected)
    return over


def _cut(
    collective: Collective, size: int, over: tuple[Group, ...], system: SystemSettings, npus: int
) -> Cut:
    count, chunk = chunks(collective, size, system.preferred_dataset_splits, npus)
    cut = Cut(count, stages(collective, chunk, over, system.collective_optimization))
    for stage in cut.stages:
        if smallest_message_bytes(stage) < 1:
            kind = stage.group.algorithm.kind.value
            raise BackendSettingError(
                f"comm_bytes {size} of an {collective} leaves {kind} over {stage.group.nodes} "
                "NPUs with a message of 0 bytes, on which ASTRA-sim aborts; use more bytes, "
                "fewer splits or another algorithm"
            )
    return cut


def _choice(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        _refuse(name, str(value), "one of " + ", ".join(known))


def _whole(name: str, value: object, at_least: int, most: int | None = None) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        _refuse(name, value, f"a whole number, {at_least} or more")
    elif most is not None and value > most:
        _refuse(name, value, f"at most {most}")


def _rate(name: str, value: float) -> None:
    if not 0 < value < math.inf:
        _refuse(name, value, "more than zero")
    elif value < SLOWEST_GIB_PER_S:
        _refuse(name, value, f"at least {SLOWEST_GIB_PER_S:g}")


def _refuse(name: str, value: object, expected: str) -> None:
    raise BackendSettingError(f"{name} is {value!r}, expected {expected}")
