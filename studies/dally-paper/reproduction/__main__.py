"""Repeat the Dally paper's evaluation, and write its two pages.

`python studies/dally-paper/reproduction run` fills `results.csv`. `page` writes
`README.md`, its figures and `studies/dally-paper/tables.md` from it. `make reproduction`
does both. `run --check` repeats some runs, `page --check` makes the pages again. Both compare the
outcome with the files, and end with exit code 1 where they differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from documents import documents
from evidence import Evidence
from records import read
from running import cells, differing, run_missing
from sources import HERE, original

from artist.io.writing import write_whole

RESULTS = HERE / "results.csv"
STUDIES = HERE / "experiments"
FIGURES = Path("studies", "dally-paper", "figures")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "page"))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--again", action="store_true", help="run: repeat runs that have a row")
    parser.add_argument("--every", type=int, default=50, help="run --check: repeat every Nth run")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    os.chdir(HERE.parent.parent)  # studies name files from the repository's root
    if arguments.check:
        pages = arguments.command == "page"
        every, workers = arguments.every, arguments.workers
        sys.exit(_report(_check_pages() if pages else _check_runs(every, workers)))
    if arguments.command == "page":
        _write_pages()
    else:
        again = arguments.again
        run_missing(cells(STUDIES), RESULTS, arguments.workers, again=again, on_done=_progress)


def _write_pages() -> None:
    import figures

    evidence = _evidence()
    for page, text in documents(evidence, original()).items():
        write_whole(page, text)
    figures.write_rows(evidence, original(), FIGURES)
    figures.write_curves(STUDIES, FIGURES)


def _evidence() -> Evidence:
    rows = read(RESULTS)
    if not rows:
        sys.exit(f"{RESULTS}: no rows with today's columns; `make reproduction` rebuilds them")
    return Evidence(rows)


def _check_pages() -> list[str]:
    """The pages and figures that are not what the rows say."""
    import figures

    evidence = _evidence()
    pages = documents(evidence, original()).items()
    differing_pages = [
        str(page)
        for page, text in pages
        if not page.is_file() or page.read_text(encoding="utf-8") != text
    ]
    return differing_pages + _check_figures(partial(figures.write_rows, evidence, original()))


def _check_figures(write: Callable[[Path], None]) -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        write(Path(scratch))
        pairs = [(made, FIGURES / made.name) for made in sorted(Path(scratch).iterdir())]
        return [
            str(kept)
            for made, kept in pairs
            if not kept.is_file() or kept.read_bytes() != made.read_bytes()
        ]


def _check_runs(every: int, workers: int) -> list[str]:
    """Some of the runs, and the figure that is drawn from runs."""
    import figures

    names = differing(cells(STUDIES)[::every], RESULTS, workers)
    return names + _check_figures(partial(figures.write_curves, STUDIES))


def _report(names: list[str]) -> int:
    for name in names:
        sys.stderr.write(f"{name} differs; `make reproduction` rebuilds it\n")
    return 1 if names else 0


def _progress(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        sys.stderr.write(f"{done} of {total} runs\n")


if __name__ == "__main__":
    main()
