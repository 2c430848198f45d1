"""`artist report` and `artist export`: runs as a page, as figures, as a trace to zoom into."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.output import note
from artist.errors import ConfigError


class FigureFormat(StrEnum):
    """Value of `--figure-format`."""

    SVG = "svg"
    PNG = "png"
    PDF = "pdf"


class ExportFormat(StrEnum):
    """Value of `export --format`."""

    PERFETTO = "perfetto"


Quiet = Annotated[bool, typer.Option("--quiet", help="No hints.")]


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Run directories, or folders of them.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page (default report.html).")
    ] = None,
    figures: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write every figure for papers instead.")
    ] = None,
    figure_format: Annotated[FigureFormat, typer.Option(help="Of --figures.")] = FigureFormat.SVG,
    baseline: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Compare with this one (default: first).")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    quiet: Quiet = False,
) -> None:
    """Show runs on one self-contained HTML page, or as figures for papers."""
    from artist.io.writing import check_file, write_whole
    from artist.report.grouping import group
    from artist.report.page import page
    from artist.report.paper_figures import check_folder, write_figures
    from artist.report.reader import read_runs

    target = output or (None if figures else Path("report.html"))
    if target:
        check_file(target, "-o")
    if figures:
        check_folder(figures)
    study = group(read_runs(runs), baseline)
    if target:
        content = page(study, title)
        write_whole(target, content)
        _tell(quiet, f"{target}: {_counted(len(study.runs), 'run')}, {len(content) / 1e6:.1f} MB")
    if figures:
        count = write_figures(study, figures, figure_format.value)
        _tell(quiet, f"{figures}: {_counted(count, 'figure')}")


def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path(
        "trace.json"
    ),
    format_: Annotated[ExportFormat, typer.Option("--format")] = ExportFormat.PERFETTO,
    quiet: Quiet = False,
) -> None:
    """Write a run in another program's format (perfetto: open it on ui.perfetto.dev)."""
    from artist.io.writing import check_file, write_whole
    from artist.report.perfetto import perfetto_trace
    from artist.report.reader import read_runs

    check_file(output, "-o")
    found = read_runs([run])
    if len(found) > 1:
        raise ConfigError(f"{run}: holds {len(found)} runs; name one of them, e.g. {found[0].name}")
    content = perfetto_trace(found[0])
    write_whole(output, content)
    _tell(quiet, f"{output}: {len(content) / 1e6:.1f} MB, in {format_.value} format")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _tell(quiet: bool, text: str) -> None:
    if not quiet:
        note(text)
