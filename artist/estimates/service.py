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
from artist.estimates.dimensions import dimensions, system_settings
from artist.estimates.query import Dimension, Estimate, LatencyBackend, LatencyQuery
from artist.workload.layers import Parallelism, Workload, quantised


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

    `queries` counts all questions, `distinct` the different ones among them as ASTRA-sim
    sees them, and `store_hits` those of these that came from the store.
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
        self._workloads: dict[str, Workload] = {}
        self._by_signature: dict[tuple[str, str], Estimate] = {}
        self._by_dimensions: dict[tuple[str, tuple[Dimension, ...]], Estimate] = {}

    @property
    def distinct(self) -> int:
        """Number of different questions."""
        return len(self._by_dimensions)

    @property
    def fallback_uses(self) -> int:
        """Questions that a recorded table lacked and its fallback answered."""
        return int(getattr(self._backend, "fallback_uses", 0))

    def estimate(self, model: str, signature: str) -> Estimate:
        """One iteration of a model on a placement of that shape.

        Raises:
            BackendError: the backend cannot answer; the message names model and placement.
        """
        self.queries += 1
        key = (model, signature)
        found = self._by_signature.get(key)
        if found is None:
            found = self._by_signature[key] = self._on_shape(model, signature)
        return found

    def _on_shape(self, model: str, signature: str) -> Estimate:
        shape = parse_signature(signature, self._fabric.level_names, self._fabric.gpus_per_socket)
        dims = dimensions(shape, self._fabric)
        found = self._by_dimensions.get((model, dims))
        if found is None:
            workload = self._workload(model)
            query = LatencyQuery(workload, dims, system_settings(dims, self._fabric))
            try:
                found = self._ask(query)
            except BackendError as cause:
                cause.args = (f"model {model!r} on placement {signature}: {cause}",)
                raise
            self._by_dimensions[model, dims] = found
        return found

    def _workload(self, model: str) -> Workload:
        found = self._workloads.get(model)
        if found is None:
            found = self._workloads[model] = quantised(self._workload_of(model))
        return found

    def _ask(self, query: LatencyQuery) -> Estimate:
        store = self._store if query.dimensions else None
        kept = store.get(query, self._backend.source) if store else None
        if kept is not None:
            self.store_hits += 1
            return kept
        estimate = answer(self._backend, query)
        if store:
            store.put(query, estimate)
        return estimate


def answer(backend: LatencyBackend, query: LatencyQuery) -> Estimate:
    """Ask a backend; what a single GPU needs no backend for is answered here."""
    if query.dimensions:
        return backend.estimate(query)
    compute_ns = single_gpu_ns(query.workload) * query.passes
    return Estimate(compute_ns, compute_ns, "single-gpu", (), ())


_ALONE = Estimate(1, 1, "none", (), ())


class NoCommunication:
    """`--backend none`: every iteration takes its compute time, whatever model and place."""

    queries = distinct = store_hits = fallback_uses = 0

    def estimate(self, model: str, signature: str) -> Estimate:
        """No communication."""
        return _ALONE


def single_gpu_ns(workload: Workload) -> int:
    """Compute time of one pass; the first layer of a DATA workload has no input gradient."""
    first = workload.layers[0]
    total_us = sum(
        phase.compute_us
        for layer in workload.layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    )
    if workload.parallelism is Parallelism.DATA:
        total_us -= first.input_grad.compute_us
    return round(1000 * total_us)
