"""`artist sweep`: runs all scenarios of an experiment."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.cli.progress_bar import bar_of_runs
from artist.results.terms.glossary import column_of
from artist.results.terms.number_text import DisplayUnit, short, time_unit
from artist.units import counted

if TYPE_CHECKING:
    from artist.experiments.experiment import Experiment
    from artist.experiments.sweep import SweepResult

MOST_ROWS = 20
"""Rows shown; more would push the facts off the screen."""

REPLICATES = ("seed", "permutation")
"""Settings of a grid that make replicates of a run."""


class Engine(StrEnum):
    """Value of `--engine`: where the workers are."""

    LOCAL = "local"
    RAY = "ray"


def sweep(
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT.yaml", help="Scenarios to run.")
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results.")],
    engine: Annotated[Engine, typer.Option(help="Run in local processes or on a Ray cluster.")] = (
        Engine.LOCAL
    ),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes (default: all cores).")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Reuse complete runs.")] = False,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Run all scenarios of an experiment. Each run is written when it ends, the table last."""
    from artist.cli.remarks import slow_settings
    from artist.experiments.experiment import load_experiment, runs
    from artist.experiments.ray_cluster import check_ray
    from artist.experiments.ray_worker import on_ray
    from artist.experiments.run_folder import RESULTS
    from artist.experiments.sweep import locally
    from artist.experiments.sweep import sweep as run

    if engine is Engine.RAY:
        check_ray()
    chosen = load_experiment(experiment)
    if not quiet:
        for sentence in slow_settings(run.scenario for run in runs(chosen)):
            note(sentence)
    latest: list[SweepResult] = []
    try:
        with bar_of_runs(quiet=quiet) as show:

            def on_done(so_far: SweepResult) -> None:
                raise_if_lost()
                latest[:] = [so_far]
                show(so_far.done + len(so_far.failures), so_far.total - so_far.skipped)

            result = run(
                chosen,
                out,
                sys.argv,
                workers=workers,
                resume=resume,
                overwrite=overwrite,
                on_done=on_done,
                on_trace=partial(options.say_what_was_read, quiet=quiet, said=set()),
                engine=on_ray if engine is Engine.RAY else locally,
            )
    except Interrupted as interrupted:
        interrupted.how_far = _how_far(latest[0] if latest else None, out)
        raise
    facts = {
        "experiment": chosen.name,
        "version": chosen.version,
        "runs": result.total,
        "already_done": result.skipped,
        "done": result.done,
        "failed": len(result.failures),
        **({"no_longer_in_grid": result.outside} if result.outside else {}),
        "results": str(out / RESULTS),
    }
    if format_ is Format.JSON:
        print_json({**facts, "failures": {f.id: f.error for f in result.failures}})
    else:
        in_words = {name.replace("_", " "): value for name, value in facts.items()}
        print_facts(f"{chosen.name} version {chosen.version}", in_words)
        _print_results(chosen, result, out / RESULTS)
    if result.outside:
        nouns, are, they = (
            ("run", "is", "it stays there and has")
            if result.outside == 1
            else ("runs", "are", "they stay there and have")
        )
        note(
            f"artist: {result.outside} finished {nouns} in {out / 'runs'} {are} not of this grid: "
            f"{they} no row in the results"
        )
    for failure in result.failures:
        note(f"artist: run {failure.id} failed: {failure.error}")
    if result.failures:
        raise typer.Exit(max(failure.exit_code for failure in result.failures))


def _print_results(experiment: Experiment, result: SweepResult, results: Path) -> None:
    """The settings and the chief metrics of each run, at most `MOST_ROWS` of them.

    Runs that differ only in seed and permutation share a row: their means with intervals.
    """
    from artist.results.statistics.replicate_means import are_geometric
    from artist.results.terms.chief_metrics import OF_A_SWEEP
    from artist.results.terms.glossary import find

    if not result.rows:
        return
    columns = [*experiment.grid] or ["run"]
    metrics = [name for name in OF_A_SWEEP if name in result.rows[0]]
    units = {
        name: _unit(term.unit, [float(row[name]) for row in result.rows])
        for name in metrics
        if (term := find(name))
    }
    headings = [f"{name.removesuffix('_s')} ({units[name].name})" for name in metrics]
    title, what = "results", "runs"
    rows = [
        [
            *(_cell(row.get(column_of(name))) for name in columns),
            *(short(float(row[name]) / units[name].seconds) for name in metrics),
        ]
        for row in result.rows
    ]
    settings = [name for name in columns if name not in REPLICATES]
    alike = _by_point(result.rows, settings)
    if replicated := len(alike) < len(rows):
        columns, what = settings or ["runs"], "combinations"
        geometric = {
            name: are_geometric(float(row[name]) for row in result.rows) for name in metrics
        }
        title = "results: geometric means, with 95 % intervals where there are five runs or more"
        headings = [
            heading if geometric[name] else f"{heading}, arithmetic"
            for name, heading in zip(metrics, headings, strict=True)
        ]
        rows = [
            [
                *(point or (str(len(runs)),)),
                *(
                    _mean_text(runs, name, units[name], geometric=geometric[name])
                    for name in metrics
                ),
            ]
            for point, runs in alike.items()
        ]
    print_table(title, [*columns, *headings], rows[:MOST_ROWS])
    if len(rows) > MOST_ROWS:
        print_text(
            f"The first {MOST_ROWS} of {len(rows):,} {what}; {results} has all runs, and every "
            "metric."
        )
    if replicated and (sentence := _catastrophe(experiment, alike.values(), results.parent)):
        print_text(sentence)
    folder = shlex.quote(str(results.parent))
    if replicated:
        print_text(f"Differences with intervals, and figures: artist report {folder}")
    elif len(rows) > 1:
        print_text(
            "One run each: a difference may be noise. For intervals add permutation: "
            f"[0, 1, 2, 3, 4] to the grid; figures: artist report {folder}"
        )
    if sentence := _more_is_worse(experiment, result):
        print_text(sentence)


def _more_is_worse(experiment: Experiment, result: SweepResult) -> str:
    """Say where more GPUs, faster links or fewer jobs made the makespan much longer: first case."""
    from artist.experiments.experiment import runs
    from artist.results.caveats import FEWER_HELPS, MORE_HELPS, more_is_worse, spreads_jobs
    from artist.results.statistics.replicate_means import replicate_means

    scenarios = [each.scenario for each in runs(experiment)]
    spreads = all(spreads_jobs(one.backend, one.policy, one.policy_options) for one in scenarios)
    for setting in experiment.grid:
        if setting.rpartition(".")[2] not in MORE_HELPS + FEWER_HELPS:
            continue
        others = [name for name in experiment.grid if name not in (setting, *REPLICATES)]
        places: dict[tuple[str, ...], dict[str, list[float]]] = {}
        for row in result.rows:
            place = tuple(f"{name}={row[column_of(name)]}" for name in others)
            values = places.setdefault(place, {})
            values.setdefault(str(row[setting]), []).append(float(row["makespan_s"]))
        for place, values in places.items():
            means = [({setting: one}, mean) for one, mean in replicate_means(values).items()]
            once = any(len(each) < 2 for each in values.values())
            if sentence := more_is_worse("makespan", means, once=once, spreads=spreads):
                return f"{', '.join(place)}: {sentence}" if place else sentence
    return ""


def _by_point(
    rows: Sequence[Mapping[str, Any]], settings: Sequence[str]
) -> Mapping[tuple[str, ...], list[Mapping[str, Any]]]:
    """The runs of each combination of settings, in the order of the grid."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(str(row.get(column_of(name))) for name in settings), []).append(row)
    return found


def _unit(written: str, values: Sequence[float]) -> DisplayUnit:
    """The unit of a column. Times have the unit that suits the smallest one above 0."""
    if written != "s":
        return DisplayUnit(1.0, written)
    return time_unit(min(filter(None, values), default=0.0))


def _replicates(runs: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    return [(run.get("seed", 0), run.get("permutation", 0)) for run in runs]


def _mean_text(
    runs: Sequence[Mapping[str, Any]], metric: str, unit: DisplayUnit, *, geometric: bool
) -> str:
    """A mean with its interval. Runs of one seed are not independent, so they form a cluster."""
    from artist.results.statistics.compare_values import clusters_of
    from artist.results.statistics.replicate_means import replicate_mean

    values = [float(run[metric]) for run in runs]
    told = replicate_mean(values, clusters_of(_replicates(runs)), geometric=geometric)
    mean, low, high = (short(one / unit.seconds) for one in told)
    return mean if isnan(told.low) else f"{mean} [{low} .. {high}]"


def _catastrophe(
    experiment: Experiment, alike: Iterable[Sequence[Mapping[str, Any]]], folder: Path
) -> str:
    """The run that lies farthest above the others of its row, if one is far off."""
    from artist.report.verdict_sentences import catastrophe_sentence
    from artist.results.statistics.catastrophes import far_off
    from artist.results.statistics.compare_values import kind_of
    from artist.results.terms.chief_metrics import HEADLINES

    found = [
        (far.factor, metric, runs[far.at], kind_of(_replicates(runs)))
        for runs in alike
        for metric in HEADLINES
        if (far := far_off([float(run[metric]) for run in runs])) is not None
    ]
    if not found:
        return ""
    factor, metric, run, kind = max(found, key=lambda one: one[0])
    who = ", ".join(f"{name}={run[column_of(name)]}" for name in experiment.grid)
    where = str(folder / "runs" / str(run["run"]))
    return catastrophe_sentence(who, metric, factor, f"more {kind}", where)


def _cell(value: object) -> object:
    return value if isinstance(value, float) else str(value)


def _how_far(result: SweepResult | None, out: Path) -> str:
    """How far the sweep is, in words that follow "interrupted"."""
    from artist.results.run_directory import MANIFEST

    if result is None:
        return "before the first run; nothing was written"
    # Workers may have finished runs that nobody has asked for yet.
    done = len(list((out / "runs").glob(f"[!.]*/{MANIFEST}"))) - result.outside
    return f"with {done} of {counted(result.total, 'run')} done in {out}; add --resume to continue"
