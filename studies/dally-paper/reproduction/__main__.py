"""The reproduction of the Dally paper's evaluation, from the repository's root.

`python studies/dally-paper/reproduction run` fills `results.csv`, `page` writes tables and
figures of docs/reproduction.md from it; `make reproduction` does both. `run --check` repeats some
of the runs and `page --check` makes the page again, to compare: exit code 1 where they differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from evidence import Evidence
from page import filled
from records import read
from running import cells, differing, run_missing
from sources import original

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "results.csv"
STUDIES = HERE / "experiments"
PAGE = Path("docs", "reproduction.md")
FIGURES = Path("docs", "reproduction")


def main() -> None:
    """Parse, then do what was asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "page"))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--again", action="store_true", help="run: repeat runs that have a row")
    parser.add_argument("--every", type=int, default=50, help="run --check: one run of so many")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    os.chdir(HERE.parent.parent)  # studies name files from the repository's root
    if asked.check:
        page = asked.what == "page"
        sys.exit(_say(_check_page() if page else _check_runs(asked.every, asked.workers)))
    if asked.what == "page":
        _write_page()
    else:
        run_missing(cells(STUDIES), RESULTS, asked.workers, again=asked.again, on_done=_tell)


def _write_page() -> None:
    import figures

    PAGE.write_text(_page(), encoding="utf-8")
    figures.write_rows(Evidence(read(RESULTS)), original(), FIGURES)
    figures.write_curves(STUDIES, FIGURES)


def _check_page() -> list[str]:
    """The page and the figures of its rows, where they are not what would be made now."""
    import figures

    found = [] if _page() == PAGE.read_text(encoding="utf-8") else [str(PAGE)]
    evidence = Evidence(read(RESULTS))
    return found + _check_figures(partial(figures.write_rows, evidence, original()))


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

    found = differing(cells(STUDIES)[::every], RESULTS, workers)
    return found + _check_figures(partial(figures.write_curves, STUDIES))


def _page() -> str:
    return filled(PAGE.read_text(encoding="utf-8"), Evidence(read(RESULTS)), original())


def _say(differing: list[str]) -> int:
    for name in differing:
        sys.stderr.write(f"{name} differs; `make reproduction` makes it anew\n")
    return 1 if differing else 0


def _tell(done: int, total: int) -> None:
    if done % 20 == 0 or done == total:
        sys.stderr.write(f"{done} of {total} runs\n")


if __name__ == "__main__":
    main()
