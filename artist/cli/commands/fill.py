"""`artist fill`: fills machines with pods that share GPUs, and compares placers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.options import FormatOption, Overwrite, Quiet
from artist.cli.output import Format, note, print_json, print_table, print_text

if TYPE_CHECKING:
    from artist.pods.curves import Curves


def fill(
    pods: Annotated[Path, typer.Argument(metavar="PODS.csv", help="As Alibaba's openb pods.")],
    machines: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="See: artist list machines.")
    ] = "openb",
    placers: Annotated[
        str, typer.Option(metavar="A,B,...|all", help="See: artist list placers.")
    ] = "all",
    until: Annotated[
        float, typer.Option(min=0.01, max=100, help="Demand at the end, times all GPUs.")
    ] = 1.3,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Runs of each placer.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the curves.")] = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fill machines with pods, and show how much is allocated and fragmented at 100 % demand."""
    from artist.cli.fill_text import most_allocated, without_machine
    from artist.cli.progress_bar import bar_of_runs
    from artist.io.writing import check_folder
    from artist.pods.curves import FILL, allocated_percents, curves, summary, write_filling
    from artist.pods.fill import fill as filled
    from artist.pods.machine_file import load_machines
    from artist.pods.pod_list import read_pods
    from artist.results.terms.number_text import counted

    names = _names(placers)
    if out is not None:
        check_folder(out, FILL.what, FILL.foreign, overwrite=overwrite)
    file, wanted = load_machines(machines), read_pods(pods)
    facts: dict[str, Any] = {}
    allocated: dict[str, list[float]] = {}
    rows: list[tuple[str, int, Curves]] = []
    with bar_of_runs(quiet=quiet) as show:
        for name in names:
            runs = []
            for one in range(seed, seed + seeds):
                show(len(rows), len(names) * seeds)
                run = filled(file, wanted, name, until, one)
                runs.append((run, curves(run)))
                rows.append((name, one, runs[-1][1]))
            facts[name] = summary(runs)
            allocated[name] = allocated_percents(runs)
    sentences = [*filter(None, (most_allocated(allocated), without_machine(wanted, file)))]
    document = {
        "machines": file.name,
        "gpus": run.capacity_milli // 1000,
        "pods": pods.name,
        "until": until,
        "seeds": [seed, seed + seeds - 1],
        "placers": facts,
        "answer": sentences,
    }
    if out is not None:
        write_filling(out, document, rows, overwrite=overwrite)
        if not quiet:
            note(f"wrote {out}: curves.csv has every percent of demand")
    if format_ is Format.JSON:
        print_json(document)
        return
    each = f"{counted(seeds, 'run')} each"
    title = f"{pods.name} on {file.name}, {document['gpus']:,} GPUs, {each}"
    columns = ("placer", *next(iter(facts.values())))
    print_table(title, columns, [(name, *found.values()) for name, found in facts.items()])
    for sentence in sentences:
        print_text(sentence)


def _names(text: str) -> list[str]:
    """The placers that are asked for.

    Raises:
        UnknownNameError: no such placer.
    """
    from artist.pods.placers import PLACERS

    if text == "all":
        return [entry.id for entry in PLACERS]
    return list(dict.fromkeys(PLACERS[name.strip()].id for name in text.split(",")))
