"""The reproduction of the Dally paper's evaluation, from the repository's root.

`python examples/dally-paper/reproduction run` fills `results.csv`, `page` writes tables and
figures of docs/reproduction.md from it; `make reproduction` does both. `run --check` repeats some
of the runs and `page --check` makes the page again, to compare: exit code 1 where they differ.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from evidence import Evidence
from page import filled
from records import read
from running import cells, differing, run_missing
from sources import original

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "results.csv"
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
    if asked.what == "page":
        if asked.check:
            sys.exit(_check_page())
        _write_page()
        return
    wanted = cells(HERE / "studies")
    if asked.check:
        found = differing(wanted[:: asked.every], RESULTS, asked.workers)
        sys.exit(_say(found))
    run_missing(wanted, RESULTS, asked.workers, again=asked.again, on_done=_tell)


def _write_page() -> None:
    import figures

    PAGE.write_text(_page(), encoding="utf-8")
    figures.write(Evidence(read(RESULTS)), original(), HERE / "studies", FIGURES)


def _check_page() -> int:
    import figures

    found = [] if _page() == PAGE.read_text(encoding="utf-8") else [str(PAGE)]
    with tempfile.TemporaryDirectory() as scratch:
        figures.write(Evidence(read(RESULTS)), original(), HERE / "studies", Path(scratch))
        for made in sorted(Path(scratch).iterdir()):
            committed = FIGURES / made.name
            if not committed.is_file() or committed.read_bytes() != made.read_bytes():
                found.append(str(committed))
    return _say(found)


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
