"""`artist whatif`: changes of a recorded Slurm, each against the same Slurm as simulated."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from artist.cli import options, slurm_options
from artist.cli.output import Format, note, print_json, print_table, print_text
from artist.errors import ConfigError


def whatif(
    folder: slurm_options.SlurmFolder,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--change",
            metavar="KEY=VALUE",
            help="racks=+2, machines=+8, partition.NAME.machines=+8, qos.NAME.GrpTRES=, "
            "account.NAME.shares=x2, config.KEY=, policy=, fabric= ... Changes within one "
            "--change, separated by spaces, are made together.",
        ),
    ] = None,
    fabric: Annotated[
        str | None,
        typer.Option(help="The fabric that the jobs ran on, if a --change sets fabric=."),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'train-*=bert-large',...",
            help="Job names (* matches any text), account:NAME or gpus:N = artist's model, "
            "for fabric=.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.md", help="Page to write, in Markdown.")
    ] = None,
    keep_names: slurm_options.KeepNames = False,
    phases: slurm_options.Phases = 5,
    overwrite: options.OverwriteFiles = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Predict how changes to a recorded Slurm cluster would affect waiting times."""
    from artist.cli.whatif_text import answer, as_json, page, table
    from artist.experiments.recorded.whatif import what_if
    from artist.io.writing import check_new_file, write_whole

    if not changes:
        raise ConfigError("no --change; say what to change, e.g. --change racks=+2")
    if len({*changes}) < len(changes):
        raise ConfigError("--change is given twice with the same value; give it once")
    if out is not None:
        check_new_file(out, "--out", overwrite=overwrite)
    with TemporaryDirectory() as inputs, slurm_options.in_columns_of_sacct():
        found = what_if(
            folder, Path(inputs), changes, keep_names=keep_names, phases=phases, fabric=fabric,
            models=options.pairs_of("models", models or ()),
        )  # fmt: skip
        if out is not None:
            write_whole(out, page(found, str(folder)))
        if format_ is Format.JSON:
            print_json(as_json(found))
            return
        for sentence in answer(found):
            print_text(sentence)
        print_table(*table(found))
    if quiet:
        return
    for sentence in found.assumed:
        note(f"assumed: {sentence}")
    for what in found.replay.not_modelled:
        note(f"not modelled: {what}")
