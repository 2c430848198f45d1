"""What ASTRA-sim crashes or hangs on, refused beforehand with one sentence each.

The functions are in the order in which `artist.astra.model.prepared_query.prepare` calls them.
"""

from __future__ import annotations

import math

from artist.astra.algorithms.dispatch import smallest_message_bytes
from artist.astra.messages.chunks_and_stages import LOCAL_BW_AWARE, Cut
from artist.astra.messages.groups import GroupFamily, StageGroup
from artist.astra.model.training_loop import Program
from artist.cluster.tree import MAX_GPUS
from artist.errors import BackendSettingError
from artist.estimates.query import Dimension, LatencyQuery, SystemSettings, Topology
from artist.workload.layers import Collective, Parallelism, Scope, Workload

# ASTRA-sim keeps a list of four, and reads beyond it where an algorithm list is longer.
MAX_GROUPS = 4
# Each of these parts is simulated by itself; ASTRA-sim's examples have 1 to 64 of them. A thousand
# take seconds, ten times as many a minute.
MAX_SPLITS = 1_000
# A byte per second, and eleven days for a message: far from any network, and far from overflow.
SLOWEST_GIB_PER_S = 1e-9
LONGEST_NS = 1e15
# A second for each message. Real ones take microseconds; ASTRA-sim's examples have 10 ns.
MAX_ENDPOINT_DELAY_NS = 10**9
POLICIES = ("LIFO", "FIFO", "EXPLICIT")
OPTIMIZATIONS = ("baseline", LOCAL_BW_AWARE)


def check_query(query: LatencyQuery) -> None:
    """Check each setting of a query by itself.

    Raises:
        BackendSettingError: the message names the setting, its value and what is expected.
    """
    check_network(query.dimensions, query.system)
    _whole("passes", query.passes, 1)
    _check_workload(query.workload, query.system)


def check_network(dimensions: tuple[Dimension, ...], system: SystemSettings) -> None:
    """Check dimensions and settings.

    Raises:
        BackendSettingError: as `check_query`.
    """
    _check_dimensions(dimensions)
    _check_system(system)


def check_start(work: Program, system: SystemSettings) -> None:
    """Check that no event happens at time zero.

    Raises:
        BackendSettingError: a collective starts at once, without an endpoint delay.
    """
    starts_at_once = bool(work.collectives) and not work.computes
    if system.endpoint_delay_ns == 0 and starts_at_once:
        raise BackendSettingError(
            f"endpoint_delay_ns is 0 and a {Parallelism.MICRO} workload begins with a collective: "
            "ASTRA-sim aborts on an event at time zero; set endpoint_delay_ns to 1 or more",
            "zero-endpoint-delay",
        )


def check_list(name: str, algorithms: tuple[str, ...], dimensions: int) -> None:
    """Check the length of an algorithm list.

    Raises:
        BackendSettingError: it is longer than there are dimensions.
    """
    if len(algorithms) > dimensions:
        expected = f"one algorithm per dimension ({dimensions}): ASTRA-sim aborts"
        _refuse(name, list(algorithms), expected)


def check_groups(
    name: str, over: tuple[StageGroup, ...], collective: Collective, dimensions: int
) -> None:
    """Check the groups of an algorithm list that the workload uses.

    Raises:
        BackendSettingError: there are none or too many, or an algorithm cannot run in its group.
    """
    if not over:
        _refuse(name, "empty", f"one algorithm per dimension: the workload needs {collective}")
    if len(over) > MAX_GROUPS:
        raise BackendSettingError(
            f"{name} runs over {len(over)} dimensions: ASTRA-sim reads beyond its own list from "
            f"the fifth on and hangs by chance; use at most {MAX_GROUPS}, or a one* algorithm"
        )
    for group in over:
        _check_group(name, group, collective)
    last = over[-1]
    if last.algorithm.family is GroupFamily.TREE and last.index < dimensions - 1:
        expected = "an algorithm for the dimensions after doubleBinaryTree: ASTRA-sim crashes"
        _refuse(name, f"{len(over)} of {dimensions} entries", expected)


def check_messages(cut: Cut, collective: Collective, size_bytes: int) -> None:
    """Check that every message of a collective has at least one byte.

    Raises:
        BackendSettingError: a stage would send a message of 0 bytes.
    """
    for stage in cut.stages:
        if smallest_message_bytes(stage) < 1:
            family = stage.group.algorithm.family.value
            raise BackendSettingError(
                f"comm_bytes {size_bytes} of an {collective} leaves {family} over "
                f"{stage.group.nodes} NPUs with a message of 0 bytes, on which ASTRA-sim aborts; "
                "use more bytes, fewer splits or another algorithm"
            )


def _check_dimensions(dimensions: tuple[Dimension, ...]) -> None:
    """Check that every dimension has a known topology and possible numbers."""
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
    _whole("endpoint_delay_ns", system.endpoint_delay_ns, 0, MAX_ENDPOINT_DELAY_NS)
    _rate("local_mem_bandwidth_gb_per_s", system.local_mem_bandwidth_gb_per_s)


def _check_workload(workload: Workload, system: SystemSettings) -> None:
    """Check the layers: whole microseconds, known collectives, enough bytes."""
    splits = system.preferred_dataset_splits
    _choice("parallelism", workload.parallelism, (Parallelism.DATA, Parallelism.MICRO))
    for layer in workload.layers:
        for phase in (layer.forward, layer.input_grad, layer.weight_grad):
            if not (0 <= phase.compute_us < math.inf and phase.compute_us == int(phase.compute_us)):
                name = f"compute_us of layer {layer.name!r}"
                _refuse(name, phase.compute_us, "whole microseconds: quantise the workload")
        # ASTRA-sim's text format has collectives in all phases, but DATA and MICRO run those
        # of the weight gradient alone.
        phase = layer.weight_grad
        _choice(f"scope of layer {layer.name!r}", phase.scope, (Scope.ALL,))
        name = f"comm_bytes of layer {layer.name!r}"
        _whole(name, phase.comm_bytes, 0)
        if phase.collective is Collective.ALL_GATHER and phase.comm_bytes < splits:
            expected = (
                f"at least preferred_dataset_splits ({splits}): an all-gather of less never ends"
            )
            _refuse(name, phase.comm_bytes, expected)


def _check_group(name: str, group: StageGroup, collective: Collective) -> None:
    """Check that an algorithm runs on a group of this size."""
    family = group.algorithm.family
    power_of_two = not group.nodes & (group.nodes - 1)
    if family in (GroupFamily.HALVING_DOUBLING, GroupFamily.TREE) and not power_of_two:
        raise BackendSettingError(
            f"{name} has {family.value} over {group.nodes} NPUs: ASTRA-sim crashes or hangs "
            "unless that is a power of two; use ring or direct there"
        )
    if family is GroupFamily.HALVING_DOUBLING and collective is Collective.ALL_TO_ALL:
        raise BackendSettingError(
            f"{name} has {family.value}: ASTRA-sim exits, having no such all-to-all; "
            "use ring or direct"
        )


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
