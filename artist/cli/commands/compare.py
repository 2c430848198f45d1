"""`artist compare`: compares policies or values of a setting; tells differences from noise."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.output import Format, note, print_heading, print_json, print_text
from artist.cli.progress_bar import bar_of_runs, counting, forecast
from artist.cli.query_options import fitted_before
from artist.cli.remarks import ABOUT, remarks

if TYPE_CHECKING:
    from collections.abc import Callable

    from artist.config import Scenario
    from artist.experiments.comparison.across import World
    from artist.experiments.comparison.comparison_result import Comparison


def compare(
    context: typer.Context,
    scenario: options.ScenarioFile = None,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Names, or FILE.py:CLASS; the first is the baseline (default: all policies).",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=A,B,...", help="Compare values of one setting; keys as in --set."
        ),
    ] = None,
    across: Annotated[
        str | None,
        typer.Option(
            metavar="fabrics|A,B,...", help="Repeat in other worlds: fabrics, or files of settings."
        ),
    ] = None,
    assumptions: Annotated[
        bool, typer.Option("--assumptions", help="Repeat with one assumption changed at a time.")
    ] = False,
    metrics: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="See: artist list metrics.")
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(help="Seeds of drawn traces; with --permutations 1 each has its own order."),
    ] = 1,
    permutations: Annotated[
        int, typer.Option(help="Orders in which machines and simultaneous arrivals are visited.")
    ] = 5,
    until: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help="Add replicates until intervals are so narrow: 2%."),
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="With --until: replicates at most (default 100).")
    ] = None,
    equivalence: Annotated[
        str, typer.Option(metavar="SHARE", help="Differences within it are no difference.")
    ] = "2%",
    workers: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    racks: options.Racks = None,
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also write a .csv or .parquet."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file of -o.")] = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare policies, or values of a setting; says which differences are more than noise."""
    chosen = options.scenario_of(context.params)
    from artist.cli.comparison_text import as_json, print_comparison
    from artist.errors import ConfigError
    from artist.experiments.comparison.compare import compare as run
    from artist.experiments.comparison.metrics import check_metrics, everyday_policies
    from artist.experiments.comparison.rows import comparison_rows
    from artist.experiments.comparison.until import BUDGET
    from artist.experiments.executors import cores
    from artist.results.table_files import check_table_file, write_table
    from artist.results.terms.chief_metrics import COMPARED, IN_WORDS

    if budget is not None and until is None:
        raise ConfigError(f"--budget {budget}: needs --until SHARE, which it ends")
    if output is not None:
        check_table_file(output, "-o", overwrite=overwrite)
    varied = _varied(vary or [])
    unasked = policies is None and not varied
    names = everyday_policies() if unasked else _listed(policies or "")
    asked = COMPARED if metrics is None else _listed(metrics)
    check_metrics(asked)
    if unasked and not quiet:
        note(f"comparing all {len(names)} policies that need no training: {', '.join(names)}")
    compare_one = partial(
        run,
        policies=names,
        vary=varied,
        seeds=seeds,
        permutations=permutations,
        metrics=asked,
        equivalence=options.share_of("--equivalence", equivalence),
        until=None if until is None else options.share_of("--until", until),
        budget=BUDGET if budget is None else budget,
        workers=workers or cores(),
        on_trace=partial(options.say_what_was_read, quiet=quiet),
    )
    with bar_of_runs(quiet=quiet) as bar, counting(bar) as show:
        on_done = show if quiet else forecast(show, workers or cores())
        if across is not None or assumptions:
            worlds = _worlds(chosen, across, assumptions=assumptions)
            variants = len(next(iter(varied.values()), names))
            runs = len(worlds) * variants * seeds * permutations
            least = "" if until is None else "at least "
            listed = ", ".join(one.label for one in worlds)
            note(f"{least}{runs:,} runs in {len(worlds)} worlds: {listed}")
            _compare_across(worlds, compare_one, on_done, output, format_, assumptions=assumptions)
            return
        comparison = compare_one(chosen, on_done=on_done)
    if output is not None:
        write_table(comparison_rows(comparison), output)
    if format_ is Format.JSON:
        print_json(as_json(comparison))
    else:
        if comparison.setting not in ABOUT:
            from artist.run.world import world

            print_heading(world(chosen))
        print_comparison(comparison, IN_WORDS if metrics is None else asked)
        if varied and comparison.setting != "policy":
            policy = names[0] if names else chosen.policy
            print_text(f"Every run has policy {policy}; only {comparison.setting} differs.")
        _print_changes(chosen, comparison.setting)
        if comparison.setting not in ABOUT:
            for remark in remarks(chosen):
                print_text(remark)


def _worlds(scenario: Scenario, across: str | None, *, assumptions: bool) -> list[World]:
    """The worlds of `--across` or `--assumptions`."""
    from artist.errors import ConfigError
    from artist.experiments.comparison.across import worlds_of
    from artist.experiments.comparison.assumptions import assumptions_of

    if across is None:
        return assumptions_of(scenario)
    if assumptions:
        raise ConfigError("--across and --assumptions: one question at a time; leave one out")
    return worlds_of(scenario, _listed(across))


def _compare_across(
    worlds: list[World],
    compare_one: Callable[..., Comparison],
    on_done: Callable[[int, int], None],
    output: Path | None,
    format_: Format,
    *,
    assumptions: bool,
) -> None:
    """Make the comparison in each world, and print where its verdicts hold, or what decides."""
    from artist.cli import across_text
    from artist.experiments.comparison.across import compare_across
    from artist.experiments.comparison.rows import comparison_rows
    from artist.results.table_files import write_table
    from artist.run.world import world

    comparisons = compare_across(
        worlds, lambda one, count: compare_one(one, on_done=count), on_done
    )
    if output is not None:
        rows = [
            {"world": label, **row}
            for label, comparison in comparisons.items()
            for row in comparison_rows(comparison)
        ]
        write_table(rows, output)
    if format_ is Format.JSON:
        as_json = across_text.assumptions_json if assumptions else across_text.across_json
        print_json(as_json(comparisons))
    elif assumptions:
        print_heading(world(worlds[0].scenario))
        across_text.print_assumptions(comparisons)
    else:
        for one in worlds:
            print_heading(f"{one.label}: {world(one.scenario)}")
        across_text.print_across(comparisons)


def _varied(texts: list[str]) -> dict[str, list[Any]]:
    """Setting -> values of `--vary`."""
    from artist.errors import ConfigError
    from artist.experiments.comparison.variants import parse_vary

    if len(texts) > 1:
        raise ConfigError(
            f"--vary {' --vary '.join(texts)}: one setting at a time; run a grid of settings with "
            "artist sweep"
        )
    return dict(parse_vary(text) for text in texts)


def _print_changes(scenario: Scenario, setting: str) -> None:
    """Say below the table what was changed of the fabric, and by which fit its models run."""
    from artist.cluster.fabric_options import changes_text
    from artist.run import build_calibration, build_fabric

    changes = changes_text(scenario.fabric_options)
    if changes:
        print_text(f"Fabric {scenario.fabric} is changed: {changes}.")
    if setting.startswith("fabric."):
        changes = ", ".join(filter(None, [changes, setting]))
    fabric = build_fabric(scenario)
    if sentence := fitted_before(build_calibration(scenario, fabric), fabric, changes):
        print_text(sentence)


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
