"""The composition root: a scenario in, a result out, in three steps.

    Scenario -> prepare -> Prepared -> drive -> rows -> collect -> Result

The only room that turns names into implementations. `simulate` does all three steps. A driver
outside calls `prepare`, asks and answers `Prepared.simulator` itself, and calls `collect`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any

from artist import __version__
from artist.cluster.fabric import Fabric, load_fabric, with_system
from artist.cluster.fabric_options import changes_text, with_options
from artist.cluster.tree import ClusterTree, gpus_by_kind, nested
from artist.cluster.visiting_order import VisitingOrder
from artist.config import ABOUT_THE_TRACE, Scenario
from artist.contract import EventSource, Options, Policy, RateFunction
from artist.engine.simulator import Simulator
from artist.errors import ArtistError, ConfigError, PolicyError, shortened
from artist.estimates.backends import BACKENDS
from artist.estimates.no_communication import NoCommunication
from artist.garbage_collector import many_objects
from artist.io.digests import sha256
from artist.io.documents import validate
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.rate_functions import open_contention
from artist.policies.lease_and_tables import check_lease, tables_of
from artist.policies.own_file import cannot_be_made, entry_in_file, in_a_sentence, is_in_a_file
from artist.policies.table import POLICIES
from artist.registry import Entry
from artist.results.alone import alone_seconds
from artist.results.failures.told import NOTHING_TOLD
from artist.results.lazy_tables import LazyTables
from artist.results.metrics import (
    Table,
    job_table,
    placement_table,
    summarise,
    timeline_table,
)
from artist.results.named_files import file_digests
from artist.results.result import Result
from artist.results.tenants.accounts import accounts
from artist.results.waiting.stays import Facts, facts
from artist.rng import FIRST_DRAWS, Draws, stream
from artist.trace.arrivals import with_arrivals
from artist.trace.named import Given, open_trace
from artist.trace.native.trace import (
    Trace,
    check_kinds,
    check_models,
    check_sizes,
    check_tenants,
    head,
)
from artist.workload.tenants import NO_TENANTS, Tenant, check_quotas, load_tenants

if TYPE_CHECKING:
    from artist.cluster.cluster_file import Cluster
    from artist.data.data import Data
    from artist.data.gate import DataGate
    from artist.estimates.calibration import Calibration
    from artist.estimates.latency_service import EstimateStore, LatencyService
    from artist.estimates.query import LatencyBackend
    from artist.failures.failures import Failures

OnQuestion = Callable[[Simulator], None]
OnTrace = Callable[[Trace], None]

MOST_WRAPPERS = 20
"""Policies inside one another; nobody needs more than a few."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything that a run needs, checked; nothing has been simulated yet."""

    scenario: Scenario
    fabric: Fabric
    calibration: Calibration | None
    trace: Trace
    policy: Policy
    estimates: LatencyService | NoCommunication
    network: NetworkOfRun
    simulator: Simulator
    files: Mapping[str, str]
    """Digests of the other files that the scenario names, by setting."""
    failures: Failures | None = None
    """What fails, and when jobs write checkpoints; None if neither."""
    gate: DataGate | None = None
    """The policy in a run with data; None in others."""
    data: Data | None = None
    """The tables of a run with data."""


def simulate(
    scenario: Scenario,
    *,
    check: bool = False,
    store: EstimateStore | None = None,
    on_question: OnQuestion | None = None,
    on_trace: OnTrace | None = None,
    links: bool = False,
) -> Result:
    """Run a scenario: prepare, drive, collect. `on_trace` is told the trace before it is simulated.

    With `links` the result has a table of what links carried.

    Raises:
        ArtistError: whatever is wrong with the scenario, before anything is written.
    """
    prepared = prepare(scenario, check=check, store=store)
    if links:
        prepared.network.curves("--links")  # or refuse before hours are spent
    if on_trace is not None:
        on_trace(prepared.trace)
    wall_s = drive(prepared, on_question)
    return collect(prepared, wall_s, links=links)


def prepare(
    scenario: Scenario,
    *,
    check: bool = False,
    store: EstimateStore | None = None,
    events: EventSource | None = None,
) -> Prepared:
    """Turn a scenario's names into a simulator and a policy.

    `events` come from outside the trace, in place of the scenario's failures. They are not part of
    the scenario, so the result does not tell of them, and the share of fragmented GPUs counts
    withdrawn GPUs as free.

    Raises:
        ArtistError: whatever is wrong with the scenario.
    """
    fabric = build_fabric(scenario)
    tree = build_cluster(scenario, fabric)
    files = file_digests(scenario)
    policy = build_policy(scenario)
    calibration = build_calibration(scenario, fabric)
    trace = build_trace(scenario, tree)
    _check_kinds(scenario, tree, policy, trace)
    estimates = build_latency(scenario, fabric, calibration, store)
    network = NetworkOfRun(tree, fabric, estimates, scenario.seed)
    rates: RateFunction = open_contention(scenario.contention, scenario.contention_options, network)
    data = build_data(scenario, tree, trace)
    gate = None
    if data is not None:
        policy = gate = data.gate(policy)
        rates = data.rates(rates, tree)
    failures = build_failures(scenario, tree, trace)
    if events is None and failures is not None:
        events = failures.events(scenario.seed)
        policy = failures.heeding(policy)
    simulator = Simulator(
        tree,
        trace.jobs,
        rates,
        lease=policy.lease,
        visiting_order=VisitingOrder(tree, scenario.permutation),
        events=events,
        checkpoints=None if failures is None else failures.checkpoints,
        check=check,
    )
    return Prepared(
        scenario,
        fabric,
        calibration,
        trace,
        policy,
        estimates,
        network,
        simulator,
        files,
        failures,
        gate,
        data,
    )


def drive(prepared: Prepared, on_question: OnQuestion | None = None) -> float:
    """Let the policy answer every question until all jobs have finished; seconds that it took.

    Raises:
        PolicyError: an unlawful decision, jobs are left over, or a policy's file raised.
    """
    started = time.perf_counter()
    try:
        prepared.simulator.run(prepared.policy, on_question)
    except Exception as cause:
        if error := in_a_sentence(cause, prepared.scenario.policy):
            raise error from cause
        raise
    return time.perf_counter() - started


@many_objects()
def collect(prepared: Prepared, wall_s: float, *, links: bool = False) -> Result:
    """The result of a simulator that has come to its end. `wall_s` goes into the summary.

    With `links` it has a table of what links carried.

    Raises:
        PolicyError: some jobs have not finished, or the policy's tables are none.
    """
    scenario, trace, simulator = prepared.scenario, prepared.trace, prepared.simulator
    rows, tree, estimates = simulator.rows, simulator.tree, prepared.estimates
    calibration = prepared.calibration
    if len(rows.jobs) != len(trace.jobs):
        raise PolicyError(f"{scenario.policy} finished {len(rows.jobs)} of {len(trace.jobs)} jobs")
    # Before `alone_seconds` asks for more: these tell of the simulation.
    work = {
        "latency_queries": estimates.queries,
        "latency_backend_calls": estimates.distinct,
        "latency_fallback_uses": estimates.fallback_uses,
    }
    store_hits = estimates.store_hits
    rates = prepared.network.alone
    contended = scenario.contention != "none"
    jobs = job_table(rows, alone_seconds(trace.jobs, tree, rates.alone), contended=contended)
    failing = prepared.failures is not None
    timeline = timeline_table(rows, tree, failing=failing)
    job_ids = [job.id for job in trace.jobs]
    told = NOTHING_TOLD
    if prepared.failures is not None:
        from artist.results.failures.tables import told_of_failures

        told = told_of_failures(rows, prepared.failures.hazard, job_ids)
    jobs |= told.job_columns
    own_tables = tables_of(prepared.policy, scenario.policy)
    tenants = load_tenants(scenario.tenants)
    account = accounts(rows, trace.jobs, jobs, tree.gpus, tenants, own_tables.get("queue", {}))
    jobs |= account.columns
    summary = {
        "policy": scenario.policy,
        "trace": trace.name,
        "calibration": calibration.name if calibration else "none",
        "models_not_calibrated": " ".join(_models_not_calibrated(prepared)),
        **_fabric_changes(scenario),
        **({"contention": scenario.contention} if contended else {}),
        **summarise(rows, tree, jobs, timeline, len(trace.jobs), estimates.constant_share),
        **told.summary,
        **account.metrics,
        **({} if prepared.gate is None else prepared.gate.summary()),
        **work,
        "wall_s": wall_s,
        "seed": scenario.seed,
        "artist_version": __version__,
    }
    tables: dict[str, Table] = {
        "jobs": jobs,
        "placements": placement_table(rows, tree, job_ids) | told.placement_columns,
        "timeline": timeline,
    }
    tables.update(account.tables)
    tables.update(own_tables)
    tables.update(told.tables)
    if prepared.data is not None:
        from artist.results.data.plan import plan_tables
        from artist.results.data.tables import told_of_data

        tables.update(told_of_data(rows, tree, trace.jobs, prepared.data))
        tables.update(plan_tables(scenario.data))
    if links:
        from artist.results.links import link_table

        tables["links"] = link_table(rows, trace.jobs, prepared.network)
    if prepared.network.turns.taken:
        from artist.results.links import turn_table

        tables["turns"] = turn_table(prepared.network.turns.taken, trace.jobs)
    run_facts = facts(rows, tree.gpus, trace.jobs)
    return Result(
        scenario,
        summary,
        LazyTables(tables, {"waits": partial(_waits, run_facts)}),
        {
            "trace": trace.digest,
            **_link_digests(prepared.fabric, calibration),
            **prepared.files,
        },
        store_hits,
        trace.filled,
        trace.dropped,
        trace.mapped,
    )


def _waits(run_facts: Facts) -> Table:
    """Why jobs waited. Only runs that are asked for it load it."""
    from artist.results.waiting.waits import wait_table

    return wait_table(run_facts)


def link_digests(scenario: Scenario) -> Mapping[str, str]:
    """The digests of fabric and calibration that a run of the scenario would give now.

    Raises:
        ConfigError: one of them is missing or bad.
    """
    fabric = build_fabric(scenario)
    return _link_digests(fabric, build_calibration(scenario, fabric))


def _link_digests(fabric: Fabric, calibration: Calibration | None) -> Mapping[str, str]:
    if calibration is None:
        return {"fabric": fabric.digest}
    return {"fabric": fabric.digest, "calibration": sha256(calibration.model_dump_json())}


def build_fabric(scenario: Scenario) -> Fabric:
    """The scenario's fabric, with the levels of its cluster file and the scenario's changes.

    Raises:
        ConfigError: unknown name, bad file, or a change of a level that the fabric lacks.
    """
    cluster = cluster_of(scenario)
    if cluster is None:
        return with_options(load_fabric(scenario.fabric), scenario.fabric_options)
    from artist.cluster.cluster_links import fabric_of_cluster

    named = load_fabric(scenario.own_fabric or cluster.file.fabric or scenario.fabric)
    return with_options(fabric_of_cluster(cluster.file, named), scenario.fabric_options)


def cluster_of(scenario: Scenario) -> Cluster | None:
    """The scenario's cluster file with its units; None if it names none.

    Raises:
        ConfigError: unknown name or bad file.
    """
    if scenario.cluster is None:
        return None
    from artist.cluster.cluster_file import load_cluster

    return load_cluster(scenario.cluster)


def build_cluster(scenario: Scenario, fabric: Fabric) -> ClusterTree:
    """The scenario's cluster on the levels of its fabric (`build_fabric`)."""
    cluster = cluster_of(scenario)
    if cluster is not None:
        return cluster.tree(fabric.level_names, fabric.gpus_per_socket)
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


def build_data(scenario: Scenario, tree: ClusterTree, trace: Trace) -> Data | None:
    """The tables that jobs read, and where they are; None without a data file.

    Raises:
        ConfigError: a cluster without regions, or a bad option.
        TraceError: a bad data file, or a job that it does not fit.
    """
    if scenario.data is None:
        if scenario.data_options:
            raise ConfigError("data options are given, but no data file; name one with data=FILE")
        return None
    from artist.data.data import open_data

    cluster = cluster_of(scenario)
    return open_data(scenario.data, scenario.data_options, cluster, tree, trace.jobs)


def build_calibration(scenario: Scenario, fabric: Fabric) -> Calibration | None:
    """The calibration of a run; with `auto`, none where nothing is asked that it could scale.

    Raises:
        ConfigError: unknown name or bad file.
    """
    kind = scenario.backend.partition(":")[0]
    # A recorded table holds answers from elsewhere, about compute times of their own.
    if scenario.calibration == "auto" and kind in ("none", "recorded"):
        return None
    from artist.estimates.calibration import choose_calibration

    return choose_calibration(scenario.calibration, fabric)


def build_failures(scenario: Scenario, tree: ClusterTree, trace: Trace) -> Failures | None:
    """What fails in a run, and when its jobs write checkpoints; None if neither.

    Raises:
        ConfigError: unknown name, a bad file, or a unit that the cluster lacks.
    """
    asked = scenario.failures != "none" or scenario.checkpoint is not None
    if not asked and all(job.checkpoint_interval_s is None for job in trace.jobs):
        return None
    from artist.failures.failures import open_failures

    return open_failures(scenario.failures, scenario.checkpoint, tree)


def _fabric_changes(scenario: Scenario) -> Mapping[str, str]:
    """The entry of a summary that says how the fabric was changed; none if it was not."""
    text = changes_text(scenario.fabric_options)
    return {"fabric_changes": text} if text else {}


def _models_not_calibrated(prepared: Prepared) -> tuple[str, ...]:
    """Models of the trace that the calibration lacks; none where there is no calibration."""
    if prepared.calibration is None or prepared.scenario.backend == "none":
        return ()
    from artist.workload.models import canonical

    return prepared.calibration.lacks(canonical(job.model) for job in prepared.trace.jobs)


def build_policy(scenario: Scenario) -> Policy:
    """The scenario's policy with its options.

    Raises:
        ConfigError: unknown name or option.
    """
    draws = Draws(scenario.seed, scenario.permutation)
    tenants = load_tenants(scenario.tenants)
    return open_policy(scenario.policy, scenario.policy_options, draws, tenants)


def open_policy(
    name: str,
    options: Mapping[str, Any],
    draws: Draws = FIRST_DRAWS,
    tenants: Mapping[str, Tenant] = NO_TENANTS,
) -> Policy:
    """A policy by name, with its preset and options: `NAME`, `FILE.py:CLASS` or `WRAPPER(NAME)`.

    The options of the policy inside a wrapper stand under the key `host`. Wrapper and host get
    the same `draws` and `tenants`, each if its constructor has a parameter of that name.

    Raises:
        ConfigError: unknown name or option, brackets where there is nothing to wrap, or a file that
            holds no such policy.
        PolicyError: its lease is no number of ticks.
    """
    if name.count("(") > MOST_WRAPPERS:
        raise ConfigError(f"policy {shortened(name)}: more than {MOST_WRAPPERS} wrappers")
    outer, bracket, inner = name.partition("(")
    entry = _entry(outer.strip())
    if entry.wraps != bool(bracket) or (bracket and not inner.endswith(")")):
        raise ConfigError(f"policy {name!r}: write {entry.usage}")
    if not isinstance(options, Mapping):
        raise ConfigError(
            f"options of policy {name!r}: got {shortened(options)}, expected KEY=VALUE"
        )
    chosen = {**entry.preset, **options}
    host_name = inner[:-1] if entry.wraps else entry.host
    host = (open_policy(host_name, chosen.pop("host", {}), draws, tenants),) if host_name else ()
    try:
        return _made(entry, chosen, host, {"draws": draws, "tenants": tenants})
    except ArtistError:
        raise
    except Exception as cause:
        if is_in_a_file(entry.id):
            raise cannot_be_made(cause, entry.id) from cause
        raise


def _entry(name: str) -> Entry:
    """The row of the table, or of a policy in a file of the user."""
    return entry_in_file(name) if is_in_a_file(name) else POLICIES[name]


def _made(
    entry: Entry, chosen: Mapping[str, Any], host: tuple[Policy, ...], offered: Mapping[str, Any]
) -> Policy:
    """The policy of a row. A class without `Options` has none, and is made without them."""
    implementation = entry.load()
    model = getattr(implementation, "Options", None)
    _refuse_former_options(chosen, model or Options)
    settings = validate(chosen, model or Options, f"policy {entry.id}")
    asked = signature(implementation).parameters
    taken = {name: value for name, value in offered.items() if name in asked}
    policy: Policy = implementation(*((settings,) if model else ()), *host, **taken)
    if not hasattr(policy, "lease"):
        raise ConfigError(
            f"policy {entry.id} has no lease; derive it from artist.contract.BasePolicy"
        )
    check_lease(policy, entry.id)
    return policy


def _refuse_former_options(chosen: Mapping[str, Any], options: type[Options]) -> None:
    """Say what has become of options that policies once had."""
    if "seed" in chosen and "seed" not in options.model_fields:
        raise ConfigError(
            f"policy.seed={shortened(chosen['seed'])}: policies draw from the scenario's seed and "
            "permutation; set seed or permutation instead"
        )


def build_trace(scenario: Scenario, tree: ClusterTree) -> Trace:
    """The jobs to run, checked against cluster and catalogue."""
    trace = read_trace_of(scenario)
    if scenario.jobs is not None:
        trace = head(trace, scenario.jobs)
    trace = with_arrivals(trace, scenario.arrivals, scenario.seed)
    if scenario.restart_s is not None:
        # A job's own cost comes first; traces say 0 where they say nothing.
        jobs = tuple(
            job if job.restart_s else replace(job, restart_s=scenario.restart_s)
            for job in trace.jobs
        )
        trace = replace(trace, jobs=jobs)
    check_sizes(trace, tree.gpus)
    check_tenants(trace, load_tenants(scenario.tenants))
    if scenario.backend != "none":
        check_models(trace)
    return permuted(trace, scenario.permutation)


def read_trace_of(scenario: Scenario) -> Trace:
    """The scenario's trace as it is in its file."""
    given = Given(*(getattr(scenario, name) for name in ABOUT_THE_TRACE))
    return open_trace(scenario.trace, scenario.seed, given=given)


def permuted(trace: Trace, permutation: int) -> Trace:
    """The same jobs, those that arrive together in another order; 0 keeps the trace's."""
    if not permutation:
        return trace
    draws = stream(permutation, "arrival-order").random(len(trace.jobs)).tolist()
    ranked = sorted(range(len(draws)), key=lambda i: (trace.jobs[i].arrival_s, draws[i]))
    jobs = tuple(trace.jobs[i] for i in ranked)
    return replace(trace, jobs=jobs, numbers=[trace.numbers[i] for i in ranked])


def _check_kinds(scenario: Scenario, tree: ClusterTree, policy: Policy, trace: Trace) -> None:
    """Refuse quotas that do not fit the cluster, and kinds of GPUs that nobody would heed.

    Raises:
        ConfigError: a quota is too large or of an unknown kind, or the policy reads no kinds.
        TraceError: a job accepts no kind of the cluster, or too few GPUs.
    """
    tenants = load_tenants(scenario.tenants)
    job = next((job for job in trace.jobs if job.gpu_kinds), None)
    quota = next((name for name, tenant in tenants.items() if tenant.by_kind is not None), None)
    by_kind = gpus_by_kind(tree) if job is not None or quota is not None else {}
    check_quotas(tenants, tree.gpus, by_kind)
    if job is None and quota is None:
        return
    check_kinds(trace, by_kind)
    if not getattr(policy, "reads_gpu_kinds", False):
        what = f"job {job.id!r} accepts" if job is not None else f"tenant {quota!r} has a quota of"
        names = ", ".join(job.gpu_kinds if job is not None else tenants[quota or ""].by_kind or ())
        raise ConfigError(
            f"policy {scenario.policy} reads no kinds of GPUs, but {what} {names}; choose mast or "
            "federated, or leave the kinds out"
        )


def build_latency(
    scenario: Scenario,
    fabric: Fabric,
    calibration: Calibration | None = None,
    store: EstimateStore | None = None,
) -> LatencyService | NoCommunication:
    """Who answers the engine's questions about speed."""
    if scenario.backend == "none":
        return NoCommunication()
    from artist.estimates.calibration import CalibratedModels
    from artist.estimates.latency_service import LatencyService

    backend = open_backend(scenario.backend, scenario.fallback)
    asked = with_system(fabric, _system(scenario))
    models = CalibratedModels(calibration)
    return LatencyService(asked, backend, models.workload, store, models.constant_share)


def _system(scenario: Scenario) -> Mapping[str, Any]:
    """The scenario's changes of the fabric's system settings.

    A recorded table holds the shapes that its maker asked about, so an uneven one is looked up as
    it is unless the scenario says otherwise.

    Raises:
        ConfigError: a setting stands in two places.
    """
    rules = {"uneven": scenario.uneven, "collectives": scenario.collectives}
    chosen = {key: value for key, value in rules.items() if value is not None}
    twice = sorted(chosen.keys() & scenario.system.keys())
    if twice:
        raise ConfigError(f"{twice[0]} and system.{twice[0]} are both set; give one of them")
    recorded = scenario.backend.partition(":")[0] == "recorded"
    default = {"uneven": "flat"} if recorded else {}
    return {**default, **scenario.system, **chosen}


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
