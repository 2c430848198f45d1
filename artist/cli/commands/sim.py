"""`artist sim`: simulates one trace under one policy on one cluster."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, print_facts, print_heading, print_text
from artist.cli.progress_bar import Watch
from artist.cli.query_options import fitted_before
from artist.cli.remarks import remarks

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
        typer.Option(metavar="NAME|FILE.py:CLASS", help="See: artist list policies."),
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
    data: options.DataName = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    out: Annotated[Path | None, typer.Option(help="Write a run directory.")] = None,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    links: Annotated[
        bool, typer.Option("--links", help="With --out: also write what links carried.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Verify invariants.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep estimates between runs.")] = True,
    quiet: options.Quiet = False,
) -> None:
    """Simulate a job trace on a cluster under a scheduling policy."""
    chosen = options.scenario_of(context.params)
    from artist.errors import ConfigError
    from artist.results.caveats import last_job_sentence, slowest_job_sentence
    from artist.results.run_directory import check_target, write_run
    from artist.run import simulate

    if out is not None:
        check_target(out, overwrite=overwrite)
    elif links:
        raise ConfigError("--links: what links carried is a file of a run directory; add --out DIR")
    watch, earlier = Watch(quiet=quiet), _inode(out)
    recorded = False

    def say_what_was_read(trace: Trace) -> None:
        nonlocal recorded
        recorded = trace.recorded
        options.say_what_was_read(trace, quiet=quiet)

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
    title = f"{summary['policy']} on {summary['trace']}, {summary['gpus']} GPUs"
    facts = {key: value for key, value in summary.items() if value != ""}
    if chosen.contention == "none":
        facts.pop("iteration_slowdown_mean", None)  # no job can slow another down: it says nothing
    if format_ is Format.TABLE and not quiet:
        from artist.run.world import busiest_model, world

        words = (world(chosen), busiest_model(result.tables["jobs"]))
        print_heading("; ".join(filter(None, words)))
    print_facts(title, summary if format_ is Format.JSON else facts, format_)
    if recorded:
        _say_run_to_recorded(result, printed=format_ is Format.TABLE and not quiet)
    if format_ is Format.TABLE and not quiet:
        _print_sentences(summary, chosen)
        if sentence := last_job_sentence(result.tables["jobs"], summary["makespan_s"]):
            print_text(sentence)
        if sentence := slowest_job_sentence(result.tables["jobs"], result.tables["placements"]):
            print_text(sentence)
        _print_other_fabric(chosen)
        for remark in remarks(chosen):
            print_text(remark)
    if out is None and not quiet and format_ is Format.TABLE:
        note("hint: --out DIR keeps jobs, placements and timeline as Parquet files")


def _store(scenario: Scenario, *, cache: bool) -> AbstractContextManager[EstimateStore | None]:
    """The disk cache of estimates. A run that asks for none does not load it."""
    if not cache or scenario.backend == "none":
        return nullcontext()
    from artist.estimates.cache import open_store

    return open_store()


def communicating_share(summary: Mapping[str, Any]) -> float:
    """The share of the GPU time that jobs held which communication took."""
    return float(summary["gpu_communicating_share"] / summary["gpu_allocated_share"])


def communication_sentence(summary: Mapping[str, Any]) -> str:
    """The share of the GPU time that jobs held which communication took.

    GPU time weighs a job by its GPUs; `comm_time_share` counts large and small jobs alike.
    """
    return (
        f"Of the GPU time that jobs held, {100 * communicating_share(summary):.1f} % is "
        "communication that computing does not hide, inside machines and between them "
        "(gpu_communicating_share / gpu_allocated_share). It weighs jobs by their GPUs; "
        f"comm_time_share, {summary['comm_time_share']:.3f}, does not."
    )


def _print_sentences(summary: Mapping[str, Any], scenario: Scenario) -> None:
    """Say below the table what a newcomer looks for: what communication costs, and by which fit."""
    from artist.results.caveats import FREE_PREEMPTIONS, communication_warning, preempts_freely

    print_text(communication_sentence(summary))
    if warning := communication_warning(communicating_share(summary)):
        print_text(warning)
    if preempts_freely([summary]):
        print_text(FREE_PREEMPTIONS)
    bound_s, makespan_s = summary["makespan_bound_s"], summary["makespan_s"]
    if bound_s > 0:  # jobs of nanoseconds have none
        print_text(
            f"No policy can finish these jobs in less than {bound_s:,.0f} s (lower bound); this "
            f"one took {makespan_s / bound_s:,.2f} times as long."
        )
    if "contention" in summary:
        lost_h = summary["contention_lost_job_h"]
        print_text(
            f"Jobs lost {lost_h:,.{1 if lost_h >= 10 else 3}f} job-hours to each other on links: "
            f"{100 * summary['contention_slowdown_mean']:.2f} % of a job's running time on "
            f"average, {100 * summary['contention_slowdown_p95']:.2f} % at the 95th percentile "
            f"(contention {summary['contention']})."
        )
    if "training_time_ratio_mean" in summary:
        print_text(_failures_sentence(summary))
    if lacking := summary["models_not_calibrated"]:
        print_text(_lacking(scenario, lacking.split()))


def _lacking(scenario: Scenario, models: list[str]) -> str:
    """That the calibration lacks models of the run, and how far apart this puts models."""
    from artist.calibrate.fitted_factors import lacking_sentence
    from artist.run import asked_fabric, build_calibration, build_fabric, open_backend

    fabric = build_fabric(scenario)
    calibration = build_calibration(scenario, fabric)
    assert calibration is not None  # or no model would be missing
    asked = asked_fabric(scenario, fabric)
    return lacking_sentence(models, calibration, asked, open_backend("analytical"))


def _failures_sentence(summary: Mapping[str, Any]) -> str:
    """What failures and checkpoints cost."""
    lost_h, saving_h = (summary[f"{key}_gpu_s"] / 3600 for key in ("lost", "checkpoint"))
    return (
        f"{summary['outages']:,} outages; failures stopped jobs {summary['failures']:,} times and "
        f"cost {lost_h:,.1f} GPU-hours of work, checkpoints {saving_h:,.1f}. Of the time in which "
        f"a job held GPUs, {100 * summary['training_time_ratio_mean']:.1f} % was productive on "
        "average (training_time_ratio_mean)."
    )


def _say_run_to_recorded(result: Result, *, printed: bool) -> None:
    """Say how run times compare with recorded ones: below the table, or loudly if far from them."""
    from artist.results.caveats import run_to_recorded

    compared = run_to_recorded(result.tables["jobs"])
    if compared.much:
        note(f"warning: {compared.sentence()}")
    elif printed:
        print_text(compared.sentence())


def _print_other_fabric(scenario: Scenario) -> None:
    """Say that the calibration was fitted to other links than those of this run."""
    from artist.cluster.fabric_options import changes_text
    from artist.run import build_calibration, build_fabric

    fabric, changes = build_fabric(scenario), changes_text(scenario.fabric_options)
    if sentence := fitted_before(build_calibration(scenario, fabric), fabric, changes):
        print_text(sentence)


def _inode(out: Path | None) -> int | None:
    """A number that changes when a run directory is replaced; None if there is none."""
    return out.stat().st_ino if out is not None and out.exists() else None
