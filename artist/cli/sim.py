"""`artist sim`: one trace, one policy, one cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.output import Format, note, print_facts, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from artist.engine.simulator import Simulator


def sim(
    scenario: options.ScenarioFile = None,
    racks: options.Racks = None,
    policy: Annotated[str | None, typer.Option(help="See: artist list policies.")] = None,
    machines_per_rack: options.MachinesPerRack = None,
    gpus_per_machine: options.GpusPerMachine = None,
    trace: options.TraceName = None,
    arrivals: options.Arrivals = None,
    jobs: options.Jobs = None,
    fabric: options.FabricName = None,
    backend: options.Backend = None,
    calibration: options.CalibrationName = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    out: Annotated[Path | None, typer.Option(help="Write a run directory.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
    check: Annotated[bool, typer.Option("--check", help="Verify invariants.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep estimates between runs.")] = True,
    quiet: options.Quiet = False,
) -> None:
    """Simulate a job trace on a cluster under a scheduling policy."""
    from artist.config import load_scenario
    from artist.latency.cache import open_store
    from artist.run import simulate
    from artist.rundir import check_target, write_run

    flags = {
        "racks": racks,
        "policy": policy,
        "machines_per_rack": machines_per_rack,
        "gpus_per_machine": gpus_per_machine,
        "trace": trace,
        "arrivals": arrivals,
        "jobs": jobs,
        "fabric": fabric,
        "backend": backend,
        "calibration": calibration,
        "seed": seed,
    }
    chosen = load_scenario(scenario, flags, sets or [])
    if out is not None:
        check_target(out)
    with _progress(quiet) as on_question, open_store(enabled=cache) as store:
        result = simulate(chosen, check=check, store=store, on_question=on_question)
    if out is not None:
        write_run(result, out, sys.argv)
    _print(result.summary, format_)
    if out is None and not quiet and format_ is Format.TABLE:
        note("hint: --out DIR keeps jobs, placements and timeline as Parquet files")


def _print(summary: Any, format_: Format) -> None:
    if format_ is Format.JSON:
        print_json(summary)
    else:
        title = f"{summary['policy']} on {summary['trace']}, {summary['gpus']} GPUs"
        print_facts(title, summary)


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[Simulator], None] | None]:
    """A progress bar on stderr for runs longer than a second, where a person watches."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    begun = shown = time.monotonic()
    bar = Progress(
        *Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True)
    )
    task = bar.add_task("simulating")
    visible = False

    def on_question(simulator: Simulator) -> None:
        nonlocal shown, visible
        now = time.monotonic()
        if now - begun < 1 or now - shown < 0.2:
            return
        if not visible:
            bar.start()
            visible = True
        shown = now
        bar.update(
            task,
            total=simulator.jobs_total,
            completed=len(simulator.rows.jobs),
            description=(
                f"day {simulator.now / 8.64e13:,.1f}: {simulator.jobs_running} running, "
                f"{simulator.jobs_waiting} waiting"
            ),
        )

    try:
        yield on_question
    finally:
        if visible:
            bar.stop()
