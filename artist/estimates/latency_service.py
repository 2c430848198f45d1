"""From a model and the shape of a placement to an estimate.

A query goes to the memo, then to the disk cache, then to the backend. A query about a single GPU
needs none of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol

from artist.cluster.fabric import Fabric
from artist.cluster.placement_shape import Shape, gpus_of, shape_text
from artist.errors import BackendError
from artist.estimates.calibration import with_constant_share
from artist.estimates.group_members import extent
from artist.estimates.query import Dimension, Estimate, LatencyBackend, LatencyQuery
from artist.estimates.shape_queries import as_sent, asked_dimensions, counted, query, takes_fastest
from artist.workload.division.staged import sizes_of
from artist.workload.layers import Parallelism, Scope, Workload, quantised


class EstimateStore(Protocol):
    """Estimates kept between runs."""

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate of this source, or None. Estimates with a profile are kept apart."""
        ...

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate. `profile` says whether its profile was asked for."""
        ...


@dataclass(slots=True)
class Asker:
    """Asks one backend about models on one fabric; the store keeps the answers.

    `constant_share_of` gives the constant share of a model, which is added to the comm ratio of
    its estimates on more than one GPU. The store keeps estimates without it.
    """

    fabric: Fabric
    backend: LatencyBackend
    workload_of: Callable[[str], Workload]
    store: EstimateStore | None = None
    constant_share_of: Callable[[str], float] | None = None
    _workloads: dict[str, Workload] = field(default_factory=dict, init=False, repr=False)

    def workload(self, model: str) -> Workload:
        """The model's workload for queries: collectives as sent, times in whole microseconds."""
        if model not in self._workloads:
            sent = as_sent(self.workload_of(model), self.fabric.system)
            self._workloads[model] = quantised(sent)
        return self._workloads[model]

    def dimensions(self, model: str, shape: Shape) -> list[tuple[Dimension, ...]]:
        """The dimensions of each query about a model on a shape."""
        return asked_dimensions(self.workload(model), shape, self.fabric)

    def ask(self, model: str, dims: tuple[Dimension, ...], *, profile: bool) -> Estimate:
        """The store's answer to a query, or else the backend's."""
        asked = query(self.workload(model), dims, self.fabric)
        store = self.store if dims else None
        if store is not None:
            kept = store.get(asked, asked.source(self.backend.source), profile=profile)
            if kept is not None:
                return kept
        estimate = answer(self.backend, asked, profile=profile)
        if store is not None:
            store.put(asked, estimate, profile=profile)
        return estimate

    def with_constant(self, model: str, shape: Shape, estimate: Estimate) -> Estimate:
        """The estimate with the constant share of the model."""
        if self.constant_share_of is None or gpus_of(shape) == 1:
            return estimate
        return with_constant_share(estimate, self.constant_share_of(model))


class LatencyService:
    """Estimates on one fabric by one backend.

    `queries` counts how often an estimate was asked for. `distinct` counts the different queries
    that this took, as ASTRA-sim tells them apart. `store_hits` counts how many of these the store
    answered. `everywhere` is None, since no estimate holds for every model and shape.
    """

    everywhere: ClassVar[None] = None

    def __init__(
        self,
        fabric: Fabric,
        backend: LatencyBackend,
        workload_of: Callable[[str], Workload],
        store: EstimateStore | None = None,
        constant_share_of: Callable[[str], float] | None = None,
    ) -> None:
        self.queries = 0
        self.store_hits = 0
        self.asker = Asker(fabric, backend, workload_of, store, constant_share_of)
        self._by_shape: dict[tuple[str, Shape, bool], Estimate] = {}
        # One query serves all shapes with the same dimensions.
        self._by_dimensions: dict[tuple[str, tuple[Dimension, ...], bool], Estimate] = {}
        self._counts: dict[tuple[str, Shape], tuple[Dimension, ...]] = {}
        self._of_trials: LatencyService | None = None

    def for_trials(self) -> LatencyService:
        """The service that all trials of a run share. Their queries are not counted here."""
        if self._of_trials is None:
            self._of_trials = twin = copy.copy(self)
            twin._by_shape, twin._by_dimensions = dict(self._by_shape), dict(self._by_dimensions)
            twin._of_trials = twin
        return self._of_trials

    @property
    def distinct(self) -> int:
        """Number of queries that ASTRA-sim can tell apart."""
        return len({(model, dims) for model, dims, _ in self._by_dimensions})

    @property
    def fallback_uses(self) -> int:
        """Queries that a recorded table did not hold and its fallback answered."""
        return int(getattr(self.asker.backend, "fallback_uses", 0))

    def estimate(self, model: str, shape: Shape, *, profile: bool = False) -> Estimate:
        """The estimate of one iteration of a model on this shape, with its traffic if `profile`.

        Raises:
            BackendError: the backend cannot answer; the message names model and placement.
        """
        self.queries += 1
        key = (model, shape, profile)
        estimate = self._by_shape.get(key)
        if estimate is None:
            estimate = self._on_shape(model, shape, profile)
            estimate = self._by_shape[key] = self.asker.with_constant(model, shape, estimate)
        return estimate

    def known_query(self, model: str, shape: Shape) -> tuple[Dimension, ...] | None:
        """The query about a model on a shape whose answer counts; None if none was asked yet."""
        return self._counts.get((model, shape))

    def known_order(self, model: str, shape: Shape) -> str:
        """The order of ranks in the estimate of a divided job; empty without an estimate."""
        keys = ((model, shape, profile) for profile in (False, True))
        return next((self._by_shape[key].order for key in keys if key in self._by_shape), "")

    def constant_share(self, model: str) -> float:
        """The part of a model's comm ratio that is the same on all shapes of several GPUs."""
        share_of = self.asker.constant_share_of
        return share_of(model) if share_of is not None else 0.0

    def _on_shape(self, model: str, shape: Shape, profile: bool) -> Estimate:
        every, fabric = self.asker.dimensions(model, shape), self.asker.fabric
        asks = [partial(self._on_dimensions, model, dims, profile) for dims in every]
        try:
            answers = counted(asks, fastest=takes_fastest(fabric.system))
            self._counts[model, shape] = every[answers.index]
            return answers.estimate
        except BackendError as cause:
            signature = shape_text(shape, fabric.level_names)
            cause.args = (f"model {model!r} on placement {signature}: {cause}",)
            raise

    def _on_dimensions(self, model: str, dims: tuple[Dimension, ...], profile: bool) -> Estimate:
        key = (model, dims, profile)
        if key not in self._by_dimensions:
            estimate = self._by_dimensions[key] = self.asker.ask(model, dims, profile=profile)
            self.store_hits += estimate.from_cache
        return self._by_dimensions[key]


def answer(backend: LatencyBackend, query: LatencyQuery, *, profile: bool = False) -> Estimate:
    """Ask a backend. A query about a single GPU needs no backend and is answered here.

    Raises:
        DivisionError: a single GPU is too few for the model's division.
        BackendError: the backend does not answer.
    """
    if query.dimensions:
        return backend.estimate(query, profile=profile)
    if query.workload.staged is not None:
        sizes_of(query.workload.staged.axes, 1)
    extent(1, query.workload.degrees, Scope.ALL)
    compute_ns = single_gpu_ns(query.workload) * query.passes
    return Estimate(compute_ns, compute_ns, "single-gpu", (), ())


def alone_step_s(workload: Workload) -> float:
    """Compute time of one pass in seconds, as `artist latency` shows it: in whole microseconds."""
    return single_gpu_ns(quantised(workload)) / 1e9


def single_gpu_ns(workload: Workload) -> int:
    """Compute time of one pass, nanoseconds; for a graph, that of the GPU that computes longest.

    The first layer of a DATA workload needs no input gradient.
    """
    if workload.graph is not None:
        return max(map(workload.graph.compute_ns, range(len(workload.graph.programs))))
    if workload.staged is not None:
        from artist.workload.stage_steps import alone_ns

        return alone_ns(workload)
    first = workload.layers[0]
    total_us = sum(
        phase.compute_us
        for layer in workload.layers
        for phase in (layer.forward, layer.input_grad, layer.weight_grad)
    )
    if workload.parallelism is Parallelism.DATA:
        total_us -= first.input_grad.compute_us
    return round(1000 * total_us)
