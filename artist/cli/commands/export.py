"""`artist export`: writes a run in the format of another program."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from artist.cli.options import NoHints, OverwriteFiles
from artist.cli.output import note
from artist.errors import ConfigError


class ExportFormat(StrEnum):
    """Value of `export --format`."""

    PERFETTO = "perfetto"


def export(
    run: Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")],
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("trace.json"),
    format_: Annotated[ExportFormat, typer.Option("--format")] = ExportFormat.PERFETTO,
    overwrite: OverwriteFiles = False,
    quiet: NoHints = False,
) -> None:
    """Write a run in another program's format (perfetto: open it on ui.perfetto.dev)."""
    from artist.io.writing import check_new_file, write_whole
    from artist.report.perfetto import perfetto_trace
    from artist.report.reader import read_runs

    check_new_file(out, "--out", overwrite=overwrite)
    runs = read_runs([run])
    if len(runs) > 1:
        raise ConfigError(f"{run}: holds {len(runs)} runs; name one of them, e.g. {runs[0].name}")
    content = perfetto_trace(runs[0])
    write_whole(out, content)
    if not quiet:
        note(f"{out}: {len(content) / 1e6:.1f} MB, in {format_.value} format")
