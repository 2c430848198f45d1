"""From a scenario to the jobs that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from artist.cluster.host_resources import GPU_MEMORY, RESOURCES, FreeHosts
from artist.cluster.mig import PROFILES
from artist.cluster.tree import ClusterTree, gpus_by_kind
from artist.config import ABOUT_THE_TRACE, Scenario
from artist.contract import Policy
from artist.errors import ConfigError, TraceError, shortened
from artist.rng import stream
from artist.run.hardware import build_fabric, models_of_run
from artist.trace.arrivals import with_arrivals
from artist.trace.divided import trained_as, with_axes
from artist.trace.first_start import AS_RESTART, with_first_starts
from artist.trace.named import Given, open_trace
from artist.trace.native.trace import (
    Trace,
    check_kinds,
    check_models,
    check_sizes,
    check_tenants,
    head,
)
from artist.trace.native.untimed import untimed
from artist.units import GPU_MILLI, counted
from artist.workload.job import Job
from artist.workload.tenants import check_quotas, load_tenants

if TYPE_CHECKING:
    from artist.estimates.calibration import CalibratedModels

ABOUT_COMPUTE_TIMES = (
    *("fabric", "cluster", "backend", "calibration", "speeds", "goodput"),
    *("trained_as", "parallelism"),
)
"""Settings that decide compute times that the trace does not state, and communication."""

READ_HOSTS = ("dally", "tiresias", "las", "easy")
"""Some policies that place jobs where machines have the cores and memory, for messages."""

OBEY_KINDS = ("fifo", "las", "tiresias", "easy", "dally", "gavel", "sia", "mast")
"""Some policies that give jobs GPUs of the kinds that they accept, for messages."""

READ_SHARES = ("fifo", "las", "srtf", "tiresias", "easy", "dally")
"""Some policies that give jobs shares of GPUs, for messages."""


def build_trace(scenario: Scenario, tree: ClusterTree) -> Trace:
    """The jobs to run, checked against cluster and catalogue."""
    trace = read_trace_of(scenario)
    if scenario.jobs is not None:
        trace = head(trace, scenario.jobs)
    trace = with_arrivals(trace, scenario.arrivals, scenario.seed)
    if scenario.restart_s is not None:
        # A job's own cost wins. Traces have 0 where they state none.
        jobs = tuple(
            job if job.restart_s else replace(job, restart_s=scenario.restart_s)
            for job in trace.jobs
        )
        trace = replace(trace, jobs=jobs)
    if scenario.first_start_s is not None:
        _check_first_start(scenario, trace)
        trace = replace(trace, jobs=with_first_starts(trace.jobs, scenario.first_start_s))
    sizes = "--racks, --machines-per-rack" if scenario.tree is None else "tree"
    check_sizes(trace, tree.gpus, scenario.cluster or sizes)
    check_tenants(trace, load_tenants(scenario.tenants))
    if scenario.trained_as is not None:
        _check_trained_as(scenario, scenario.trained_as)
    if scenario.backend != "none":
        check_models(trace)
        if scenario.trained_as is not None:
            trace = trained_as(trace, scenario.trained_as)
        trace = with_axes(trace, scenario.parallelism)
    if untimed(trace):
        trace = _timed(scenario, trace)
    return permuted(trace, scenario.permutation)


def _check_first_start(scenario: Scenario, trace: Trace) -> None:
    """Refuse first starts that cost as much as restarts if no cost of restarts is given.

    `restart_s=0` is such a cost.
    """
    if scenario.first_start_s != AS_RESTART or scenario.restart_s is not None:
        return
    if not any(job.restart_s for job in trace.jobs):
        raise ConfigError(
            f"first_start_s {AS_RESTART}: no job of the trace has a cost of a restart; set "
            "restart_s to it, or first_start_s to seconds"
        )


def _timed(scenario: Scenario, trace: Trace) -> Trace:
    """The trace with the catalogue's compute times where it states none.

    They hold for the GPUs of the fabric or cluster file, or for the reference kind of the speeds.
    """
    from artist.estimates.calibration import choose_calibration
    from artist.trace.compute_times import with_compute_times

    fabric = build_fabric(scenario)
    # Not `build_calibration`, which gives none for backends that answer nothing about models.
    calibration = choose_calibration(scenario.calibration, fabric)
    models, place = models_of_run(scenario, fabric, calibration), f", fabric {fabric.name}"
    if scenario.backend != "none":
        return with_compute_times(trace, models, place)
    # With backend `none`, models are not divided yet, and timed jobs may have unknown models.
    at = untimed(trace)
    asked = replace(
        trace, jobs=tuple(trace.jobs[i] for i in at), numbers=[trace.numbers[i] for i in at]
    )
    timed = with_compute_times(with_axes(asked, scenario.parallelism), models, place)
    jobs = list(trace.jobs)
    for index, job in zip(at, timed.jobs, strict=True):
        jobs[index] = replace(jobs[index], compute_s=job.compute_s)
    return replace(trace, jobs=tuple(jobs), filled=timed.filled)


def _check_trained_as(scenario: Scenario, settings: str) -> None:
    """Refuse settings of models that something else in the scenario makes useless."""
    contrary = ""
    if scenario.backend == "none":
        contrary = "backend none asks nothing about models"
    elif scenario.goodput is not None:
        contrary = f"goodput {shortened(scenario.goodput)} says how models are trained"
    if contrary:
        raise ConfigError(f"trained_as {shortened(settings)}: {contrary}; leave one of the two out")


def read_trace_of(scenario: Scenario) -> Trace:
    """The scenario's trace as it is in its file."""
    given = Given(*(getattr(scenario, name) for name in ABOUT_THE_TRACE))
    return open_trace(scenario.trace, scenario.seed, given=given)


def permuted(trace: Trace, permutation: int) -> Trace:
    """The trace with jobs of equal arrival times in another order; 0 keeps the trace's order."""
    if not permutation:
        return trace
    draws = stream(permutation, "arrival-order").random(len(trace.jobs)).tolist()
    ranked = sorted(range(len(draws)), key=lambda i: (trace.jobs[i].arrival_s, draws[i]))
    jobs = tuple(trace.jobs[i] for i in ranked)
    return replace(trace, jobs=jobs, numbers=[trace.numbers[i] for i in ranked])


def cut_by(policy: Policy, trace: Trace) -> Trace:
    """The trace with jobs cut where the policy kills them at a limit (`Slurm.killed_at_limit`)."""
    cut = getattr(policy, "killed_at_limit", None)
    if cut is None:
        return trace
    jobs = tuple(cut(job) for job in trace.jobs)
    killed = sum(job is not before for job, before in zip(jobs, trace.jobs, strict=True))
    if not killed:
        return trace
    note = (
        f"run time (cut at the time limit, where the policy kills jobs): {counted(killed, 'job')}"
    )
    return replace(trace, jobs=jobs, filled=(*trace.filled, note))


def check_gpu_kinds(scenario: Scenario, tree: ClusterTree, policy: Policy, trace: Trace) -> None:
    """Refuse quotas that do not fit the cluster, and kinds of GPUs that the policy would ignore.

    Raises:
        ConfigError: a quota is too large or of an unknown kind, or the policy ignores the kinds
            that jobs accept, or quotas by kind.
        TraceError: a job accepts no kind of the cluster, or too few GPUs.
    """
    tenants = load_tenants(scenario.tenants)
    job = next((job for job in trace.jobs if job.gpu_kinds), None)
    quota = next((name for name, tenant in tenants.items() if tenant.by_kind is not None), None)
    by_kind = gpus_by_kind(tree) if job is not None or quota is not None else {}
    check_quotas(tenants, tree.gpus, by_kind)
    if job is None and quota is None:
        return
    reads = getattr(policy, "reads_gpu_kinds", False)
    check_kinds(trace, by_kind, whole=not reads)
    if job is not None and not (reads or getattr(policy, "obeys_gpu_kinds", False)):
        remedy = ", let your own keep to them (obeys_gpu_kinds, docs/policy-reference.md)"
        own = remedy if ":" in scenario.policy else ""
        raise ConfigError(
            f"policy {scenario.policy} ignores kinds of GPUs, but job {job.id!r} accepts "
            f"{', '.join(job.gpu_kinds)}; choose {', '.join(OBEY_KINDS)}{own}, or leave the kinds "
            "out"
        )
    if quota is not None and not (reads and getattr(policy, "has_quotas", False)):
        raise ConfigError(
            f"policy {scenario.policy} keeps no quotas by kind of GPUs, but tenant {quota!r} has a "
            f"quota of {', '.join(tenants[quota].by_kind or ())}; choose mast or federated, or "
            "leave the kinds out"
        )


def check_hosts(scenario: Scenario, tree: ClusterTree, policy: Policy, trace: Trace) -> None:
    """Refuse jobs for which no machines have enough, and scenarios that look only at GPUs.

    Raises:
        TraceError: the empty cluster has too few CPU cores or too little memory for a job.
        ConfigError: the policy or a part of the scenario ignores CPU cores and memory.
    """
    idle = None if tree.hosts is None else FreeHosts.of_idle(tree)
    states = (job for job in trace.jobs if job.cpu_milli or job.memory_mib or job.gpu_memory_mib)
    first = next(states, None)
    if idle is None or first is None:
        return
    remedy = "or leave cpu_cores, memory_gib and gpu_memory_gib out of the cluster file"
    shares = getattr(policy, "jobs_per_gpu", 1) > 1
    if shares or not getattr(policy, "reads_hosts", False):
        looks = "packs jobs by" if shares else "looks at"
        looks = "moves jobs by" if hasattr(policy, "host") else looks
        raise ConfigError(
            f"policy {scenario.policy} {looks} GPUs only, but job {first.id!r} needs "
            f"{_host_words(first)}, and machines state theirs; choose {', '.join(READ_HOSTS)}, "
            f"{remedy}"
        )
    if scenario.data is not None:
        raise ConfigError(
            f"data {shortened(scenario.data)} sends jobs to GPUs only, but job {first.id!r} needs "
            f"{_host_words(first)}, and machines state theirs; leave data out, {remedy}"
        )
    for index, job in enumerate(trace.jobs):
        if idle.tree_for(job).gpus < job.gpus:
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} needs {_host_words(job)}; of its "
                f"{counted(job.gpus, 'GPU')} the machines of the empty cluster can feed "
                f"{idle.tree_for(job).gpus}; correct {_host_columns(job)}, or the cluster file"
            )


def check_mig(tree: ClusterTree, trace: Trace) -> None:
    """Refuse MIG instances that no GPU of the cluster can have.

    Raises:
        TraceError: naming the job.
    """
    modes = set() if tree.hosts is None else {*zip(tree.hosts.mig, tree.kinds, strict=False)}
    for index, job in enumerate(trace.jobs):
        if job.mig and not any(
            mode and job.mig in PROFILES[mode] and kind in (job.gpu_kinds or (kind,))
            for mode, kind in modes
        ):
            of_it = "that it accepts" if job.gpu_kinds else "of the cluster"
            able = " or ".join(mode for mode, profiles in PROFILES.items() if job.mig in profiles)
            raise TraceError(
                f"{trace.place(index)}: job {job.id!r} asks for a MIG instance {job.mig}, which no "
                f"GPU {of_it} can have; give machines mig: {able} in the cluster file, "
                "or correct mig"
            )


def check_shares(scenario: Scenario, policy: Policy, trace: Trace) -> bool:
    """Whether jobs ask for shares of GPUs.

    Raises:
        ConfigError: they do, and the policy or a part of the scenario only knows whole GPUs.
    """
    first = next((job for job in trace.jobs if job.gpu_milli < GPU_MILLI or job.mig), None)
    if first is None:
        return False
    part = f"a MIG instance {first.mig}" if first.mig else f"{first.gpu_share:g} of a GPU"
    asks = f"job {first.id!r} asks for {part}"
    if not getattr(policy, "reads_shares", False):
        raise ConfigError(
            f"policy {scenario.policy} hands out whole GPUs only, but {asks}; choose "
            f"{', '.join(READ_SHARES)}, or leave {'mig' if first.mig else 'gpu_share'} out"
        )
    for setting in ("data", "goodput"):
        if (value := getattr(scenario, setting)) is not None:
            raise ConfigError(
                f"{setting} {shortened(value)} is for jobs on whole GPUs, but {asks}; leave "
                f"{setting} or {'mig' if first.mig else 'gpu_share'} out"
            )
    return True


def _host_words(job: Job) -> str:
    """What a job needs besides GPUs, such as `96 CPU cores and 512 GiB of memory`."""
    amounts = zip((job.cpu_milli, job.memory_mib), RESOURCES, strict=True)
    words = [f"{x / resource.parts:g} {resource.unit}" for x, resource in amounts if x]
    if job.gpu_memory_mib:
        words.append(f"{job.gpu_memory_gib:g} {GPU_MEMORY.unit} on each GPU")
    if job.mig:
        words.append(f"a MIG instance {job.mig}")
    if job.gpu_kinds:
        words.append(f"GPUs of kind {' or '.join(job.gpu_kinds)}")
    return " and ".join(words)


def _host_columns(job: Job) -> str:
    """The columns that state what a job needs besides GPUs."""
    names = ("cpu_cores", "memory_gib", "gpu_memory_gib", "mig", "gpu_kinds")
    return " or ".join(name for name in names if getattr(job, name))


def graph_digests(scenario: Scenario, trace: Trace) -> Mapping[str, str]:
    """SHA-256 of each folder of execution traces that is a job's model, by the model's name.

    Empty under backend `none`, which reads no folder.

    Raises:
        TraceError: a folder or a trace in it is missing; names the first job that needs it.
    """
    if scenario.backend == "none":
        return {}
    from artist.workload.models import is_graph

    models = {job.model for job in trace.jobs}
    if not any(map(is_graph, models)):
        return {}
    from artist.astra.files.chakra_folder import digest_of_model

    digests: dict[str, str] = {}
    for index, job in enumerate(trace.jobs):
        if is_graph(job.model) and job.model not in digests:
            try:
                digests[job.model] = digest_of_model(job.model)
            except TraceError as cause:
                raise TraceError(f"{trace.place(index)}: job {job.id!r}: {cause}") from cause
    return digests


def check_timings(models: CalibratedModels, trace: Trace) -> None:
    """Refuse models with `timing=fitted` on GPUs for which no timing was fitted.

    This depends on the GPUs of the run. All other settings are checked when a trace is read.

    Raises:
        TraceError: names the first such job.
    """
    known = set()
    for index, job in enumerate(trace.jobs):
        if "timing=fitted" in job.model and job.model not in known:
            known.add(job.model)
            try:
                models.workload(job.model)
            except ConfigError as cause:
                raise TraceError(f"{trace.place(index)}: job {job.id!r}: {cause}") from cause


def elastic(scenario: Scenario, tree: ClusterTree, trace: Trace) -> Trace:
    """The trace with goodput parameters for jobs whose models have some in the scenario's table.

    Raises:
        ConfigError: a bad file, a job that wants too many GPUs, or a setting whose figures are for
            compute times of the trace.
    """
    if scenario.goodput is None:
        return trace
    from artist.estimates.goodput_table import load_goodput, with_goodput

    table = load_goodput(scenario.goodput)
    by_kind = all(row.kinds for row in table.models.values())
    for setting in ("speeds", "data"):
        value = getattr(scenario, setting)
        if value is None or (setting == "speeds" and by_kind):
            continue
        remedy = ", or give each model its kinds" if setting == "speeds" else ""
        raise ConfigError(
            f"{setting} {shortened(value)}: step times of goodput {shortened(table.name)} hold "
            f"for one kind of GPUs and for jobs that read no tables; leave {setting} or goodput "
            f"out{remedy}"
        )
    kinds = tuple(gpus_by_kind(tree))
    elastic = with_goodput(trace.jobs, table, tree.gpus, trace.place, kinds, ranged=trace.ranged)
    return replace(trace, jobs=elastic)
