"""`artist replay`: simulates what a Slurm recorded and compares start by start."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from artist.cli import options, slurm_options
from artist.cli.output import Format, note, print_facts, print_json, print_table, print_text
from artist.errors import ConfigError
from artist.units import counted

_COLUMNS = ("job", "start", "recorded_s", "simulated_s", "later_by_s", "why")


def replay(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Output of scontrol, sacctmgr and sacct; see docs/how-to/slurm.md."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory to write; its cluster and trace go to RUN.inputs."),
    ] = None,
    keep_names: slurm_options.KeepNames = False,
    phases: slurm_options.Phases = 5,
    sets: options.Sets = None,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Simulate a recorded Slurm log, and compare when each job started."""
    from artist.experiments.recorded.replay import replay as replayed
    from artist.results.run_directory import check_target, write_run

    if out is not None:
        check_target(out, overwrite=overwrite)
        if (inputs := _inputs_of(out)).exists() and not overwrite:
            raise ConfigError(f"{inputs}: exists already; move it, or replace it with --overwrite")
    with _inputs(out) as inputs, slurm_options.in_columns_of_sacct():
        found = replayed(folder, inputs, keep_names=keep_names, sets=sets or (), phases=phases)
        if out is not None:
            write_run(found.result, out, sys.argv, overwrite=overwrite)
    facts, largest = found.facts(), found.largest()
    if format_ is Format.JSON:
        print_json(
            {
                **facts,
                "not_modelled": list(found.not_modelled),
                "dropped": dict(found.dropped),
                "largest": [dict(zip(_COLUMNS, x.row(), strict=True)) for x in largest],
            }
        )
        return
    print_facts(f"replay of {folder}", facts, format_)
    print_table("the largest differences", _COLUMNS, [x.row() for x in largest])
    print_text(found.sentence())
    if quiet:
        return
    for what in found.not_modelled:
        note(f"not modelled: {what}")
    for reason, jobs in found.dropped.items():
        note(f"left out: {counted(jobs, 'row')} ({reason})")


def _inputs_of(out: Path) -> Path:
    return Path(f"{out}.inputs")


@contextmanager
def _inputs(out: Path | None) -> Iterator[Path]:
    """The folder for the cluster file and the trace: next to the run directory, or temporary.

    A run records the paths of its inputs, so they must be in their final place while it runs. The
    inputs of an earlier replay are copied aside, and restored if this one fails.
    """
    if out is None:
        with TemporaryDirectory() as folder:
            yield Path(folder)
        return
    inputs = _inputs_of(out)
    with ExitStack() as stack:
        before = None
        if inputs.is_dir():
            aside = TemporaryDirectory(prefix=f".{inputs.name}-", dir=inputs.parent)
            before = shutil.copytree(inputs, Path(stack.enter_context(aside), inputs.name))
        try:
            yield inputs
        except BaseException:
            shutil.rmtree(inputs, ignore_errors=True)
            if before is not None:
                before.rename(inputs)
            raise
