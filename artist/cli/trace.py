"""`artist trace`: look at traces and make them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.output import Format, note, print_facts, print_json

app = typer.Typer(help="Check, describe and generate traces.", no_args_is_help=True)

Source = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A built-in trace or a file.")]
Output = Annotated[Format, typer.Option("--format", help="Of stdout.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")]


@app.command()
def validate(source: Source, format_: Output = Format.TABLE) -> None:
    """Read a trace; the first problem is an error with file and line."""
    from artist.trace.builtin import open_trace
    from artist.trace.stats import validate

    _show("valid", validate(open_trace(source)), format_)


@app.command()
def stats(source: Source, seed: Seed = 0, format_: Output = Format.TABLE) -> None:
    """Describe a trace: counts, GPU-hours, ideal run times."""
    from artist.trace.builtin import open_trace
    from artist.trace.stats import stats

    _show(source, stats(open_trace(source, seed)), format_)


@app.command()
def synth(
    jobs: Annotated[int, typer.Option(help="Number of jobs.")],
    load: Annotated[float, typer.Option(help="GPU-seconds demanded per GPU-second.")],
    gpus: Annotated[int, typer.Option(help="GPUs of the cluster that the load refers to.")],
    out: Annotated[Path, typer.Option(help="File to write, native CSV.")],
    seed: Seed = 0,
) -> None:
    """Generate a trace with Poisson arrivals and the default trace's mix of jobs."""
    from artist.trace.synthetic import synth_jobs
    from artist.trace.writer import write_csv

    write_csv(synth_jobs(jobs, load, gpus, seed), out)
    note(f"wrote {jobs} jobs to {out}")


def _show(title: str, facts: Mapping[str, object], format_: Format) -> None:
    if format_ is Format.JSON:
        print_json(facts)
    else:
        print_facts(title, facts)
