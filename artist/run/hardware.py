"""From a scenario to its hardware: fabric, cluster, and the service that estimates iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from artist.cluster.fabric import Fabric, load_fabric, with_system
from artist.cluster.fabric_options import with_options
from artist.cluster.tree import ONE_KIND, ClusterTree, nested
from artist.config import Scenario
from artist.errors import ConfigError, shortened
from artist.estimates.backends import BACKENDS, NoCommunication

if TYPE_CHECKING:
    from artist.cluster.cluster_file import Cluster
    from artist.estimates.calibration import CalibratedModels, Calibration
    from artist.estimates.latency_service import EstimateStore, LatencyService
    from artist.estimates.model_steps import ModelSteps
    from artist.estimates.query import LatencyBackend
    from artist.estimates.speeds import SpeedsOfRun
    from artist.trace.native.trace import Trace
    from artist.workload.layers import Workload


def build_fabric(scenario: Scenario) -> Fabric:
    """The scenario's fabric, with the levels of its cluster file and the scenario's changes.

    Raises:
        ConfigError: unknown name, bad file, or a change of a level that the fabric lacks.
    """
    cluster = cluster_of(scenario)
    if cluster is None:
        return with_options(load_fabric(scenario.fabric), scenario.fabric_options)
    from artist.cluster.cluster_links import fabric_of_cluster

    try:
        named = load_fabric(scenario.own_fabric or cluster.file.fabric or scenario.fabric)
    except ConfigError as cause:
        if scenario.own_fabric is not None or cluster.file.fabric is None:
            raise
        raise ConfigError(
            f"cluster {shortened(scenario.cluster)}: 'fabric': {cause}; paths count from the "
            "current folder, and --fabric takes another one"
        ) from cause
    fabric = fabric_of_cluster(cluster.file, named)
    return with_options(fabric, scenario.fabric_options, cluster.file.name)


def kinds_of(scenario: Scenario) -> frozenset[str]:
    """The kinds of GPUs that the machines of the scenario's cluster file state."""
    cluster = cluster_of(scenario)
    return frozenset() if cluster is None else frozenset({*cluster.kinds} - {ONE_KIND})


def kinds_of_compute_times(scenario: Scenario) -> frozenset[str]:
    """The kinds of GPUs for which models' compute times hold, before speeds scale them.

    Without speeds these are the kinds of the cluster file, with speeds their reference kind.
    """
    if scenario.speeds is None:
        return kinds_of(scenario)
    from artist.estimates.speeds import load_speeds

    return frozenset({load_speeds(scenario.speeds).reference})


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


def machine_gpus(fabric: Fabric, given: int | None) -> int:
    """GPUs of a machine without a cluster: as given, as the fabric says, or the default."""
    described = fabric.machine.gpus if fabric.machine is not None else Scenario().gpus_per_machine
    return given or described


def build_calibration(scenario: Scenario, fabric: Fabric) -> Calibration | None:
    """The calibration of a run; None with `auto` and a backend whose answers it could not scale.

    Raises:
        ConfigError: unknown name or bad file.
    """
    kind = scenario.backend.partition(":")[0]
    # A recorded table holds answers from elsewhere, for other compute times.
    if scenario.calibration == "auto" and kind in ("none", "recorded"):
        return None
    from artist.estimates.calibration import choose_calibration

    return choose_calibration(scenario.calibration, fabric)


def build_latency(
    scenario: Scenario,
    fabric: Fabric,
    calibration: Calibration | None = None,
    store: EstimateStore | None = None,
    *,
    scales: bool = False,
) -> LatencyService | NoCommunication:
    """The service that estimates iterations for the engine.

    `scales`: compute times of one model may differ, because some machines are slow or because jobs
    with goodput parameters send on links.

    Raises:
        ConfigError: compute times would be scaled, but the backend is a recorded table.
    """
    if scenario.backend == "none":
        return NoCommunication()
    from artist.estimates.latency_service import LatencyService

    calibrated = models_of_run(scenario, fabric, calibration)
    workload_of: Callable[[str], Workload] = WithGraphs(calibrated.workload)
    constant_share: Callable[[str], float] = calibrated.constant_share
    absolute = scenario.communication == "absolute"
    if scenario.speeds is not None or absolute or scales:
        if scenario.backend.partition(":")[0] == "recorded":
            names = ("communication",) if absolute else ("speeds", "failures", "goodput")
            name = next(name for name in names if getattr(scenario, name) is not None)
            raise ConfigError(
                f"{name} {shortened(getattr(scenario, name))}: a "
                "recorded table holds communication for compute times at one speed of GPUs; "
                f"use --backend analytical or none, or leave {name} out"
            )
        from artist.estimates.speeds import ScaledModels

        scaled = ScaledModels(workload_of, constant_share)
        workload_of, constant_share = scaled.workload, scaled.constant_share
    backend = open_backend(scenario.backend, scenario.fallback)
    return LatencyService(
        asked_fabric(scenario, fabric), backend, workload_of, store, constant_share
    )


def models_of_run(
    scenario: Scenario, fabric: Fabric, calibration: Calibration | None
) -> CalibratedModels:
    """The models of a run, on the GPUs for which their compute times hold."""
    from artist.estimates.calibration import CalibratedModels

    return CalibratedModels.on(fabric, calibration, kinds_of_compute_times(scenario))


@dataclass(frozen=True, slots=True)
class WithGraphs:
    """Workloads of models and of folders, `chakra:DIR`. A class, so that it pickles."""

    of_model: Callable[[str], Workload]

    def __call__(self, model: str) -> Workload:
        """The workload of a name."""
        from artist.workload.models import is_graph

        if not is_graph(model):
            return self.of_model(model)
        from artist.astra.files.chakra_folder import graph_of_model, workload_of_graph

        return workload_of_graph(graph_of_model(model))


def build_speeds(scenario: Scenario, tree: ClusterTree, trace: Trace) -> SpeedsOfRun | None:
    """How fast the trace's jobs are on the cluster's kinds of GPUs; None without a table of speeds.

    Raises:
        ConfigError: unknown name, a bad file, or a speed that is missing.
    """
    if scenario.speeds is None:
        return None
    from artist.estimates.speeds import SpeedsOfRun, load_speeds

    speeds = SpeedsOfRun(load_speeds(scenario.speeds), tree)
    speeds.check(trace.jobs, trace.place)
    return speeds


def build_model_steps(
    scenario: Scenario, fabric: Fabric, calibration: Calibration | None, trace: Trace
) -> ModelSteps | None:
    """The compute times of models if jobs send the bytes of their models (`absolute`), else None.

    Raises:
        ConfigError: the trace has run times, whose steps were derived from the models.
    """
    if scenario.communication == "proportional" or scenario.backend == "none":
        return None
    if trace.recorded:
        raise ConfigError(
            f"communication 'absolute': trace {trace.name} has run times, and its steps were "
            "derived from the models; leave communication out, or state compute_s"
        )
    from artist.estimates.model_steps import ModelSteps

    models = models_of_run(scenario, fabric, calibration)
    return ModelSteps(WithGraphs(models.workload), models.scales)


def asked_fabric(scenario: Scenario, fabric: Fabric) -> Fabric:
    """The fabric with the scenario's settings of what ASTRA-sim is asked.

    Raises:
        ConfigError: a setting is given twice, or cannot be asked of ASTRA-sim.
    """
    return with_system(fabric, _system(scenario))


def _system(scenario: Scenario) -> Mapping[str, Any]:
    """The scenario's changes of the fabric's system settings.

    A recorded table holds the shapes that its maker asked about. So an uneven shape is looked up
    unchanged, unless the scenario says otherwise.
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
    """A latency backend by name, `KIND[:ARGUMENT]`. It also answers sharded and divided models.

    Raises:
        ConfigError: unknown name, or a fallback for a backend that always answers.
        BackendError: its program, engine or image is missing.
    """
    from artist.estimates.divided.layer_wise import LayerwiseBackend

    kind, _, argument = name.partition(":")
    if fallback is not None and kind != "recorded":
        raise ConfigError(f"fallback {fallback!r}: only backend recorded:FILE can need one")
    second = open_backend(fallback) if fallback is not None else None
    backend: LatencyBackend = BACKENDS[kind].load()(argument, second)
    return LayerwiseBackend(backend)
