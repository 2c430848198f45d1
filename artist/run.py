"""The composition root: a scenario in, a result out.

The only room that turns names into implementations.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artist import __version__
from artist.cluster.fabric import Fabric, load_fabric
from artist.cluster.order import VisitingOrder
from artist.cluster.tree import ClusterTree, nested
from artist.config import Scenario
from artist.contract import Policy
from artist.engine.simulator import Simulator
from artist.errors import ConfigError, PolicyError
from artist.estimates.backends import BACKENDS
from artist.estimates.calibration import Calibration, load_calibration
from artist.estimates.query import LatencyBackend
from artist.estimates.service import EstimateStore, LatencyService, NoCommunication
from artist.io.documents import validate
from artist.network.alone import AloneRates
from artist.policies.table import POLICIES
from artist.results.metrics import Table, job_table, placement_table, summarise, timeline_table
from artist.rng import stream
from artist.trace.arrivals import with_arrivals
from artist.trace.named import open_trace
from artist.trace.native.trace import Trace, check_models, check_sizes, head
from artist.workload.layers import Workload


@dataclass(frozen=True, slots=True)
class Result:
    """One finished run: the summary, the tables behind it, and where it all came from."""

    scenario: Scenario
    summary: Mapping[str, Any]
    tables: Mapping[str, Table]
    """`jobs`, `placements`, `timeline`, and what the policy adds."""
    inputs: Mapping[str, str]
    """SHA-256 of each input."""
    store_hits: int
    """Estimates that came from the disk cache instead of the backend."""
    trace_filled: Sequence[str]
    """What the trace does not tell and was filled in: by which rule, in how many jobs."""
    trace_dropped: Mapping[str, int]
    """Rows of the trace that were left out, by reason."""


def simulate(
    scenario: Scenario,
    *,
    check: bool = False,
    store: EstimateStore | None = None,
    on_question: Callable[[Simulator], None] | None = None,
) -> Result:
    """Run a scenario.

    Raises:
        ArtistError: whatever is wrong with it, before anything is written.
    """
    fabric = load_fabric(scenario.fabric)
    tree = build_cluster(scenario, fabric)
    policy = build_policy(scenario)
    calibration = load_calibration(scenario.calibration)
    trace = build_trace(scenario, tree)
    service = build_latency(scenario, fabric, calibration, store)
    rates = AloneRates(tree, service.estimate)
    order = VisitingOrder(tree, scenario.permutation)
    simulator = Simulator(tree, trace.jobs, rates, lease=policy.lease, order=order, check=check)
    started = time.perf_counter()
    rows = simulator.run(policy, on_question)
    wall_s = time.perf_counter() - started
    if len(rows.jobs) != len(trace.jobs):
        raise PolicyError(f"{scenario.policy} finished {len(rows.jobs)} of {len(trace.jobs)} jobs")
    jobs, timeline = job_table(rows), timeline_table(rows, tree)
    summary = {
        "policy": scenario.policy,
        "trace": trace.name,
        **summarise(rows, tree, jobs, timeline, len(trace.jobs)),
        "latency_queries": service.queries,
        "latency_backend_calls": service.distinct,
        "latency_fallback_uses": service.fallback_uses,
        "wall_s": wall_s,
        "seed": scenario.seed,
        "artist_version": __version__,
    }
    tables: dict[str, Table] = {
        "jobs": jobs,
        "placements": placement_table(rows, tree, [job.id for job in trace.jobs]),
        "timeline": timeline,
    }
    for name, found in policy.tables().items():
        tables[name] = {key: [row[key] for row in found] for key in (found[0] if found else {})}
    inputs = {"trace": trace.digest, "fabric": _digest(fabric.model_dump_json())}
    if calibration is not None:
        inputs["calibration"] = _digest(calibration.model_dump_json())
    return Result(
        scenario, summary, tables, inputs, service.store_hits, trace.filled, trace.dropped
    )


def build_cluster(scenario: Scenario, fabric: Fabric) -> ClusterTree:
    """The scenario's cluster on the fabric's levels."""
    if scenario.tree is not None:
        tree = nested(fabric.level_names, scenario.tree)
        socket = fabric.gpus_per_socket
        if socket is not None and tree.largest(0) > socket:
            raise ConfigError(
                f"tree: a {fabric.level_names[0]} of {tree.largest(0)} GPUs, but those of fabric "
                f"{fabric.name!r} have {socket}; split it or choose another fabric"
            )
        return tree
    return fabric.cluster(
        racks=scenario.racks,
        machines_per_rack=scenario.machines_per_rack,
        gpus_per_machine=scenario.gpus_per_machine,
    )


def build_policy(scenario: Scenario) -> Policy:
    """The policy by name, with its preset and the scenario's options."""
    entry = POLICIES[scenario.policy]
    implementation = entry.load()
    chosen = {**entry.preset, **scenario.policy_options}
    options = validate(chosen, implementation.Options, f"policy {entry.id}")
    policy: Policy = implementation(options)
    return policy


def build_trace(scenario: Scenario, tree: ClusterTree) -> Trace:
    """The jobs to run, checked against cluster and catalogue."""
    trace = open_trace(scenario.trace, scenario.seed)
    if scenario.jobs is not None:
        trace = head(trace, scenario.jobs)
    trace = with_arrivals(trace, scenario.arrivals, scenario.seed)
    if scenario.restart_s is not None:
        jobs = tuple(replace(job, restart_s=scenario.restart_s) for job in trace.jobs)
        trace = replace(trace, jobs=jobs)
    check_sizes(trace, tree.gpus)
    if scenario.backend != "none":
        check_models(trace)
    return permuted(trace, scenario.permutation)


def permuted(trace: Trace, permutation: int) -> Trace:
    """The same jobs, those that arrive together in another order; 0 keeps the trace's."""
    if not permutation:
        return trace
    draws = stream(permutation, "arrival-order").random(len(trace.jobs)).tolist()
    ranked = sorted(range(len(draws)), key=lambda i: (trace.jobs[i].arrival_s, draws[i]))
    jobs = tuple(trace.jobs[i] for i in ranked)
    return replace(trace, jobs=jobs, numbers=[trace.numbers[i] for i in ranked])


@dataclass(frozen=True, slots=True)
class _Workloads:
    """Workloads of the catalogue by any spelling, calibrated; an object, so that it pickles."""

    calibration: Calibration | None

    def __call__(self, model: str) -> Workload:
        from artist.workload.models import canonical, workload

        found = workload(canonical(model))
        return self.calibration.apply(found) if self.calibration else found


def build_latency(
    scenario: Scenario,
    fabric: Fabric,
    calibration: Calibration | None = None,
    store: EstimateStore | None = None,
) -> LatencyService | NoCommunication:
    """Who answers the engine's questions about speed."""
    if scenario.backend == "none":
        return NoCommunication()
    backend = open_backend(scenario.backend, scenario.fallback)
    return LatencyService(
        with_system(fabric, scenario.system), backend, _Workloads(calibration), store
    )


def open_backend(name: str, fallback: str | None = None) -> LatencyBackend:
    """A latency backend by name, `KIND[:ARGUMENT]`; it answers sharded and divided models too.

    Raises:
        ConfigError: unknown name, or a fallback for a backend that always answers.
        BackendError: its program, engine or image is missing.
    """
    from artist.estimates.layer_wise import LayerwiseBackend

    kind, _, argument = name.partition(":")
    if fallback is not None and kind != "recorded":
        raise ConfigError(f"fallback {fallback!r}: only backend recorded:FILE can need one")
    second = open_backend(fallback) if fallback is not None else None
    backend: LatencyBackend = BACKENDS[kind].load()(argument, second)
    return LayerwiseBackend(backend)


def with_system(fabric: Fabric, changes: Mapping[str, Any]) -> Fabric:
    """A fabric with some of its system settings replaced.

    Raises:
        ConfigError: an unknown setting or a bad value.
    """
    if not changes:
        return fabric
    if "source" in changes:
        raise ConfigError("system.source is not a setting")
    merged = fabric.system.model_dump() | dict(changes)
    system = validate(merged, type(fabric.system), "system settings")
    return fabric.model_copy(update={"system": system})


def _digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
