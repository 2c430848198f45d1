"""`artist report`: shows runs on a page, or as figures for papers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import NoHints, OverwriteFiles
from artist.cli.output import note
from artist.units import counted


class FigureFormat(StrEnum):
    """Value of `--figure-format`."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run directories, or folders of them.")
    ],
    out: Annotated[Path | None, typer.Option(help="The page (default report.html).")] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write every figure for papers instead.")
    ] = None,
    figure_format: Annotated[
        FigureFormat, typer.Option(help="Format of --figures.")
    ] = FigureFormat.SVG,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Policy to compare with (default: the first)."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    overwrite: OverwriteFiles = False,
    quiet: NoHints = False,
) -> None:
    """Show runs on one self-contained HTML page, or as figures for papers."""
    from dataclasses import replace

    from artist.io.writing import check_new_file, write_whole
    from artist.report.grouping import group
    from artist.report.page import page
    from artist.report.paper_figures import check_folder, write_figures
    from artist.report.reader import read_runs, read_worlds

    target = out or (None if figures else Path("report.html"))
    if target:
        check_new_file(target, "--out", overwrite=overwrite)
    if figures:
        check_folder(figures, overwrite=overwrite)
    study = group(read_runs(runs, None if quiet else _say_left_out), baseline)
    study = replace(study, worlds=read_worlds(runs))
    if target:
        content = page(study, title)
        write_whole(target, content)
        if not quiet:
            note(f"{target}: {counted(len(study.runs), 'run')}, {len(content) / 1e6:.1f} MB")
    if figures:
        count = write_figures(study, figures, figure_format.value, overwrite=overwrite)
        if not quiet:
            note(f"{figures}: {counted(count, 'figure')}")


def _say_left_out(sweep: Path, count: int) -> None:
    note(
        f"{sweep}: {counted(count, 'run')} left out, of an earlier grid of this sweep; give "
        "the run directories themselves to show them"
    )
