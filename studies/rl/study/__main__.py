"""Ask whether learned policies beat good rules under contention, and write the page about it.

`runs` does all runs and writes `results.csv`. `page` writes `README.md` from it and from
`paper.csv`; `--check` compares instead. `runs --every N` repeats every Nth run and compares it with
its row. Checks end with exit code 1 where something differs. `paper --tables FOLDER --trace FILE`
repeats the paper's setting with its own tables, which do not ship, and writes `paper.csv`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from observations import HERE, RESULTS, differing_runs, do_all, read

from artist.io.writing import write_whole

PAGE = HERE / "README.md"
KEPT = Path("build/rl/rows.csv")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("runs", "page", "paper"))
    parser.add_argument("--check", action="store_true", help="page: compare instead of writing")
    parser.add_argument("--every", type=int, help="runs: repeat every Nth run and compare")
    parser.add_argument("--workers", type=int, default=1, help="runs: processes")
    parser.add_argument("--tables", type=Path, help="paper: folder of the three CSV files")
    parser.add_argument("--trace", type=Path, help="paper: file of jobs")
    arguments = parser.parse_args()
    os.chdir(HERE.parent.parent)
    if arguments.command == "paper":
        from paper import write_paper

        write_paper(arguments.tables, arguments.trace)
    elif arguments.command == "runs" and arguments.every:
        sys.exit(_report(differing_runs(arguments.every)))
    elif arguments.command == "runs":
        do_all(KEPT, arguments.workers)
    else:
        from wording import page_text

        text = page_text(read(RESULTS))
        if not arguments.check:
            write_whole(PAGE, text)
        elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit(_report([str(PAGE)]))


def _report(names: list[str]) -> int:
    for name in names:
        sys.stderr.write(f"{name} differs; `make study-rl` makes it anew\n")
    return 1 if names else 0


if __name__ == "__main__":
    main()
