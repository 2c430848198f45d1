"""Iterations that are more than one all-reduce per layer, from any backend's collectives.

FSDP, tensor, pipeline and expert parallelism order computations and collectives as
`artist.workload.iteration_graph` says. A GPU runs one collective at a time, so the iteration
follows from how long each takes alone, which the backend is asked as a MICRO workload
over the dimensions of the GPUs that take part. DATA and MICRO pass through unchanged.
"""

from __future__ import annotations

import math

from artist.estimates.members import Members, members
from artist.estimates.query import (
    Burst,
    Estimate,
    LatencyBackend,
    LatencyQuery,
)
from artist.workload.iteration_graph import Node, Span, nodes, schedule
from artist.workload.layers import (
    Collective,
    Layer,
    Parallelism,
    Phase,
    Scope,
    Workload,
)

NS_PER_US = 1000
Request = tuple[Collective, int, Scope]
"""A collective, its whole bytes and who takes part."""


class LayerwiseBackend:
    """A backend that also answers FSDP and LAYERWISE workloads.

    Its `source` is that of the backend it asks: every collective's time is that one's.
    """

    def __init__(self, backend: LatencyBackend) -> None:
        self._backend = backend
        self.source = backend.source

    @property
    def fallback_uses(self) -> int:
        """Of a recorded table: questions that its fallback answered."""
        return int(getattr(self._backend, "fallback_uses", 0))

    def estimate(self, query: LatencyQuery, *, profile: bool = False) -> Estimate:
        """Answer one query.

        Raises:
            BackendSettingError: the job's GPUs do not divide as the workload asks, or the
                backend refuses a collective.
        """
        if not composed(query):
            return self._backend.estimate(query, profile=profile)
        found = nodes(query.workload)
        answers = CollectiveTimes(self._backend, query)

        def duration_ns(node: Node) -> float:
            if node.collective is None:
                return int(node.compute_us) * NS_PER_US or 1
            return answers.of(node).finish_ns

        spans = schedule(found, duration_ns)
        one_pass_ns = round(max(span.end for span in spans))
        compute_ns = round(sum(duration_ns(node) for node in found if node.collective is None))
        return Estimate(
            finish_ns=one_pass_ns * query.passes,
            compute_ns=compute_ns * query.passes,
            source=self.source,
            bytes_per_dimension=answers.sent(found),
            profile=answers.profile(found, spans) if profile else None,
        )


class CollectiveTimes:
    """What a backend answers for each collective of one query, asked once each."""

    def __init__(self, backend: LatencyBackend, query: LatencyQuery) -> None:
        self._backend = backend
        self._query = query
        self._members: dict[Scope, Members] = {}
        self._estimates: dict[Request, Estimate] = {}

    def of(self, node: Node) -> Estimate:
        """The estimate of a collective alone; over one GPU it takes no time."""
        assert node.collective is not None
        request = (node.collective, node.comm_bytes, node.scope)
        if request not in self._estimates:
            self._estimates[request] = self._ask(*request)
        return self._estimates[request]

    def over(self, scope: Scope) -> Members:
        """Who takes part."""
        if scope not in self._members:
            degrees = self._query.workload.degrees
            self._members[scope] = members(self._query.dimensions, degrees, scope)
        return self._members[scope]

    def sent(self, found: tuple[Node, ...]) -> tuple[int, ...] | None:
        """Bytes that one GPU sends per dimension of the query."""
        total = [0] * len(self._query.dimensions)
        for node in found:
            if node.collective is None:
                continue
            shares = self.of(node).bytes_per_dimension
            if shares is None:
                return None
            for dimension, share in zip(self.over(node.scope).indices, shares, strict=True):
                total[dimension] += share
        return tuple(total)

    def profile(self, found: tuple[Node, ...], spans: list[Span]) -> tuple[Burst, ...] | None:
        """Traffic over time: each collective's bytes over its whole span."""
        bursts = []
        for node, span in zip(found, spans, strict=True):
            shares = self.of(node).bytes_per_dimension if node.collective is not None else ()
            if shares is None:
                return None
            start, length = round(span.start), round(span.end - span.start)
            indices = self.over(node.scope).indices if shares else ()
            bursts += [
                Burst(dimension, start, length, share)
                for dimension, share in zip(indices, shares, strict=True)
                if share
            ]
        return tuple(bursts)

    def _ask(self, collective: Collective, size_bytes: int, scope: Scope) -> Estimate:
        query = _question(self._query, self.over(scope), collective, size_bytes)
        if query is None:
            return Estimate(0, 0, self._backend.source, (), ())
        return self._backend.estimate(query)


def composed(query: LatencyQuery) -> bool:
    """Whether a backend is asked for collectives instead of the whole iteration."""
    return query.workload.parallelism not in (Parallelism.DATA, Parallelism.MICRO)


def questions(query: LatencyQuery) -> dict[Request, LatencyQuery | None]:
    """What a backend is asked for an iteration: every different collective alone.

    In the order of their first use; None for a collective over one GPU, which takes no time.

    Raises:
        BackendSettingError: the job's GPUs do not divide as the workload asks.
    """
    found: dict[Request, LatencyQuery | None] = {}
    for node in nodes(query.workload):
        if node.collective is not None:
            over = members(query.dimensions, query.workload.degrees, node.scope)
            request = (node.collective, node.comm_bytes, node.scope)
            found[request] = _question(query, over, node.collective, node.comm_bytes)
    return found


def _question(
    query: LatencyQuery, over: Members, collective: Collective, size_bytes: int
) -> LatencyQuery | None:
    if not over.dimensions:
        return None
    system = over.system(query.system)
    if collective is Collective.ALL_GATHER:
        # The node holds the whole buffer, ASTRA-sim asks for one GPU's part of it.
        gpus = math.prod(dimension.npus for dimension in over.dimensions)
        size_bytes = max(-(-size_bytes // gpus), system.preferred_dataset_splits)
    return LatencyQuery(_micro(collective, size_bytes), over.dimensions, system)


def _micro(collective: Collective, size_bytes: int) -> Workload:
    phase = Phase(0.0, collective, size_bytes)
    return Workload("collective", Parallelism.MICRO, (Layer("one", Phase(), Phase(), phase),))
