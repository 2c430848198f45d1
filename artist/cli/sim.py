"""`artist sim`: one trace, one policy, one cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.output import Format, note, print_facts, print_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from artist.engine.simulator import Simulator


def sim(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="[SCENARIO.yaml]", help="A scenario file.")
    ] = None,
    racks: Annotated[int | None, typer.Option(help="Racks of the cluster (default 16).")] = None,
    policy: Annotated[str | None, typer.Option(help="See: artist list policies.")] = None,
    machines_per_rack: Annotated[int | None, typer.Option(help="Default 8.")] = None,
    gpus_per_machine: Annotated[int | None, typer.Option(help="Default 8.")] = None,
    trace: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="See: artist list traces.")
    ] = None,
    arrivals: Annotated[
        str | None, typer.Option(help="trace, batch or poisson:JOBS_PER_HOUR.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Only the first N jobs.")] = None,
    fabric: Annotated[
        str | None, typer.Option(metavar="NAME|FILE", help="See: artist list fabrics.")
    ] = None,
    backend: Annotated[str | None, typer.Option(help="See: artist list backends.")] = None,
    calibration: Annotated[str | None, typer.Option(metavar="NAME|FILE|none")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="policy.KEY, system.KEY or a setting."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything drawn (default 0).")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a run directory.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
    check: Annotated[bool, typer.Option("--check", help="Verify invariants.")] = False,
    cache: Annotated[bool, typer.Option(help="Keep estimates between runs.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no hints.")] = False,
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
