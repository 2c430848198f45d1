"""A query, checked and taken apart into what the model computes with.

`prepare` refuses what ASTRA-sim crashes or hangs on (`artist.astra.model.refusals`). Nothing
behind it checks again. Only a deadlock shows up later, when the NPUs are played through.
"""

from __future__ import annotations

from dataclasses import dataclass

from artist.astra.messages.chunks_and_stages import Cut, Request, chunks, stages
from artist.astra.messages.groups import Algorithm, Group, algorithm_of, groups
from artist.astra.messages.message_costs import Delays, MessageNetwork
from artist.astra.model import refusals
from artist.astra.model.training_loop import Program, program
from artist.estimates.query import LatencyQuery, SystemSettings
from artist.workload.layers import Collective


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A checked query.

    `work` is the program of one pass, `cuts` holds its distinct collectives. Each dimension has
    `queues` queues, among which `active_chunks` are divided.
    """

    network: MessageNetwork
    delays: Delays
    work: Program
    cuts: dict[Request, Cut]
    queues: int
    active_chunks: int
    passes: int

    @property
    def slots(self) -> int:
        """The number of chunks that run at a time in each queue."""
        return -(-self.active_chunks // self.queues)


def prepare(query: LatencyQuery) -> PreparedQuery:
    """Check a query and take it apart.

    Raises:
        BackendSettingError: ASTRA-sim would crash, hang or answer nonsense.
    """
    refusals.check_query(query)
    system = query.system
    work = program(query.workload)
    refusals.check_start(work, system)
    network = MessageNetwork(query.dimensions)
    lists = _algorithm_lists(system, network)
    used = {collective for collective, _ in work.collectives}
    # Lists that the workload does not use may be too short, as ASTRA-sim does not run them.
    over = {
        c: _groups(name, algorithms, c, network)
        for c, (name, algorithms) in lists.items()
        if c in used
    }
    cuts = {
        (collective, size): _cut(collective, size, over[collective], system, network.total_npus)
        for collective, size in dict.fromkeys(work.collectives)
    }
    delays = Delays(system.endpoint_delay_ns, system.local_mem_bandwidth_gb_per_s * 1e9)
    queues, active_chunks = system.queues_per_dimension, system.active_chunks_per_dimension
    return PreparedQuery(network, delays, work, cuts, queues, active_chunks, query.passes)


def _algorithm_lists(
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


def _groups(
    name: str, algorithms: tuple[Algorithm, ...], collective: Collective, network: MessageNetwork
) -> tuple[Group, ...]:
    over = groups(network.npus, algorithms)
    refusals.check_groups(name, over, collective, len(network.npus))
    return over


def _cut(
    collective: Collective, size: int, over: tuple[Group, ...], system: SystemSettings, npus: int
) -> Cut:
    count, chunk = chunks(collective, size, system.preferred_dataset_splits, npus)
    cut = Cut(count, stages(collective, chunk, over, system.collective_optimization))
    refusals.check_messages(cut, collective, size)
    return cut
