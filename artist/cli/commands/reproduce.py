"""`artist reproduce`: the figures and tables of a paper, with our values next to the paper's."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artist.cli import options
from artist.cli.interruption import Interrupted, raise_if_lost
from artist.cli.output import Format, note, or_null, print_json, print_table, print_text
from artist.cli.progress_bar import bar_of_runs
from artist.cli.progress_lines import duration
from artist.errors import ConfigError
from artist.results.terms.number_text import short
from artist.units import counted

if TYPE_CHECKING:
    from artist.experiments.sweep import SweepResult
    from artist.papers.definition import Item, Paper
    from artist.papers.reproduce import Reproduced


def reproduce(
    paper: Annotated[
        str | None, typer.Argument(metavar="[PAPER]", help="Omit it to list the papers.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="Figure to reproduce (omit it to list figures and tables)."
        ),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Table to reproduce instead.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for runs and files (default reproduced/PAPER).")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run one replicate only; gives no verdicts.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Number of replicates (default 5).")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes (default: all cores).")
    ] = None,
    overwrite: options.Overwrite = False,
    format_: options.FormatOption = Format.TABLE,
    quiet: options.Quiet = False,
) -> None:
    """Reproduce a figure or table of a paper, with the paper's values beside ours."""
    from artist.papers.definition import load_paper
    from artist.papers.reproduce import FULL, check_out

    if paper is None:
        _list_papers(format_)
        return
    chosen = load_paper(paper)
    if figure is not None and table is not None:
        raise ConfigError("--figure and --table: give only one")
    if quick and seeds is not None:
        raise ConfigError(f"--quick and --seeds {seeds}: give only one")
    if figure is None and table is None:
        _list_items(chosen, format_)
        return
    kind, number = ("figure", figure) if table is None else ("table", table)
    items = chosen.items_of(kind, str(number))
    folder = out or Path("reproduced", chosen.name)
    check_out(items, folder, overwrite=overwrite)
    count = 1 if quick else seeds or FULL
    made = [_one(chosen, item, folder, count, workers, quiet=quiet) for item in items]
    if format_ is Format.JSON:
        print_json([_as_json(one, count) for one in made])
    else:
        for one in made:
            _print(chosen, one, count)
    failures = [failure for one in made for failure in one.failures]
    for failure in failures:
        note(f"artist: run {failure.id} failed: {failure.error}")
    if failures:
        raise typer.Exit(max(failure.exit_code for failure in failures))


def _one(
    paper: Paper, item: Item, out: Path, count: int, workers: int | None, *, quiet: bool
) -> Reproduced:
    """Reproduce one item, with a progress bar."""
    from artist.papers.pictures import can_draw
    from artist.papers.reproduce import reproduce as run

    if not quiet and item.runs:
        note(f"{item.id}: {_work(paper, item, count)}; runs of an earlier call are not repeated")
    if not quiet and not can_draw():
        note("pictures need matplotlib: pip install 'artist-sim[plot]'; tables are written")
    with bar_of_runs(quiet=quiet) as show:

        def on_done(so_far: SweepResult) -> None:
            raise_if_lost()
            show(so_far.done + len(so_far.failures), so_far.total - so_far.skipped)

        try:
            return run(paper, item, out, sys.argv, seeds=count, workers=workers, on_done=on_done)
        except Interrupted as interrupted:
            interrupted.how_far = f"with the finished runs in {out}; the same command goes on"
            raise


def _work(paper: Paper, item: Item, seeds: int) -> str:
    """How many runs an item takes, and about how long."""
    from artist.io.processes import cores

    count = item.runs * seeds
    whole_s = count * paper.seconds_per_run / cores()
    return f"{counted(count, 'run')}, about {duration(whole_s)}"


def _list_papers(format_: Format) -> None:
    """Print the papers that artist knows."""
    from artist.papers.definition import load_paper, paper_names

    papers = [load_paper(name) for name in paper_names()]
    rows = [
        {"paper": one.name, "title": one.title, "source": one.source,
         "figures and tables": sum(not item.reason for item in one.items)}
        for one in papers
    ]  # fmt: skip
    if format_ is Format.JSON:
        print_json(rows)
    else:
        print_table("papers", list(rows[0]), [list(row.values()) for row in rows])
        print_text("artist reproduce PAPER lists its figures and tables.")


def _list_items(paper: Paper, format_: Format) -> None:
    """Print the figures and tables of a paper, and how long each takes."""
    from artist.papers.reproduce import FULL, PERMUTATION

    rows = [
        {
            "item": item.id,
            "shows": item.shows,
            f"with {FULL} replicates": _work(paper, item, FULL) if item.runs else "",
            "--quick": _work(paper, item, 1) if item.runs else "",
            "remark": f"not reproducible: {item.reason}" if item.reason else _numbers(item),
        }
        for item in paper.items
    ]
    if format_ is Format.JSON:
        print_json(rows)
        return
    print_table(paper.source, list(rows[0]), [list(row.values()) for row in rows])
    print_text(
        f"artist reproduce {paper.name} --figure 8 runs one. Times are for this machine's cores. "
        f"Replicates have {_seeds(FULL)} and permutation {PERMUTATION}."
    )


def _numbers(item: Item) -> str:
    """What numbers the paper gives for an item."""
    if item.values or item.latencies:
        return "the paper's values beside ours"
    return "the paper's ranges beside ours" if item.claims else "the paper gives no numbers"


def _seeds(count: int) -> str:
    return "seed 0" if count == 1 else f"seeds 0 to {count - 1}"


def _print(paper: Paper, made: Reproduced, seeds: int) -> None:
    """Print our values, the comparison with the paper, and the files written."""
    from artist.config import Scenario
    from artist.papers.reproduce import PERMUTATION
    from artist.results.statistics.compare_values import LEAST_REPLICATES
    from artist.run.world import world

    item = made.item
    how = f"; {_seeds(seeds)}, permutation {PERMUTATION}" if item.runs else ""
    if made.own and not item.values:
        _print_own(f"{item.id}: {item.shows}, ours{how}", item, made.own)
    if made.beside:
        shown = [_in_words(row) for row in made.beside]
        title = f"{item.id}: ours and the paper's ({paper.source}, {item.section}){how}"
        print_table(title, list(shown[0]), [list(row.values()) for row in shown])
    elif not made.failures:
        print_text(f"The paper gives no numbers for {item.id}: compare by eye.")
    if item.claims:
        interval = (
            "with its 95 % interval"
            if seeds >= LEAST_REPLICATES
            else "of too few replicates to tell"
        )
        print_text(
            f"Ours is a difference {interval}; ours / paper is our ratio (1 + the difference) over "
            "that of the paper, at the nearest end of its range."
        )
    if item.runs:
        print_text(
            f"Our jobs are drawn in the paper's proportions (trace {item.trace}); the paper's own "
            "jobs do not ship."
        )
        print_text(
            f"The world: {world(Scenario(**paper.base))}. artist compare --across repeats a "
            "comparison in others."
        )
    if item.note:
        print_text(item.note)
    for path in made.files:
        print_text(str(path))


def _print_own(title: str, item: Item, rows: Sequence[Mapping[str, Any]]) -> None:
    """A line per metric and cluster, a column per policy."""
    means = {(row["metric"], row["racks"], row["policy"]): row["mean"] for row in rows}
    lines = [
        (metric, racks, *(means.get((metric, racks, policy)) for policy in item.policies))
        for metric in item.metrics
        for racks in item.racks
    ]
    print_table(f"{title}, mean", ("metric", "racks", *item.policies), lines)


def _in_words(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of ours next to the paper's; a difference and its interval are one cell."""
    cells = {key: _cell(key, value) for key, value in row.items() if key not in ("low", "high")}
    if "low" in row:
        ours, low, high = (f"{100 * row[key]:+.0f}" for key in ("ours", "low", "high"))
        cells["ours"] = f"{ours} %" if isnan(row["low"]) else f"{ours} % [{low} .. {high}]"
    return cells


def _cell(column: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if isnan(value):
        return ""
    if column == "ours / paper":
        return f"{value:,.2f}" if value >= 0.1 else f"{value:.2g}"
    return short(value)


def _as_json(made: Reproduced, seeds: int) -> dict[str, Any]:
    """An item for JSON; unknown values are null."""

    def plain(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [{key: or_null(value) for key, value in row.items()} for row in rows]

    return {
        "item": made.item.id,
        "seeds": seeds,
        "ours": plain(made.own),
        "beside": plain(made.beside),
        "files": [str(path) for path in made.files],
    }
