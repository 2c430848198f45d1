"""The engine's door to latency: (model, placement signature) -> estimate.

The way of a question: memo -> disk cache -> backend. What a single GPU answers needs none
of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from artist.cluster.fabric import Fabric
from artist.cluster.placement import parse_signature
from artist.errors import BackendError
from artist.latency.base import Estimate, LatencyBackend, LatencyQuery
from artist.latency.network import dimensions, system_settings
from artist.workload.layers import Workload, quantised


class EstimateStore(Protocol):
    """Answers kept between runs."""

    def get(self, query: LatencyQuery, source: str) -> Estimate | None:
        """A kept answer of that source, or None."""
        ...

    def put(self, query: LatencyQuery, estimate: Estimate) -> None:
        """Keep an answer."""
        ...


class LatencyService:
    """Answers for one fabric and one backend.

    `queries` counts all questions, `distinct` those that the memo could not answer and
    `store_hits` those of them that came from the store.
    """

    def __init__(
        self,
        fabric: Fabric,
        backend: LatencyBackend,
        workload_of: Callable[[str], Workload],
        store: EstimateStore | None = None,
    ) -> None:
        self.queries = 0
        self.store_hits = 0
        self._fabric = fabric
        self._backend = backend
        self._workload_of = workload_of
        self._store = store
        self._memo: dict[tuple[str, str], Estimate] = {}

    @property
    def distinct(self) -> int:
        """Number of different questions."""
        return len(self._memo)

    def estimate(self, model: str, signature: str) -> Estimate:
        """One iteration of a model on a placement of that shape.

        Raises:
            BackendError: the backend cannot answer; the message names model and placement.
        """
        self.queries += 1
        key = (model, signature)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._ask(model, signature)
        return found

    def query(self, model: str, signature: str) -> LatencyQuery:
        """The question as the backend sees it."""
        shape = parse_signature(signature, self._fabric.level_names, self._fabric.gpus_per_socket)
        dims = dimensions(shape, self._fabric)
        workload = quantised(self._workload_of(model))
        return LatencyQuery(workload, dims, system_settings(dims, self._fabric))

    def _ask(self, model: str, signature: str) -> Estimate:
        query = self.query(model, signature)
        if not query.dimensions:
            compute_ns = _compute_ns(query.workload)
            return Estimate(compute_ns, compute_ns, "single-gpu", (), ())
        kept = self._store.get(query, self._backend.source) if self._store else None
        if kept is not None:
            self.store_hits += 1
            return kept
        try:
            estimate = self._backend.estimate(query)
        except BackendError as cause:
            raise type(cause)(f"model {model!r} on placement {signature}: {cause}") from cause
        if self._store:
            self._store.put(query, estimate)
        return estimate


class NoCommunication:
    """`--backend none`: every iteration takes its compute time, whatever model and place."""

    queries = distinct = store_hits = 0

    def estimate(self, model: str, signature: str) -> Estimate:
        """No communication."""
        return Estimate(1, 1, "none", (), ())


def _compute_ns(workload: Workload) -> int:
    phases = [
        phase
        for layer in workload.layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    ]
    return round(1000 * sum(phase.compute_us for phase in phases))
