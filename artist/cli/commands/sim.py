"""`artist sim`: simulates one trace under one policy on one cluster."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, print_heading, print_json, print_text
from artist.cli.progress_bar import Watch
from artist.errors import ConfigError

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.estimates.latency_service import EstimateStore
    from artist.results.result import Result
    from artist.trace.native.trace import Trace


def sim(
    context: typer.Context,
    scenario: options.ScenarioFile = None,
    racks: options.Racks = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE.py:CLASS",
            help="Scheduling policy; see: artist list policies (default dally).",
        ),
    ] = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    cluster: options.ClusterName = None,
    trace: options.TraceName = None,
    columns: options.Columns = None,
    units: options.Units = None,
    models: options.Models = None,
    model_rule: options.ModelRule = None,
    arrivals: options.Arrivals = None,
    jobs: options.Jobs = None,
    fabric: options.FabricName = None,
    backend: options.Backend = None,
    calibration: options.CalibrationName = None,
    contention: options.Contention = None,
    failures: options.FailuresName = None,
    measure_from_s: options.MeasureFrom = None,
    measure_until_s: options.MeasureUntil = None,
    data: options.DataName = None,
    estimates: options.Estimates = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    out: Annotated[Path | None, typer.Option(help="Run directory to write.")] = None,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    links: Annotated[
        bool, typer.Option("--links", help="With --out: also write the traffic of links.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Verify invariants after every event (slow).")
    ] = False,
    cache: Annotated[bool, typer.Option(help="Keep estimates between runs.")] = True,
    quiet: options.Quiet = False,
) -> None:
    """Simulate a job trace on a cluster under a scheduling policy."""
    chosen = options.scenario_of(context.params)
    if scenario is not None:
        options.check_names(chosen, scenario)
    from artist.cli.remarks import (
        remarks,
        sharing,
        slow_settings,
        unread_quotas,
        without_leases,
        without_tenant,
        without_turns,
    )
    from artist.cli.summary_text import (
        chosen_intervals_sentence,
        print_sentences,
        print_summary,
        regions_sentence,
        tenants_sentence,
    )
    from artist.results.caveats import last_job_sentence, slowest_job_sentence, spreads_jobs
    from artist.results.run_directory import check_target, write_run
    from artist.results.tables import finished_jobs
    from artist.results.waiting.job_story import causes_text
    from artist.run import simulate

    if out is not None:
        check_target(out, overwrite=overwrite)
    elif links:
        raise ConfigError("--links writes tables into the run directory; add --out DIR")
    for sentence in () if quiet else slow_settings([chosen]):
        note(sentence)
    watch, earlier = Watch(quiet=quiet), _inode(out)
    recorded, steps = False, ""

    def say_what_was_read(trace: Trace, scenario: Scenario) -> None:
        nonlocal recorded, steps
        recorded, steps = trace.recorded, trace.steps
        options.say_what_was_read(trace, scenario, quiet=quiet)

    try:
        with watch, _store(chosen, cache=cache) as store:
            result = simulate(
                chosen,
                check=check,
                store=store,
                links=links and out is not None,
                on_question=watch,
                on_trace=say_what_was_read,
            )
        if out is not None:
            write_run(result, out, sys.argv, overwrite=overwrite)
        raise_if_lost()
    except Interrupted as interrupted:
        written = f"{out} is whole" if _inode(out) != earlier else "nothing was written"
        interrupted.how_far = f"{watch.how_far()}; {written}"
        raise
    summary = result.summary
    if format_ is Format.TABLE:
        from artist.run.world import busiest_model, world

        # Without a network, jobs only wait for tables that they read from other regions.
        busiest = "" if chosen.backend == "none" else busiest_model(result.tables["jobs"])
        print_heading("; ".join(filter(None, (world(chosen), busiest))))
    if format_ is Format.JSON:
        print_json(summary)
    else:
        print_summary(summary)
    if recorded:
        _say_run_to_recorded(result, printed=format_ is Format.TABLE)
    if format_ is Format.TABLE:
        print_sentences(summary, chosen)
        writes = "checkpoint_gpu_s" in summary
        if writes and (sentence := chosen_intervals_sentence(chosen, summary)):
            print_text(sentence)
        jobs_done = finished_jobs(result.tables["jobs"])
        if causes := result.waited_by_cause():
            print_text(f"All waits of the run: {causes_text(causes)}.")
        if "tenants" in result.tables and (
            sentence := tenants_sentence(result.tables["tenants"], jobs_done)
        ):
            print_text(sentence)
        if sentence := regions_sentence(chosen, result.tables["jobs"], result.tables["placements"]):
            print_text(sentence)
        stays = result.tables["placements"]
        spreads = spreads_jobs(chosen.backend, chosen.policy, chosen.policy_options)
        if sentence := last_job_sentence(jobs_done, summary["makespan_s"], stays):
            print_text(sentence)
        if sentence := slowest_job_sentence(jobs_done, stays, spreads=spreads):
            print_text(sentence)
        if steps:
            print_text(f"{steps}; iteration times are those of these steps.")
        _print_other_fabric(chosen)
        for remark in (
            *remarks(chosen),
            unread_quotas(chosen),
            without_tenant([chosen]),
            sharing([chosen]),
            without_turns([chosen]),
            without_leases([chosen]),
        ):
            if remark:
                print_text(remark)
    if out is None and not quiet and format_ is Format.TABLE:
        note("hint: --out DIR keeps jobs, placements and timeline as Parquet files")


def _store(scenario: Scenario, *, cache: bool) -> AbstractContextManager[EstimateStore | None]:
    """The disk cache of estimates. A run that asks for none does not load it."""
    if not cache or scenario.backend == "none":
        return nullcontext()
    from artist.estimates.cache import open_store

    return open_store()


def _say_run_to_recorded(result: Result, *, printed: bool) -> None:
    """Compare run times with recorded ones: below the table, or in a warning if far off."""
    from artist.results.caveats import run_to_recorded
    from artist.results.tables import finished_jobs

    compared = run_to_recorded(finished_jobs(result.tables["jobs"]))
    if compared.much:
        note(f"warning: {compared.sentence()}")
    elif printed:
        print_text(compared.sentence())


def _print_other_fabric(scenario: Scenario) -> None:
    """Say so if the calibration was fitted to other links than those of this run."""
    from artist.cli.remarks import fitted_before
    from artist.cluster.fabric_options import changes_text
    from artist.run import build_calibration, build_fabric

    fabric, changes = build_fabric(scenario), changes_text(scenario.fabric_options)
    if sentence := fitted_before(build_calibration(scenario, fabric), fabric, changes):
        print_text(sentence)


def _inode(out: Path | None) -> int | None:
    """A number that changes if the run directory is replaced; None if there is none."""
    return out.stat().st_ino if out is not None and out.exists() else None
