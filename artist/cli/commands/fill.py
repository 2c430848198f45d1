"""`artist fill`: fills machines with pods that share GPUs, and compares placers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli.options import FormatOption, Overwrite, Quiet
from artist.cli.output import Format, note, print_json, print_table, print_text
from artist.cli.progress_bar import bar_of_runs
from artist.errors import ConfigError
from artist.units import counted

if TYPE_CHECKING:
    from artist.pods.curves import Table


def fill(
    pods: Annotated[
        Path, typer.Argument(metavar="PODS.csv", help="Pods, in the format of Alibaba's openb.")
    ],
    machines: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="See: artist list machines.")
    ] = "openb",
    placers: Annotated[
        str, typer.Option(metavar="A,B,...|all", help="See: artist list placers.")
    ] = "all",
    until: Annotated[
        float | None,
        typer.Option(
            min=0.01, max=100, help="Final demand, as a multiple of all GPUs (default 1.3)."
        ),
    ] = None,
    over_time: Annotated[
        bool,
        typer.Option(
            "--over-time", help="Let pods arrive, wait and leave, at the times in the file."
        ),
    ] = False,
    load: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            max=100,
            help="With --over-time: draw pods that arrive at random; their mean demand is "
            "this multiple of all GPUs.",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--pods",
            min=1,
            max=1_000_000,
            help="Number of pods to draw with --load (default 10000).",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=100, help="Number of runs per placer.")] = 1,
    out: Annotated[Path | None, typer.Option(help="Folder for the curves.")] = None,
    quiet: Quiet = False,
    overwrite: Overwrite = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Fill machines with pods, and show how much is allocated and fragmented at 100 % demand.

    With --over-time, let pods arrive and leave, and show how long they wait.
    """
    from artist.cli.fill_modes import Mode, OverTime, UntilFull
    from artist.io.writing import check_folder
    from artist.pods.curves import FILL, write_filling
    from artist.pods.machine_file import load_machines

    names = _names(placers)
    _check(until, load, count, over_time=over_time)
    if out is not None:
        check_folder(out, FILL.what, FILL.foreign, overwrite=overwrite)
    file = load_machines(machines)
    mode: Mode
    if over_time:
        mode = OverTime(file, pods, load, 10_000 if count is None else count)
    else:
        mode = UntilFull(file, pods, 1.3 if until is None else until)
    facts: dict[str, Any] = {}
    rows: list[tuple[str, int, Table]] = []
    with bar_of_runs(quiet=quiet) as show:
        for name in names:
            for one in range(seed, seed + seeds):
                show(len(rows), len(names) * seeds)
                rows.append((name, one, mode.run(name, one)))
            facts[name] = mode.summary(name)
    sentences = [*filter(None, mode.sentences())]
    document = {
        "machines": file.name,
        "gpus": file.capacity_milli // 1000,
        "pods": pods.name,
        **mode.settings,
        "seeds": [seed, seed + seeds - 1],
        "placers": facts,
        "answer": sentences,
    }
    if out is not None:
        write_filling(out, document, mode.table, rows, overwrite=overwrite)
        if not quiet:
            note(f"wrote {out}: {mode.table} has {mode.table_has}")
    if format_ is Format.JSON:
        print_json(document)
        return
    each = f"{counted(seeds, 'run')} each"
    title = f"{pods.name} on {file.name}, {counted(document['gpus'], 'GPU')}, {mode.words}{each}"
    columns = ("placer", *next(iter(facts.values())))
    print_table(title, columns, [(name, *found.values()) for name, found in facts.items()])
    for sentence in sentences:
        print_text(sentence)


def _check(until: float | None, load: float | None, count: int | None, *, over_time: bool) -> None:
    """Refuse options that contradict each other."""
    if over_time and until is not None:
        raise ConfigError("--until is for pods that stay; leave it out, or leave out --over-time")
    if load is not None and not over_time:
        raise ConfigError("--load is for pods that come and leave; add --over-time")
    if count is not None and load is None:
        raise ConfigError("--pods says how many come at a --load; add it, or leave out --pods")


def _names(text: str) -> list[str]:
    """The placers that are asked for.

    Raises:
        UnknownNameError: no such placer.
    """
    from artist.pods.placers import PLACERS

    if text == "all":
        return [entry.id for entry in PLACERS]
    return list(dict.fromkeys(PLACERS[name.strip()].id for name in text.split(",")))
