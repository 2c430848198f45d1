"""Ask which policies stay ahead once jobs compete, and write the page about it.

`artist sweep` does the runs (`make study-contention`). `take FOLDER ...` keeps what the page needs
of their results in `results.csv`. `page` writes `README.md` and its pictures from it; `--check`
compares them instead. `runs --every N` repeats every Nth run and compares it with its row. Checks
end with exit code 1 where something differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from observations import FILES, HERE, RESULTS, differing_runs, read, taken, write
from pictures import draw_all
from wording import page_text

from artist.io.writing import write_whole

PAGE = HERE / "README.md"


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("take", "page", "runs"))
    parser.add_argument("folders", nargs="*", type=Path, help="take: the folders of the sweeps")
    parser.add_argument("--check", action="store_true", help="page: compare instead of writing")
    parser.add_argument("--every", type=int, default=60, help="runs: repeat every Nth run")
    arguments = parser.parse_args()
    folders = [folder.resolve() for folder in arguments.folders]
    os.chdir(HERE.parent.parent)  # experiments name files from the repository's root
    if arguments.command == "take":
        if len(folders) != len(FILES):
            parser.error(f"take: expected the folders of the sweeps of {', '.join(FILES)}")
        write(RESULTS, taken(folders))
    elif arguments.command == "runs":
        sys.exit(_report(differing_runs(arguments.every)))
    elif arguments.check:
        sys.exit(_report(_differing_files()))
    else:
        rows = read(RESULTS)
        write_whole(PAGE, page_text(rows))
        draw_all(rows, HERE)


def _differing_files() -> list[str]:
    rows = read(RESULTS)
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        draw_all(rows, made)
        (made / PAGE.name).write_text(page_text(rows), encoding="utf-8")
        pairs = [(path, HERE / path.name) for path in sorted(made.iterdir())]
        return [
            str(kept)
            for path, kept in pairs
            if not kept.is_file() or kept.read_bytes() != path.read_bytes()
        ]


def _report(names: list[str]) -> int:
    for name in names:
        sys.stderr.write(f"{name} differs; `make study-contention` makes it anew\n")
    return 1 if names else 0


if __name__ == "__main__":
    main()
