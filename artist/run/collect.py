"""From a simulator whose run has ended to the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from artist import __version__
from artist.cluster.fabric import Fabric
from artist.cluster.fabric_options import changes_text
from artist.cluster.kinds import prices_of, several_kinds
from artist.cluster.placement import Placement
from artist.cluster.placement_shape import shape
from artist.config import Scenario
from artist.errors import PolicyError
from artist.estimates.backends import NoCommunication
from artist.garbage_collector import many_objects
from artist.io.digests import sha256
from artist.network.rates.interference import gains
from artist.policies.lease_and_tables import tables_of
from artist.results.gpu_time import held_by_kind_s, kind_table
from artist.results.isolated_run_time import isolated_seconds
from artist.results.metrics import Additions, summarise
from artist.results.result import LazyTables, Result
from artist.results.statistics.measured_window import held_rows
from artist.results.tables import job_table, placement_table, timeline_table
from artist.results.tenant_tables import class_column, tenant_additions, whose_waits
from artist.results.terms.columns import Table
from artist.results.waiting import waits
from artist.results.waiting.stays import WaitInputs, wait_inputs
from artist.run.hardware import build_calibration, build_fabric
from artist.run.measured import measured_window, summarise_measured
from artist.run.prepare import Prepared
from artist.run.world import world_of
from artist.workload.tenants import load_tenants

if TYPE_CHECKING:
    from artist.engine.rows import Rows
    from artist.estimates.calibration import Calibration


@many_objects()
def collect(prepared: Prepared, wall_s: float, *, links: bool = False) -> Result:
    """The result of a simulator whose run has ended. `wall_s` goes into the summary.

    With `links` the result has a table of what links carried.

    Raises:
        PolicyError: some jobs have not finished, or the policy gives something other than tables.
    """
    scenario, trace, simulator = prepared.scenario, prepared.trace, prepared.simulator
    rows, tree, estimates = simulator.rows, simulator.tree, prepared.estimates
    calibration = prepared.calibration
    if len(rows.jobs) != len(trace.jobs):
        raise PolicyError(f"{scenario.policy} finished {len(rows.jobs)} of {len(trace.jobs)} jobs")
    # Counts of the simulation itself, taken before `isolated_seconds` asks for more estimates.
    work = {
        "latency_queries": estimates.queries,
        "latency_backend_calls": estimates.distinct,
        "latency_fallback_uses": estimates.fallback_uses,
    }
    store_hits = estimates.store_hits
    rates = prepared.network.alone
    contended = scenario.contention != "none"
    speeds = prepared.network.speeds
    by_kind = speeds is not None or any(job.goodput and job.goodput.kinds for job in trace.jobs)
    alone_s = isolated_seconds(trace.jobs, tree, rates.alone, by_kind=by_kind)
    jobs = job_table(rows, alone_s, contended=contended)
    failing = prepared.failures is not None
    timeline = timeline_table(rows, tree, failing=failing)
    job_ids = [job.id for job in trace.jobs]
    failures = _failure_additions(prepared)
    jobs |= failures.job_columns
    own_tables = dict(tables_of(prepared.policy, scenario.policy))
    classes = class_column(rows, own_tables.pop("starts_by_class", {}))
    tenants = load_tenants(scenario.tenants)
    queue = own_tables.get("queue", {})
    if queue and getattr(prepared.policy, "has_quotas", False):
        own_tables["queue"] = queue = whose_waits(queue, trace.jobs)
    window = measured_window(scenario)
    accounts = tenant_additions(rows, trace.jobs, jobs, tree.gpus, tenants, queue, window)
    jobs |= accounts.job_columns
    fastest = {} if speeds is None else {"least_scale": speeds.least_scale}
    of_run = summarise(
        rows,
        tree,
        jobs,
        timeline,
        len(trace.jobs),
        estimates.constant_share,
        **fastest,
        gains=gains(scenario.interference),
    )
    if window is not None:
        of_run = summarise_measured(rows, tree, jobs, timeline, of_run, window)
    summary = {
        "policy": scenario.policy,
        "trace": trace.name,
        "calibration": calibration.name if calibration else "none",
        "models_not_calibrated": " ".join(_models_not_calibrated(prepared)),
        **_fabric_changes(scenario),
        **_kinds(prepared),
        **({"contention": scenario.contention} if contended else {}),
        **of_run,
        **_gpu_cost(prepared, rows if window is None else held_rows(rows, window)),
        **failures.summary,
        **accounts.summary,
        **({} if prepared.gate is None else prepared.gate.summary()),
        **work,
        "wall_s": wall_s,
        "seed": scenario.seed,
        "artist_version": __version__,
    }
    tables: dict[str, Table] = {
        "jobs": jobs,
        "placements": {
            **placement_table(rows, tree, job_ids, _orders(prepared)),
            **failures.placement_columns,
            **classes,
        },
        "timeline": timeline,
    }
    tables.update(accounts.tables)
    if several_kinds(tree):
        tables["gpu_kinds"] = kind_table(rows, tree, of_run["makespan_s"])
    tables.update(own_tables)
    tables.update(failures.tables)
    tables.update(_tables_of_parts(prepared, links=links))
    head_blocks = getattr(prepared.policy, "head_blocks", False)
    inputs = wait_inputs(rows, tree.gpus, trace.jobs, head_blocks=head_blocks)
    return Result(
        scenario=scenario,
        summary=summary,
        tables=LazyTables(tables, _wait_tables(inputs)),
        inputs={
            "trace": trace.digest,
            **_link_digests(prepared.fabric, calibration),
            **prepared.files,
        },
        store_hits=store_hits,
        trace_filled=trace.filled,
        trace_dropped=trace.dropped,
        trace_mapped=trace.mapped,
        waited_by_cause=partial(waits.seconds_by_cause, inputs),
        world=world_of(scenario, prepared.fabric, calibration, {*prepared.simulator.tree.kinds}),
    )


def _failure_additions(prepared: Prepared) -> Additions:
    """What failures, checkpoints and slow GPUs add; nothing in a run without them."""
    if prepared.failures is None:
        return Additions()
    from artist.results.failure_tables import chosen_intervals, failure_additions, slow_additions

    rows, failures = prepared.simulator.rows, prepared.failures
    found = failure_additions(rows, failures.hazard, [job.id for job in prepared.trace.jobs])
    intervals = chosen_intervals(rows, failures.checkpoints) if failures.chooses else {}
    slow = Additions()
    if failures.slows:
        slow = slow_additions(rows, failures.slowdowns().slowest)
    return Additions(
        {**found.summary, **intervals, **slow.summary},
        {**found.job_columns, **slow.job_columns},
        {**found.placement_columns, **slow.placement_columns},
        found.tables,
    )


def _orders(prepared: Prepared) -> Mapping[tuple[int, Placement], str]:
    """By handle and placement: the order of ranks of a divided job, as in signatures (`@ORDER`)."""
    jobs, estimates = prepared.trace.jobs, prepared.estimates
    if isinstance(estimates, NoCommunication) or not any("@" in job.model for job in jobs):
        return {}
    tree, rows = prepared.simulator.tree, prepared.simulator.rows.placements
    ran = dict.fromkeys((x.handle, x.placement) for x in rows if "@" in jobs[x.handle].model)
    found = {
        (handle, placement): estimates.known_order(jobs[handle].model, shape(tree, placement))
        for handle, placement in ran
    }
    return {key: f"@{order}" for key, order in found.items() if order}


def _tables_of_parts(prepared: Prepared, *, links: bool) -> dict[str, Table]:
    """The tables of data, links and turns. Only runs that have such a part load its module."""
    rows, tree = prepared.simulator.rows, prepared.simulator.tree
    jobs, turns = prepared.trace.jobs, prepared.network.turns.taken
    tables: dict[str, Table] = {}
    if prepared.data is not None:
        from artist.results.data_tables import data_tables, plan_tables

        tables.update(data_tables(rows, tree, jobs, prepared.data))
        tables.update(plan_tables(prepared.scenario.data))
    if links:
        from artist.results.links import link_tables

        tables.update(link_tables(rows, jobs, prepared.network))
    if turns:
        from artist.results.links import turn_table

        tables["turns"] = turn_table(turns, jobs)
    return tables


def _wait_tables(inputs: WaitInputs) -> Mapping[str, Callable[[], Table]]:
    """The tables of why jobs waited, as functions, so that they are computed only when needed."""
    return {
        "wait_causes": partial(waits.cause_table, inputs),
        "waits": partial(waits.wait_table, inputs),
    }


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


def _fabric_changes(scenario: Scenario) -> Mapping[str, str]:
    """The summary's entry on changes of the fabric; empty if there are none."""
    text = changes_text(scenario.fabric_options)
    return {"fabric_changes": text} if text else {}


def _kinds(prepared: Prepared) -> Mapping[str, str]:
    """The summary's entries on kinds of GPUs: the table of speeds, and whether the policy reads
    kinds; empty if there is one kind."""
    speeds, tree = prepared.network.speeds, prepared.simulator.tree
    entries = {} if speeds is None else {"speeds": speeds.table.name}
    if several_kinds(tree):
        reads = getattr(prepared.policy, "reads_gpu_kinds", False)
        entries["reads_gpu_kinds"] = "yes" if reads else "no"
    return entries


def _gpu_cost(prepared: Prepared, rows: Rows) -> Mapping[str, float]:
    """The summary's entry on the price of GPU time; empty without prices."""
    prices, tree = prepared.scenario.prices, prepared.simulator.tree
    if prices is None:
        return {}
    price_of, held_s = prices_of(tree, prices), held_by_kind_s(rows, tree)
    return {"gpu_cost": math.fsum(held_s[kind] / 3600.0 * price_of[kind] for kind in held_s)}


def _models_not_calibrated(prepared: Prepared) -> tuple[str, ...]:
    """Models of the trace that the calibration lacks; empty without a calibration."""
    if prepared.calibration is None or prepared.scenario.backend == "none":
        return ()
    from artist.workload.models import canonical

    return prepared.calibration.lacks(canonical(job.model) for job in prepared.trace.jobs)
