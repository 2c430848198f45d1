"""`artist sweep`: an experiment, run by run."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, print_facts, print_json

if TYPE_CHECKING:
    from artist.experiments.sweep import SweepResult


class Engine(StrEnum):
    """Who runs the workers."""

    LOCAL = "local"
    RAY = "ray"


def sweep(
    experiment: Annotated[Path, typer.Argument(metavar="EXPERIMENT.yaml", help="What to run.")],
    out: Annotated[Path, typer.Option(help="Folder of the results.")],
    engine: Annotated[Engine, typer.Option(help="local processes, or a Ray cluster.")] = (
        Engine.LOCAL
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where it stopped.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="Of stdout.")] = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Run all scenarios of an experiment; results appear run by run."""
    from artist.experiments.executors import check_ray
    from artist.experiments.experiment import load_experiment
    from artist.experiments.remote import on_ray
    from artist.experiments.sweep import sweep as run
    from artist.experiments.task import locally

    if engine is Engine.RAY:
        check_ray()
    chosen = load_experiment(experiment)
    latest: list[SweepResult] = []
    try:
        with _progress(quiet) as show:

            def on_done(result: SweepResult) -> None:
                raise_if_lost()
                latest[:] = [result]
                show(result)

            found = run(
                chosen,
                out,
                sys.argv,
                workers=workers,
                resume=resume,
                on_done=on_done,
                engine=on_ray if engine is Engine.RAY else locally,
            )
    except Interrupted as interrupted:
        interrupted.how_far = _how_far(latest, out)
        raise
    facts = {
        "experiment": chosen.name,
        "version": chosen.version,
        "runs": found.total,
        "already_done": found.skipped,
        "done": found.done,
        "failed": len(found.failures),
        "results": str(out / "results.csv"),
    }
    if format_ is Format.JSON:
        print_json({**facts, "failures": {f.id: f.error for f in found.failures}})
    else:
        print_facts(f"{chosen.name} version {chosen.version}", facts)
    for failure in found.failures:
        note(f"artist: run {failure.id} failed: {failure.error}")
    if found.failures:
        raise typer.Exit(max(failure.exit_code for failure in found.failures))


def _how_far(latest: list[SweepResult], out: Path) -> str:
    """Where the sweep stands, in words that follow "interrupted"."""
    if not latest:
        return "before the first run; nothing was written"
    done = latest[0].skipped + latest[0].done
    return f"with {done} of {latest[0].total} runs done in {out}; add --resume to go on"


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[SweepResult], None]]:
    """Runs done of all, with the time left, on a stderr where a person watches."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("runs", total=None)

        def on_done(result: SweepResult) -> None:
            finished = result.done + len(result.failures)
            bar.update(task, completed=finished, total=result.total - result.skipped)

        yield on_done
