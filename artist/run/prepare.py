"""From a scenario to a simulator and a policy, checked. Nothing is simulated yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artist.cluster.fabric import Fabric
from artist.cluster.kinds import prices_of
from artist.cluster.tree import ClusterTree
from artist.cluster.visiting_order import VisitingOrder
from artist.config import Scenario
from artist.contract import EventSource, Policy, RateFunction
from artist.engine.simulator import Simulator
from artist.errors import ConfigError
from artist.estimates.backends import NoCommunication
from artist.network.rates.interference import InterferedRates, open_pairs
from artist.network.rates.network_of_run import NetworkOfRun
from artist.network.rates.rate_functions import open_contention
from artist.results.named_files import file_digests
from artist.run.hardware import (
    build_calibration,
    build_cluster,
    build_fabric,
    build_latency,
    build_model_steps,
    build_speeds,
    cluster_of,
    models_of_run,
)
from artist.run.measured import check_measured
from artist.run.policies import build_policy
from artist.run.traces import (
    build_trace,
    check_gpu_kinds,
    check_hosts,
    check_mig,
    check_shares,
    check_timings,
    cut_by,
    elastic,
    graph_digests,
)
from artist.trace.native.trace import Trace

if TYPE_CHECKING:
    from artist.data.data_of_run import Data
    from artist.data.gate import DataGate
    from artist.estimates.calibration import Calibration
    from artist.estimates.latency_service import EstimateStore, LatencyService
    from artist.failures.failures_of_run import FailuresOfRun


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
    failures: FailuresOfRun | None = None
    """What fails, and when jobs write checkpoints; None if neither."""
    gate: DataGate | None = None
    """The gate around the policy in a run with data; None in other runs."""
    data: Data | None = None
    """The tables of a run with data; None in other runs."""


def prepare(
    scenario: Scenario,
    *,
    check: bool = False,
    store: EstimateStore | None = None,
    events: EventSource | None = None,
) -> Prepared:
    """Turn a scenario's names into a simulator and a policy.

    `events` come from outside the trace, in place of the scenario's failures. They are not part of
    the scenario, so the result does not mention them, and the share of fragmented GPUs counts
    withdrawn GPUs as free.

    Raises:
        ArtistError: whatever is wrong with the scenario.
    """
    fabric = build_fabric(scenario)
    tree = build_cluster(scenario, fabric)
    if scenario.prices is not None:
        prices_of(tree, scenario.prices)
    files = file_digests(scenario)
    policy = build_policy(scenario)
    calibration = build_calibration(scenario, fabric)
    trace = cut_by(policy, build_trace(scenario, tree))
    files = {**files, **graph_digests(scenario, trace)}
    if scenario.backend != "none":
        check_timings(models_of_run(scenario, fabric, calibration), trace)
    check_measured(scenario, trace)
    check_gpu_kinds(scenario, tree, policy, trace)
    in_shares = check_shares(scenario, policy, trace)
    check_hosts(scenario, tree, policy, trace)
    check_mig(tree, trace)
    trace = elastic(scenario, tree, trace)
    failures = build_failures(scenario, tree, trace)
    scales = (failures is not None and failures.slows) or (
        scenario.goodput is not None and scenario.contention != "none"
    )
    estimates = build_latency(scenario, fabric, calibration, store, scales=scales)
    speeds = build_speeds(scenario, tree, trace)
    model_steps = build_model_steps(scenario, fabric, calibration, trace)
    jobs_per_gpu = getattr(policy, "jobs_per_gpu", 1)
    sharing = None
    if jobs_per_gpu > 1 or scenario.interference != "time-slicing":
        sharing = open_pairs(scenario.interference, tree, 2 if in_shares else jobs_per_gpu)
    network = NetworkOfRun(
        tree,
        fabric,
        estimates,
        scenario.seed,
        speeds=speeds,
        model_steps=model_steps,
        sharing=sharing,
    )
    rates: RateFunction = open_contention(scenario.contention, scenario.contention_options, network)
    if failures is not None:
        rates = failures.rates(rates, network.alone.now)
    data = build_data(scenario, tree, trace)
    gate = None
    if data is not None:
        policy = gate = data.gate(policy)
        rates = data.rates(rates)
    if sharing is not None:
        rates = InterferedRates(rates, sharing)
    if events is None and failures is not None:
        events = failures.events(scenario.seed)
        policy = failures.respecting_notices(policy)
    simulator = Simulator(
        tree,
        trace.jobs,
        rates,
        lease=policy.lease,
        visiting_order=VisitingOrder(tree, scenario.permutation),
        events=events,
        checkpoints=None if failures is None else failures.checkpoints,
        jobs_per_gpu=jobs_per_gpu,
        check=check,
    )
    return Prepared(
        scenario=scenario,
        fabric=fabric,
        calibration=calibration,
        trace=trace,
        policy=policy,
        estimates=estimates,
        network=network,
        simulator=simulator,
        files=files,
        failures=failures,
        gate=gate,
        data=data,
    )


def build_data(scenario: Scenario, tree: ClusterTree, trace: Trace) -> Data | None:
    """The data tables that jobs read, and where they are; None without a data file.

    Raises:
        ConfigError: a cluster without regions, or a bad option.
        TraceError: a bad data file, or a job that it does not fit.
    """
    if scenario.data is None:
        if scenario.data_options:
            raise ConfigError("data options are given, but no data file; name one with data=FILE")
        return None
    from artist.data.data_of_run import open_data

    cluster = cluster_of(scenario)
    return open_data(scenario.data, scenario.data_options, cluster, tree, trace.jobs)


def build_failures(scenario: Scenario, tree: ClusterTree, trace: Trace) -> FailuresOfRun | None:
    """What fails in a run, and when its jobs write checkpoints; None if neither.

    Raises:
        ConfigError: unknown name, a bad file, a unit that the cluster lacks, or a cost of
            checkpoints that no job writes.
    """
    asked = scenario.failures != "none" or scenario.checkpoint is not None
    if not asked and all(job.checkpoint_interval_s is None for job in trace.jobs):
        return None
    from artist.failures.failures_of_run import open_failures

    failures = open_failures(scenario.failures, scenario.checkpoint, tree)
    options, own = failures.checkpoint, any(job.checkpoint_interval_s for job in trace.jobs)
    if options is not None and options.interval_s is None and not own:
        raise ConfigError(
            f"checkpoint.cost_s={options.cost_s or 0:g}: nothing says how often jobs write "
            "checkpoints; add --set checkpoint.interval_s=3600, or auto"
        )
    return failures
