"""The backend `analytical`: ASTRA-sim's congestion-unaware analytical answers, in process.

It is exact to the nanosecond for every query that ASTRA-sim 2.x answers, and refuses a query on
which ASTRA-sim crashes or hangs. Where all NPUs do the same at the same time, the queues of one
NPU give the duration C of each collective (`artist.astra.model.one_npu`). Then, whatever the
number of NPUs, for collective i of an iteration

    comm_end_i = max(comm_end_(i-1), end of the computation that frees i) + C(bytes_i)
    finish     = max(end of the last computation, last comm_end)

Where NPUs differ (double binary trees), all of them are simulated, message by message
(`artist.astra.model.all_npus`). On request the estimate has a traffic profile: the bytes that one
NPU sends per dimension, and when each dimension is busy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from artist.astra.algorithms.dispatch import sent_bytes
from artist.astra.algorithms.timing import AmbiguousOrderError
from artist.astra.messages.chunks_and_stages import Request, Stage
from artist.astra.messages.groups import GroupFamily
from artist.astra.model.all_npus import AllNpus
from artist.astra.model.graph_times import finish_times
from artist.astra.model.one_npu import Interval, one_npu
from artist.astra.model.prepared_query import PreparedQuery, prepare
from artist.astra.model.tasks import tasks_of
from artist.errors import BackendSettingError, ConfigError
from artist.estimates.query import Burst, Estimate, LatencyBackend, LatencyQuery
from artist.workload.graph import JobGraph


def bytes_per_dimension(query: PreparedQuery) -> tuple[int, ...]:
    """The bytes that one NPU sends per dimension in one pass."""
    network = query.work.network
    sent = [0] * len(network.npus)
    for request, times in Counter(query.program.collectives).items():
        cut = query.work.cuts[request]
        for stage in cut.stages:
            for dimension, size in enumerate(sent_bytes(stage, network)):
                sent[dimension] += times * cut.chunks * size
    return tuple(sent)


def bursts(query: PreparedQuery, log: list[Interval]) -> tuple[Burst, ...]:
    """The busy intervals of each dimension, by start; those that touch are joined into one."""
    shares: dict[Stage, tuple[int, ...]] = {}
    network = query.work.network
    spans: list[list[Burst]] = [[] for _ in network.npus]
    for interval in sorted(log, key=lambda x: x.start_ns):
        stage = interval.stage
        if stage not in shares:
            shares[stage] = sent_bytes(stage, network)
        for dimension, size in enumerate(shares[stage]):
            if size:
                burst = Burst(
                    dimension, interval.start_ns, interval.end_ns - interval.start_ns, size
                )
                _append(spans[dimension], burst)
    return tuple(sorted((x for joined in spans for x in joined), key=lambda x: x.offset_ns))


def _append(joined: list[Burst], burst: Burst) -> None:
    """Append a burst that starts no earlier than those before it, or join it to the last one."""
    if joined and burst.offset_ns <= (end_ns := joined[-1].offset_ns + joined[-1].duration_ns):
        last = joined.pop()
        until_ns = max(end_ns, burst.offset_ns + burst.duration_ns)
        size = last.size_bytes + burst.size_bytes
        burst = Burst(last.dimension, last.offset_ns, until_ns - last.offset_ns, size)
    joined.append(burst)


class AnalyticalBackend:
    """The in-process backend. It remembers nothing between queries."""

    source = "analytical"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query; with `profile` also the traffic of its first pass.

        Raises:
            BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
        """
        if query.workload.graph is not None:
            return self._of_graph(query, query.workload.graph)
        prepared = prepare(query)
        outcome = _outcome(prepared, profile)
        return Estimate(
            finish_ns=outcome.finish_ns,
            compute_ns=prepared.program.compute_ns * prepared.passes,
            source=self.source,
            bytes_per_dimension=bytes_per_dimension(prepared),
            profile=bursts(prepared, outcome.log) if outcome.log is not None else None,
        )

    def _of_graph(self, query: LatencyQuery, graph: JobGraph) -> Estimate:
        """The iteration of a graph. Its computing is that of the GPU which computes longest."""
        ended = finish_times(graph, query.dimensions, query.system)
        compute_ns = max(graph.compute_ns(gpu) for gpu in range(len(ended)))
        return Estimate(max(ended) * query.passes, compute_ns * query.passes, self.source)


@dataclass(frozen=True, slots=True)
class Finishes:
    """When each NPU has finished all passes, and for how long each of them computed."""

    finish_ns: tuple[int, ...]
    compute_ns: int


def finishes(query: LatencyQuery) -> Finishes:
    """The answer NPU by NPU, as ASTRA-sim prints it.

    Raises:
        BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
    """
    prepared = prepare(query)
    outcome = _outcome(prepared, profile=False)
    per_npu = outcome.per_npu or (outcome.finish_ns,) * prepared.work.network.total_npus
    return Finishes(per_npu, prepared.program.compute_ns * prepared.passes)


@dataclass(frozen=True, slots=True)
class _Outcome:
    finish_ns: int
    log: list[Interval] | None
    per_npu: tuple[int, ...] = ()
    """Finish times where NPUs may differ; empty where all are alike."""


def _outcome(query: PreparedQuery, profile: bool) -> _Outcome:
    families = {
        stage.group.algorithm.family for cut in query.work.cuts.values() for stage in cut.stages
    }
    if GroupFamily.TREE in families:
        return _play_all(query, profile)
    try:
        return _play_one(query, profile)
    except AmbiguousOrderError:
        return _play_all(query, profile)


def _play_one(query: PreparedQuery, profile: bool) -> _Outcome:
    """All NPUs alike. All passes are alike too, as each begins when the one before has ended."""
    durations, logs = _durations(query, profile)
    compute_end_ns = comm_end_ns = issued = 0
    log: list[Interval] | None = [] if profile else None

    def collect() -> None:
        nonlocal comm_end_ns, issued
        request = query.program.collectives[issued]
        start_ns = max(comm_end_ns, compute_end_ns)
        if log is not None:
            log.extend(_shifted(logs[request], start_ns))
        comm_end_ns = start_ns + durations[request]
        issued += 1

    for compute in query.program.computes:
        compute_end_ns += compute.duration_ns
        if compute.frees:
            collect()
    while issued < len(query.program.collectives):
        collect()
    return _Outcome(max(compute_end_ns, comm_end_ns) * query.passes, log)


def _durations(
    query: PreparedQuery, profile: bool
) -> tuple[dict[Request, int], dict[Request, list[Interval]]]:
    """Duration of each distinct collective, and its intervals if they are asked for."""
    durations: dict[Request, int] = {}
    logs: dict[Request, list[Interval]] = {}
    for request, cut in query.work.cuts.items():
        # Each collective starts anew with the first queues. In ASTRA-sim it goes on with those
        # whose turn it is, which gives the queues other numbers but the collective no other
        # duration.
        npu = one_npu(query.work, request[0], cut)
        if profile:
            npu.log = logs[request] = []
        durations[request] = npu.run()
    return durations, logs


def _shifted(intervals: list[Interval], by_ns: int) -> Iterator[Interval]:
    for interval in intervals:
        yield Interval(interval.stage, interval.start_ns + by_ns, interval.end_ns + by_ns)


def _play_all(query: PreparedQuery, profile: bool) -> _Outcome:
    npus = query.work.network.total_npus
    played = AllNpus(query.work, [tasks_of(query.program, query.passes)] * npus)
    ended = [finish_ns for finish_ns in played.run(log=profile) if finish_ns is not None]
    if len(ended) < npus:
        raise BackendSettingError(
            f"active_chunks_per_dimension is {query.active_chunks}, with which the NPUs serve "
            "chunks in different orders and wait for each other for ever (ASTRA-sim ends without "
            "a result): raise it (1000 lets all chunks run) or use other algorithms",
            "deadlock",
        )
    log = played.log
    if log is not None:
        # The log holds all passes; the profile is that of the first one.
        cuts = [query.work.cuts[request] for request in query.program.collectives]
        log = log[: sum(len(cut.stages) * cut.chunks for cut in cuts)]
    return _Outcome(max(ended), log, tuple(ended))


def analytical_backend(argument: str, fallback: LatencyBackend | None) -> AnalyticalBackend:
    """The backend that `--backend analytical` names.

    Raises:
        ConfigError: there is an argument.
    """
    if argument:
        raise ConfigError(f"backend analytical:{argument}: takes no argument")
    return AnalyticalBackend()
