"""A query, checked and taken apart into what the model computes with.

`prepare` refuses what ASTRA-sim crashes or hangs on (`artist.astra.model.refusals`), so later code
does not check again. Only a deadlock is found later, when the NPUs are played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Cut, Request, chunks, stages
from artist.astra.messages.groups import Algorithm, AnyGroup, StageGroup, algorithm_of, groups
from artist.astra.messages.message_costs import Delays, MessageNetwork
from artist.astra.model import refusals
from artist.astra.model.training_loop import Program, program
from artist.astra.model.work import ChunkedNetwork
from artist.estimates.query import LatencyQuery, SystemSettings
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A checked query: what all NPUs share, and the program of one pass that each of them runs."""

    work: ChunkedNetwork
    program: Program
    active_chunks: int
    passes: int


def prepare(query: LatencyQuery) -> PreparedQuery:
    """Check a query and take it apart.

    Raises:
        BackendSettingError: ASTRA-sim would crash, hang or answer nonsense.
    """
    refusals.check_query(query)
    system = query.system
    once = program(query.workload)
    refusals.check_start(once, system)
    network = MessageNetwork(query.dimensions)
    lists = algorithm_lists(system, network)
    used = {collective for collective, *_ in once.collectives}
    # Lists that the workload does not use may be too short, since ASTRA-sim does not run them.
    over = {
        c: whole_network(name, algorithms, c, network)
        for c, (name, algorithms) in lists.items()
        if c in used
    }
    cuts = {
        request: cut_of(request, over[request[0]], system, network.total_npus)
        for request in dict.fromkeys(once.collectives)
    }
    work = shared_work(network, system, cuts)
    return PreparedQuery(work, once, system.active_chunks_per_dimension, query.passes)


def shared_work(
    network: MessageNetwork, system: SystemSettings, cuts: Mapping[Request, Cut]
) -> ChunkedNetwork:
    """What all NPUs share. The chunks that run at a time are divided among a dimension's queues."""
    delays = Delays(system.endpoint_delay_ns, system.local_mem_bandwidth_gb_per_s * 1e9)
    queues = system.queues_per_dimension
    return ChunkedNetwork(
        network, delays, cuts, queues, -(-system.active_chunks_per_dimension // queues)
    )


def algorithm_lists(
    system: SystemSettings, network: MessageNetwork
) -> dict[Collective, tuple[str, tuple[Algorithm, ...]]]:
    """For each collective the name of its list, and the algorithms in the list."""
    named = {
        Collective.ALL_REDUCE: ("all_reduce", system.all_reduce),
        Collective.ALL_GATHER: ("all_gather", system.all_gather),
        Collective.REDUCE_SCATTER: ("reduce_scatter", system.reduce_scatter),
        Collective.ALL_TO_ALL: ("all_to_all", system.all_to_all),
    }
    for name, algorithms in named.values():
        refusals.check_list(name, algorithms, len(network.npus))
    return {
        collective: (name, tuple(algorithm_of(algorithm) for algorithm in algorithms))
        for collective, (name, algorithms) in named.items()
    }


def whole_network(
    name: str, algorithms: tuple[Algorithm, ...], collective: Collective, network: MessageNetwork
) -> tuple[StageGroup, ...]:
    """The groups of a collective over all NPUs, checked."""
    over = groups(network.npus, algorithms)
    refusals.check_groups(name, over, collective, len(network.npus))
    return over


def cut_of(request: Request, over: Sequence[AnyGroup], system: SystemSettings, npus: int) -> Cut:
    """How a collective over these groups is cut, checked; `npus` counts the whole network."""
    collective, size, _ = request
    count, chunk = chunks(collective, size, system.preferred_dataset_splits, npus)
    cut = Cut(count, stages(collective, chunk, over, system.collective_optimization))
    refusals.check_messages(cut, collective, size)
    return cut
