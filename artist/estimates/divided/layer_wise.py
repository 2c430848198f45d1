"""Iterations of divided models (FSDP, tensor, pipeline, expert), composed of single collectives.

`artist.workload.iteration_graph` lists the computations and collectives of an iteration, and what
each of them waits for. The backend answers how long each different collective takes in isolation,
as a MICRO workload over the dimensions of the GPUs that take part. A GPU runs one computation and
one collective at a time, so these times give the time of the iteration
(docs/decisions/0009-layer-wise-composition.md). Queries with DATA and MICRO workloads go to the
backend unchanged.

The GPUs of a job are numbered innermost dimension first. Tensor-parallel groups and expert groups
consist of neighbours. Pipeline stages are the outermost division:

    [ tensor ][        data        ][ stages ]        GPUs = tensor x data x stages
    [    expert    ][ replica ]                       GPUs of one stage = expert x replica

If a group covers a part of a dimension, the dimension is cut: 4 GPUs of a Switch of 8 are a
Switch of 4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

from artist.estimates.group_members import Members, members
from artist.estimates.iteration_split import PART_OF_SCOPE, SENDERS, TimePart
from artist.estimates.query import (
    AxisTraffic,
    Burst,
    Estimate,
    LatencyBackend,
    LatencyQuery,
    SystemSettings,
)
from artist.workload.divide import fitted
from artist.workload.graph import duration_ns as graph_duration_ns
from artist.workload.iteration_graph import IterationNode, Span, nodes, schedule
from artist.workload.layers import Collective, Layer, Parallelism, Phase, Scope, Workload

_COMPOSED = (Parallelism.FSDP, Parallelism.LAYERWISE, Parallelism.STAGED)
Request = tuple[Collective, int, Scope]
"""A collective, the size of its whole buffer in bytes, and the scope of the GPUs that take part."""


class LayerwiseBackend:
    """A backend that also answers FSDP, LAYERWISE and STAGED workloads.

    The backend inside gives the time of every collective, so `source` is its source.
    """

    def __init__(self, backend: LatencyBackend) -> None:
        self._backend = backend
        self.source = backend.source

    @property
    def fallback_uses(self) -> int:
        """The number of queries that the fallback of a recorded table answered."""
        return int(getattr(self._backend, "fallback_uses", 0))

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query.

        Raises:
            BackendSettingError: the job's GPUs do not divide as the workload asks, or the
                backend refuses the query for a collective.
        """
        if query.workload.staged is not None:
            from artist.estimates.divided.staged_backend import StagedQuery

            return StagedQuery(self._backend, query).estimate(profile=profile)
        if not composed(query):
            return self._backend.estimate(query, profile=profile)
        iteration = LayerIteration(self._backend, query)
        graph, collectives = iteration.graph, iteration.collectives
        spans = iteration.spans()
        one_pass_ns = round(max(span.end for span in spans))
        if query.flat_groups:
            from artist.estimates.divided.flat_groups import flat_ns, layer_graph

            one_pass_ns, profile = flat_ns(self._backend, query, layer_graph(query)), False
        axes = collectives.axes(graph)
        grouped = query.workload.parallelism is Parallelism.LAYERWISE
        return Estimate(
            finish_ns=one_pass_ns * query.passes,
            compute_ns=iteration.compute_ns() * query.passes,
            source=query.source(self.source),
            bytes_per_dimension=_per_dimension(axes, len(query.dimensions)),
            profile=collectives.profile(graph, spans) if profile else None,
            axes=axes if grouped else None,
        )


class LayerIteration:
    """One iteration whose GPUs all run the same nodes, and the times of its collectives."""

    def __init__(self, backend: LatencyBackend, query: LatencyQuery) -> None:
        self.graph = nodes_of(query)
        self.collectives = CollectiveTimes(backend, query)
        self._layers = query.workload.layers

    def spans(self, senders: Collection[TimePart] = SENDERS) -> list[Span]:
        """When each node runs, if all other kinds of communication take no time."""

        def duration_ns(node: IterationNode) -> float:
            if node.collective is None:
                return graph_duration_ns(node.compute_us)
            taking = PART_OF_SCOPE[node.scope] in senders
            return self.collectives.of(node).finish_ns if taking else 0

        return schedule(self.graph, duration_ns)

    def ended_ns(self, senders: Collection[TimePart]) -> int:
        """When the iteration ends, if all other kinds of communication take no time."""
        return round(max(span.end for span in self.spans(senders)))

    def compute_ns(self) -> int:
        """How long a GPU computes, including the idle time of a pipeline."""
        return sum(graph_duration_ns(x.compute_us) for x in self.graph if x.collective is None)

    @property
    def idle_ns(self) -> int:
        """The idle time of a pipeline: what its borders compute (`workload/parallelism.py`)."""
        return sum(
            graph_duration_ns(phase.compute_us)
            for layer in self._layers
            if layer.forward.scope is Scope.STAGE
            for phase in (layer.forward, layer.input_grad, layer.weight_grad)
        )

    def sent_ns(self) -> dict[TimePart, int]:
        """For how long a GPU sends each kind of communication."""
        sent: Counter[TimePart] = Counter()
        for node in self.graph:
            if node.collective is not None:
                sent[PART_OF_SCOPE[node.scope]] += self.collectives.of(node).finish_ns
        return {part: ns for part, ns in sent.items() if ns}


class CollectiveTimes:
    """A backend's estimates of the collectives of one query. Each different one is asked once."""

    def __init__(self, backend: LatencyBackend, query: LatencyQuery) -> None:
        self._backend = backend
        self.query = query
        self._members: dict[Scope, Members] = {}
        self._estimates: dict[Request, Estimate] = {}

    def of(self, node: IterationNode) -> Estimate:
        """The estimate of a collective alone. A collective over one GPU takes no time."""
        assert node.collective is not None
        request = (node.collective, node.comm_bytes, node.scope)
        if request not in self._estimates:
            self._estimates[request] = self._ask(*request)
        return self._estimates[request]

    def over(self, scope: Scope) -> Members:
        """The GPUs that take part in the collectives of a scope."""
        if scope not in self._members:
            degrees = self.query.workload.degrees
            self._members[scope] = members(self.query.dimensions, degrees, scope)
        return self._members[scope]

    def shares(self, node: IterationNode) -> tuple[int, ...] | None:
        """Bytes that the average GPU sends on each dimension of its group; None if not known.

        p stages have p - 1 borders in each direction. A border is a collective in which both sides
        send (`parallelism.py`), so the average GPU sends on (p - 1) / p of them.
        """
        sent = self.of(node).bytes_per_dimension
        if sent is None or node.scope is not Scope.STAGE:
            return sent
        stages = self.query.workload.degrees.stages
        return tuple(share * (stages - 1) // stages for share in sent)

    def axes(self, graph: tuple[IterationNode, ...]) -> tuple[AxisTraffic, ...] | None:
        """Bytes that one GPU sends to the members of its groups; None if they are not known."""
        totals: Counter[tuple[int, int, int]] = Counter()
        for node in graph:
            if node.collective is None:
                continue
            shares = self.shares(node)
            if shares is None:
                return None
            over = self.over(node.scope)
            for key, share in zip(over.axes, shares, strict=True):
                totals[key] += share
        return tuple(AxisTraffic(*key, total) for key, total in sorted(totals.items()) if total)

    def profile(
        self, graph: tuple[IterationNode, ...], spans: list[Span]
    ) -> tuple[Burst, ...] | None:
        """Traffic over time: the bytes of each collective, spread over its whole span."""
        bursts: list[Burst] = []
        for node, span in zip(graph, spans, strict=True):
            shares = self.shares(node) if node.collective is not None else ()
            if shares is None:
                return None
            start, length = round(span.start), round(span.end - span.start)
            indices = self.over(node.scope).indices if shares else ()
            bursts += [
                Burst(dimension, start, length, share)
                for dimension, share in zip(indices, shares, strict=True)
                if share
            ]
        return tuple(sorted(bursts, key=lambda burst: burst.offset_ns))

    def _ask(self, collective: Collective, size_bytes: int, scope: Scope) -> Estimate:
        query = collective_query(self.query, self.over(scope), collective, size_bytes)
        if query is None:
            return Estimate(0, 0, self._backend.source, (), ())
        return self._backend.estimate(query)


def _per_dimension(axes: Sequence[AxisTraffic] | None, dimensions: int) -> tuple[int, ...] | None:
    """Bytes that one GPU sends on each dimension; None if they are not known."""
    if axes is None:
        return None
    total = [0] * dimensions
    for axis in axes:
        total[axis.dimension] += axis.size_bytes
    return tuple(total)


def composed(query: LatencyQuery) -> bool:
    """Whether the iteration is composed, from answers about its single collectives."""
    return query.workload.parallelism in _COMPOSED


def nodes_of(query: LatencyQuery) -> tuple[IterationNode, ...]:
    """The computations and collectives of an iteration on the GPUs of a query.

    Raises:
        DivisionError: the job's GPUs do not divide as the workload asks.
    """
    return nodes(fitted(query.workload, query.gpus))


def collective_queries(query: LatencyQuery) -> dict[Request, LatencyQuery | None]:
    """What a backend is asked for an iteration: one query for every different collective.

    They are in the order of first use. A collective over one GPU takes no time and has no query.

    Raises:
        BackendSettingError: the job's GPUs do not divide as the workload asks.
    """
    queries: dict[Request, LatencyQuery | None] = {}
    for node in nodes_of(query):
        if node.collective is not None:
            over = members(query.dimensions, query.workload.degrees, node.scope)
            request = (node.collective, node.comm_bytes, node.scope)
            queries[request] = collective_query(query, over, node.collective, node.comm_bytes)
    return queries


def collective_query(
    query: LatencyQuery, over: Members, collective: Collective, size_bytes: int
) -> LatencyQuery | None:
    """What a backend is asked for one collective; None for a group of one GPU."""
    if not over.dimensions:
        return None
    system = over.system(query.system)
    if collective is Collective.ALL_GATHER:
        # The node states the whole buffer; ASTRA-sim wants the part that each GPU contributes.
        gpus = math.prod(dimension.npus for dimension in over.dimensions)
        size_bytes = contributed_bytes(size_bytes, gpus, system)
    return LatencyQuery(_micro(collective, size_bytes), over.dimensions, system)


def contributed_bytes(whole_bytes: int, gpus: int, system: SystemSettings) -> int:
    """Bytes that each GPU gives to an all-gather: at least what ASTRA-sim can split."""
    return max(-(-whole_bytes // gpus), system.preferred_dataset_splits)


def _micro(collective: Collective, size_bytes: int) -> Workload:
    phase = Phase(0.0, collective, size_bytes)
    return Workload("collective", Parallelism.MICRO, (Layer("one", Phase(), Phase(), phase),))
