"""`artist circle`: jobs on one link as circles, their compatibility score and time-shifts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from artist.cli.options import OverwriteFiles
from artist.cli.output import Format, note, print_facts, print_json, print_table
from artist.policies.cassini.link_circle import Choice, Periods


def circle(
    jobs: Annotated[
        str | None,
        typer.Option(metavar="MODEL:WORKERS,...", help="Models with settings: vgg16@batch=64:2."),
    ] = None,
    pattern: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PERIOD_MS:UP_MS:GBPS", help="The Down phase comes first. One per job."
        ),
    ] = None,
    link: Annotated[str, typer.Option(help="Capacity in one direction, e.g. 50Gbps.")] = "50Gbps",
    choose: Annotated[
        Choice, typer.Option(help="Which of equally good shifts to choose.")
    ] = Choice.FIRST,
    periods: Annotated[
        Periods,
        typer.Option(help="snap: ratios with terms up to 8; lcm: LCM of whole milliseconds."),
    ] = Periods.SNAP,
    angle: Annotated[int, typer.Option(help="Precision in degrees of the shortest iteration.")] = 5,
    backend: Annotated[
        str, typer.Option(help="For --jobs: source of iteration times; see: artist list backends.")
    ] = "analytical",
    plot: Annotated[
        Path | None, typer.Option(help="Draw the circle: FILE.svg or FILE.png.")
    ] = None,
    overwrite: OverwriteFiles = False,
    format_: Annotated[Format, typer.Option("--format", help="Format of stdout.")] = Format.TABLE,
) -> None:
    """Show how well jobs on one link interleave, and with which time-shifts (CASSINI)."""
    from artist.cli.link_jobs import jobs_of, link_of, solve_link
    from artist.io.figures import check_figure
    from artist.policies.cassini.time_shifts import SolverOptions

    if plot is not None:
        check_figure(plot, overwrite=overwrite)
    capacity_gbps = link_of(link)
    chosen = jobs_of(jobs, pattern or [], capacity_gbps, backend)
    options = SolverOptions(angle, periods, choose)
    answer = solve_link(chosen, capacity_gbps, options)
    if plot is not None:
        from artist.report.command_plots import plot_circle

        circles, names = [job.circle for job in chosen], [job.name for job in chosen]
        plot_circle(circles, names, capacity_gbps, answer.solution, options, plot)
        note(f"wrote {plot}")
    facts = answer.facts()
    if format_ is Format.JSON:
        print_json(facts)
        return
    rows: list[dict[str, Any]] = facts["jobs"]
    print_table(
        "jobs on the link", tuple(rows[0]), [[_cell(x) for x in row.values()] for row in rows]
    )
    chief = ("link_gbps", "period_ms", "score", "score_at_random")
    print_facts("their circle", {key: facts[key] for key in chief})


def _cell(value: Any) -> Any:
    """A range in words."""
    return "{:.3f} to {:.3f}".format(*value) if isinstance(value, list) else value
