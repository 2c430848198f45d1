"""`artist compare`: compares policies or values of settings; tells differences from noise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted
from artist.cli.output import Format, note, print_json
from artist.cli.progress_bar import bar_of_runs, counting, forecast
from artist.cli.progress_lines import RunTimeEstimator
from artist.errors import ArtistError, ConfigError
from artist.units import counted

if TYPE_CHECKING:
    from artist.config import Scenario
    from artist.experiments.comparison.across import Across, World
    from artist.experiments.comparison.costs import PriceFile
    from artist.experiments.comparison.runs import Runner
    from artist.experiments.executors import TimeBudget


def compare(
    context: typer.Context,
    scenario: options.ScenarioFile = None,
    policies: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...",
            help="Names, or FILE.py:CLASS; the first is the baseline (default: ten policies).",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING=A,B,...",
            help="Compare values of a setting, also x2 or +2. Given twice: all combinations.",
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
    seeds: Annotated[int, typer.Option(help="Number of seeds, for traces drawn at random.")] = 1,
    permutations: Annotated[
        int | None,
        typer.Option(
            help="Number of orders in which machines and simultaneous arrivals are visited "
            "(default 8, or 16 if that may decide a difference in the table; with several "
            "seeds, 1 each)."
        ),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|decided",
            help="Add replicates until intervals are this narrow (e.g. 2%), or until nothing "
            "is undecided.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|N",
            help="Start no run after this time (e.g. 10min) or, with --until, after N replicates.",
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Price file, to print what each GPU-hour gained costs. Every GPU is paid "
            "for, used or not.",
        ),
    ] = None,
    equivalence: Annotated[
        str, typer.Option(metavar="SHARE", help="Treat smaller differences as none.")
    ] = "2%",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes (default: all cores).")
    ] = None,
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
    measure_from_s: options.MeasureFrom = None,
    measure_until_s: options.MeasureUntil = None,
    data: options.DataName = None,
    estimates: options.Estimates = None,
    sets: options.Sets = None,
    seed: options.Seed = None,
    values: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the value of every replicate to a .csv or .parquet."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep all runs in a folder, for --resume and for reports.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Reuse complete runs.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace what --values and --out wrote before.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="Print everything.")] = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Compare policies or values of settings, and tell differences from noise."""
    if scenario is not None and policies:
        _check_commas(scenario, policies)
    chosen = options.scenario_of(context.params)
    if scenario is not None:
        options.check_names(chosen, scenario)
    from artist.cli.comparison_json import keep, told, write_rows
    from artist.cli.comparison_notes import what_a_budget_cut
    from artist.cli.comparison_text import print_whole, print_worlds
    from artist.cli.remarks import sharing, without_leases, without_tenant, without_turns
    from artist.experiments.comparison.across import Across, World, compare_across
    from artist.experiments.comparison.compare import (
        PERMUTATIONS,
        check_shares,
        replicates_by_default,
        variants_of,
    )
    from artist.experiments.comparison.compare import compare as run
    from artist.experiments.comparison.costs import check_prices, with_prices
    from artist.experiments.comparison.runs import RememberedRuns
    from artist.experiments.comparison.until import BUDGET, FIRST_LOOK
    from artist.experiments.comparison.variants import everyday_policies, partly_taken
    from artist.io.processes import cores
    from artist.results.table_files import check_table_file
    from artist.results.terms.chief_metrics import COMPARED, check_metrics

    if values is not None:
        check_table_file(values, overwrite=overwrite)
    prices = None if costs is None else _prices(costs, across, assumptions=assumptions)
    most, time_budget = _budget(budget, until)
    go_on = time_budget or (lambda: True)
    varied = _varied(vary or [])
    unasked = policies is None and not varied
    names = everyday_policies() if unasked else _listed(policies or "")
    asked = COMPARED if metrics is None else _listed(metrics)
    check_metrics(asked)
    if permutations is None and (across or assumptions):
        permutations = PERMUTATIONS if seeds == 1 else 1
    permutations, limit, most = replicates_by_default(
        seeds, permutations, _limit(until), BUDGET if budget is not None and most is None else most
    )
    _, variants = variants_of(chosen, names, varied)
    if prices is not None:
        check_prices([one.point for one in variants], prices)
    worlds = _worlds(chosen, across, names, assumptions=assumptions)
    smallest = options.share_of("--equivalence", equivalence)
    check_shares(smallest, limit)
    if not quiet:
        runs = [len(variants) * seeds * permutations]
        if limit is not None:
            runs = [len(variants) * FIRST_LOOK, len(variants) * most]
        _announce(runs, [one.scenario for one in variants], names if unasked else [], worlds)
        for sentence in partly_taken(chosen, [one.scenario.policy for one in variants]):
            note(sentence)
    make = partial(
        run,
        policies=names,
        vary=varied,
        seeds=seeds,
        permutations=permutations,
        metrics=asked,
        equivalence=smallest,
        until=limit,
        budget=most,
        on_trace=partial(options.say_what_was_read, quiet=quiet, said=set()),
    )

    def judged(runner: Runner, on_done: Callable[[int, int], None], **changed: Any) -> Across:
        made = compare_across(
            worlds or [World("", chosen)],
            lambda one, count: make(one, on_done=count, runner=runner, **changed),
            on_done,
            go_on,
        )
        if prices is None:
            return made
        return Across({"": with_prices(made.comparisons[""], prices)}, made.not_tried)

    def tell(made: Across) -> None:
        """Print the result in the form that the options ask for."""
        if format_ is Format.JSON:
            print_json(told(made, worlds, prices, assumptions=assumptions))
        elif worlds:
            print_worlds(made, worlds, assumptions=assumptions, all_=all_)
        else:
            ran = [one.scenario for one in variants]
            about = (without_tenant, sharing, without_turns, without_leases)
            remarked = [remark(ran) for remark in about]
            compared = made.comparisons[""]
            cut = what_a_budget_cut(compared, time_budget, times.longest_s)
            print_whole(
                compared, chosen, prices, remarked, cut, named=metrics is not None, all_=all_
            )

    remembered, at_once = None, workers or cores()
    times = RunTimeEstimator(at_once)
    try:
        with (
            bar_of_runs(
                quiet=quiet, foretold=None if worlds else times.foretold, budget=time_budget
            ) as bar,
            counting(bar, out) as show,
            _runner(out, at_once, go_on, resume=resume, overwrite=overwrite) as runner,
        ):
            remembered = RememberedRuns(times.watching(runner))
            most_runs = 0 if limit is None else len(variants) * most
            shown = show if quiet else forecast(show, times, at_once, most_runs, time_budget)
            made = judged(remembered, _without_reused(shown, runner))
            if out is not None:
                keep(out, told(made, worlds, prices, assumptions=assumptions), made, worlds)
    except Interrupted as interrupted:
        if remembered is not None and interrupted.is_read:
            _tell_so_far(
                partial(judged, remembered.again, lambda *_: None, on_trace=None), tell, interrupted
            )
        raise
    if values is not None:
        write_rows(made, values, worlds)
    tell(made)


def _tell_so_far(
    judged: Callable[[], Across], tell: Callable[[Across], None], interrupted: Interrupted
) -> None:
    """Print the result of the replicates that are complete, if they suffice for a verdict."""
    from artist.results.statistics.compare_values import LEAST_REPLICATES

    try:
        made = judged()
    except ArtistError:  # not one replicate is complete
        return
    count = next(iter(made.comparisons.values())).independent
    if count < LEAST_REPLICATES:
        return
    tell(made)
    interrupted.how_far += f"; the answer is from the {count} complete replicates"


def _budget(text: str | None, until: str | None) -> tuple[int | None, TimeBudget | None]:
    """What `--budget` gives: the most replicates, or a time after which no run begins."""
    from artist.experiments.executors import TimeBudget

    if text is None or not text.isdigit():
        return None, None if text is None else TimeBudget(text)
    if until is None:
        raise ConfigError(
            f"--budget {text}: a number of replicates needs --until SHARE; a time needs a unit "
            "(10min)"
        )
    return int(text), None


def _limit(until: str | None) -> float | Literal["decided"] | None:
    """What `--until` gives: a share, or "decided"."""
    if until is None:
        return None
    return "decided" if until == "decided" else options.share_of("--until", until)


def _announce(
    runs: Sequence[int],
    scenarios: Sequence[Scenario],
    unasked: Sequence[str],
    worlds: Sequence[World],
) -> None:
    """Say on stderr what will be compared, and how many runs that takes."""
    from artist.cli.remarks import slow_settings

    if unasked:
        note(f"comparing {len(unasked)} policies: {', '.join(unasked)}")
    each = " to ".join(f"{one:,}" for one in runs)
    if worlds:
        whole = " to ".join(f"{one * len(worlds):,}" for one in runs)
        listed = "; ".join(one.label for one in worlds)
        note(f"{whole} runs: {each} in each of {counted(len(worlds), 'world')}: {listed}")
    else:
        note("1 run" if each == "1" else f"{each} runs")
    for sentence in slow_settings(scenarios, runs[0] / len(scenarios)):
        note(sentence)


@contextmanager
def _runner(
    out: Path | None, workers: int, go_on: Callable[[], bool], *, resume: bool, overwrite: bool
) -> Iterator[Runner]:
    """A runner with worker processes; with `out` it also keeps the runs in that folder."""
    from artist.experiments.comparison.runs import in_memory

    if out is None:
        if resume:
            raise ConfigError("--resume needs the folder of the runs; add --out DIR")
        yield in_memory(workers, go_on)
        return
    from artist.experiments.comparison.kept_runs import kept_runs

    with kept_runs(out, sys.argv, workers, go_on, resume=resume, overwrite=overwrite) as kept:
        yield kept
        kept.write_results()
        if kept.reused:
            note(f"{out} already had {counted(kept.reused, 'run')}")


def _without_reused(show: Callable[[int, int], None], runner: Runner) -> Callable[[int, int], None]:
    """`show` without the runs that were reused. They take no time and would spoil the estimate."""

    def on_done(done: int, total: int) -> None:
        reused = getattr(runner, "reused", 0)
        show(done - reused, total - reused)

    return on_done


def _worlds(
    scenario: Scenario, across: str | None, policies: Sequence[str], *, assumptions: bool
) -> list[World]:
    """The worlds of `--across` or `--assumptions`; none if neither is given."""
    from artist.experiments.comparison.across import worlds_of
    from artist.experiments.comparison.assumptions import assumptions_of

    if across is None:
        return assumptions_of(scenario, policies) if assumptions else []
    if assumptions:
        raise ConfigError("--across and --assumptions cannot be combined; leave one out")
    return worlds_of(scenario, _listed(across))


def _prices(path: Path, across: str | None, *, assumptions: bool) -> PriceFile:
    """The price file; prices belong to one world.

    Raises:
        ConfigError: several worlds are asked for, or a bad file.
    """
    from artist.experiments.comparison.costs import load_costs

    if across or assumptions:
        raise ConfigError("--costs: prices hold for one world; leave --across or --assumptions out")
    return load_costs(path)


def _varied(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Setting -> its values, of all `--vary`."""
    from artist.experiments.comparison.variants import parse_vary

    varied: dict[str, list[Any]] = {}
    for key, values in map(parse_vary, texts):
        if key in varied:
            raise ConfigError(f"--vary {key} is given twice; give all values at once: {key}=A,B")
        varied[key] = values
    return varied


def _check_commas(scenario: Path, policies: str) -> None:
    """Refuse `--policies fifo las`, where the second policy would be read as the scenario file."""
    from artist.io.reading import exists
    from artist.policies.table import POLICIES

    if str(scenario) in {entry.id for entry in POLICIES} and not exists(scenario):
        raise ConfigError(
            f"separate the values of --policies by commas: {policies.rstrip(',')},{scenario}"
        )


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
