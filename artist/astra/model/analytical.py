"""The backend `analytical`: ASTRA-sim's congestion-unaware analytical answers, in process.

It is exact to the nanosecond for every query that ASTRA-sim 2.x answers, and refuses a query on
which ASTRA-sim crashes or hangs. If all NPUs do the same at the same time, the queues of one NPU
give the duration C of each collective (`artist.astra.model.one_npu`). Then, whatever the number of
NPUs, for collective i of an iteration

    comm_end_i = max(comm_end_(i-1), end of the computation that frees i) + C(bytes_i)
    finish     = max(end of the last computation, last comm_end)

If NPUs differ (double binary trees), all of them are simulated, message by message
(`artist.astra.model.all_npus`). On request the estimate has a traffic profile: when each dimension
is busy in the first pass, and the bytes that one NPU sends then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from artist.astra.algorithms.dispatch import sent_bytes
from artist.astra.algorithms.timing import AmbiguousOrderError
from artist.astra.messages.chunks_and_stages import Request
from artist.astra.messages.groups import GroupFamily
from artist.astra.model.all_npus import AllNpus
from artist.astra.model.graph_refusals import refuse_deadlock
from artist.astra.model.one_npu import Interval, one_npu
from artist.astra.model.prepared_graph import prepare_graph
from artist.astra.model.prepared_query import PreparedQuery, prepare
from artist.astra.model.representatives import DifferentNpusError, play_classes
from artist.astra.model.tasks import tasks_of
from artist.errors import BackendSettingError, ConfigError
from artist.estimates.query import (
    Burst,
    Dimension,
    Estimate,
    LatencyBackend,
    LatencyQuery,
    SystemSettings,
)
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


Span = tuple[int, int, int]
"""(start, end, bytes) of a time in which a dimension is busy."""


class Spans:
    """When each dimension is busy. Spans that touch are joined into one."""

    def __init__(self, dimensions: int) -> None:
        self._of: list[list[Span]] = [[] for _ in range(dimensions)]

    @classmethod
    def of_log(cls, query: PreparedQuery, log: Iterable[Interval]) -> Spans:
        """The spans of the stages in a log."""
        network = query.work.network
        spans = cls(len(network.npus))
        # A stage's hash is costly; the log keeps the stages alive.
        shares: dict[int, tuple[int, ...]] = {}
        for interval in sorted(log, key=lambda x: x.start_ns):
            stage = interval.stage
            if id(stage) not in shares:
                shares[id(stage)] = sent_bytes(stage, network)
            for dimension, size in enumerate(shares[id(stage)]):
                if size:
                    spans.append(dimension, interval.start_ns, interval.end_ns, size)
        return spans

    def append(self, dimension: int, start_ns: int, end_ns: int, size: int) -> None:
        """Append a span, or join it to the last one. Spans come in the order of their starts."""
        joined = self._of[dimension]
        if joined and start_ns <= joined[-1][1]:
            first_ns, until_ns, before = joined[-1]
            joined[-1] = first_ns, max(until_ns, end_ns), before + size
        else:
            joined.append((start_ns, end_ns, size))

    def extend(self, later: Spans, by_ns: int) -> None:
        """Append spans, moved by `by_ns` to a time after all others."""
        for dimension, spans in enumerate(later._of):
            for start_ns, end_ns, size in spans:
                self.append(dimension, start_ns + by_ns, end_ns + by_ns, size)

    def bursts(self) -> tuple[Burst, ...]:
        """The spans of all dimensions, in the order of their starts."""
        every = [
            Burst(dimension, start_ns, end_ns - start_ns, size)
            for dimension, spans in enumerate(self._of)
            for start_ns, end_ns, size in spans
        ]
        return tuple(sorted(every, key=lambda x: x.offset_ns))


class AnalyticalBackend:
    """The in-process backend. All runs of a process share its latest answers."""

    source = "analytical"

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query; with `profile` also the traffic of its first pass.

        Raises:
            BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
        """
        if query.workload.graph is not None:
            return self._of_graph(query, query.workload.graph)
        return _profiled(query) if profile else _estimate(query)

    def _of_graph(self, query: LatencyQuery, graph: JobGraph) -> Estimate:
        """The iteration of a graph. Its compute time is that of the GPU that computes longest."""
        ended = finish_times(graph, query.dimensions, query.system)
        compute_ns = max(graph.compute_ns(gpu) for gpu in range(len(ended)))
        return Estimate(max(ended) * query.passes, compute_ns * query.passes, self.source)


# The runs of a comparison or a sweep ask about the same placements. A profile of BERT-large takes
# up to 91 kB, so few of them are kept; other answers are five numbers.
@lru_cache(maxsize=16384)
def _estimate(query: LatencyQuery) -> Estimate:
    return _answer(query, profile=False)


@lru_cache(maxsize=512)
def _profiled(query: LatencyQuery) -> Estimate:
    return _answer(query, profile=True)


def _answer(query: LatencyQuery, *, profile: bool) -> Estimate:
    prepared = prepare(query)
    outcome = _outcome(prepared, profile)
    return Estimate(
        finish_ns=outcome.finish_ns,
        compute_ns=prepared.program.compute_ns * prepared.passes,
        source=AnalyticalBackend.source,
        bytes_per_dimension=bytes_per_dimension(prepared),
        profile=None if outcome.busy is None else outcome.busy.bursts(),
    )


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
    busy: Spans | None
    """When dimensions are busy in the first pass; None unless a profile is asked for."""
    per_npu: tuple[int, ...] = ()
    """Finish times if NPUs may differ; empty if all are alike."""


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
    """Play one NPU for all. Passes are alike too, since each begins when the last one has ended."""
    durations, spans = _durations(query, profile)
    compute_end_ns = comm_end_ns = issued = 0
    busy = Spans(len(query.work.network.npus)) if profile else None

    def collect() -> None:
        nonlocal comm_end_ns, issued
        request = query.program.collectives[issued]
        start_ns = max(comm_end_ns, compute_end_ns)
        if busy is not None:
            busy.extend(spans[request], start_ns)
        comm_end_ns = start_ns + durations[request]
        issued += 1

    for compute in query.program.computes:
        compute_end_ns += compute.duration_ns
        if compute.frees:
            collect()
    while issued < len(query.program.collectives):
        collect()
    return _Outcome(max(compute_end_ns, comm_end_ns) * query.passes, busy)


def _durations(
    query: PreparedQuery, profile: bool
) -> tuple[dict[Request, int], dict[Request, Spans]]:
    """The duration of each distinct collective, and its spans if `profile`."""
    durations: dict[Request, int] = {}
    spans: dict[Request, Spans] = {}
    for request, cut in query.work.cuts.items():
        # Here each collective starts with the first queues. In ASTRA-sim it goes on with the next
        # ones in turn, which changes the numbers of the queues but not the duration.
        npu = one_npu(query.work, request[0], cut)
        npu.log = [] if profile else None
        durations[request] = npu.run()
        if npu.log is not None:
            spans[request] = Spans.of_log(query, npu.log)
    return durations, spans


def _play_all(query: PreparedQuery, profile: bool) -> _Outcome:
    """Play every NPU, as they may differ from each other.

    Raises:
        BackendSettingError: the NPUs wait for each other forever.
    """
    npus = query.work.network.total_npus
    played = AllNpus(query.work, [tasks_of(query.program, query.passes)] * npus)
    ended = [finish_ns for finish_ns in played.run(log=profile) if finish_ns is not None]
    if len(ended) < npus:
        raise BackendSettingError(
            f"active_chunks_per_dimension is {query.active_chunks}, with which the NPUs serve "
            "chunks in different orders and wait for each other forever (ASTRA-sim ends without "
            "a result): raise it (1000 lets all chunks run) or use other algorithms",
            "deadlock",
        )
    log = played.log
    if log is not None:
        # The log holds all passes; the profile is that of the first one.
        cuts = [query.work.cuts[request] for request in query.program.collectives]
        log = log[: sum(len(cut.stages) * cut.chunks for cut in cuts)]
    busy = None if log is None else Spans.of_log(query, log)
    return _Outcome(max(ended), busy, tuple(ended))


def finish_times(
    graph: JobGraph, dimensions: tuple[Dimension, ...], system: SystemSettings
) -> list[int]:
    """When each NPU of a graph finishes, in ns.

    One NPU of each class is played if that is exact (`representatives.py`), else all of them,
    message by message (`all_npus.py`).

    Raises:
        BackendSettingError: ASTRA-sim crashes, hangs or deadlocks on it.
    """
    prepared = prepare_graph(graph, dimensions, system)
    try:
        ended = [x for x in play_classes(prepared) if x is not None]
    except (AmbiguousOrderError, DifferentNpusError):
        ended = []
    if len(ended) == len(prepared.programs):
        return ended
    played = AllNpus(prepared.work, prepared.programs)
    ended = [x for x in played.run() if x is not None]
    if len(ended) < len(prepared.programs):
        refuse_deadlock(graph, played)
    return ended


def analytical_backend(argument: str, fallback: LatencyBackend | None) -> AnalyticalBackend:
    """The backend that `--backend analytical` names.

    Raises:
        ConfigError: there is an argument.
    """
    if argument:
        raise ConfigError(f"backend analytical:{argument}: takes no argument")
    return AnalyticalBackend()
