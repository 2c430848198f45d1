"""Ask what CASSINI gains on which policy, and write the page about it.

`runs` does all runs (half an hour of CPU time) and writes `results.csv`, `links.csv` and
`joint.csv`. `page` writes `README.md` and its pictures from them; `--check` compares them instead.
`runs --every N` repeats every Nth run and compares it with its row. Checks end with exit code 1
where something differs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from doing import do_all
from observations import HERE, RESULTS, differing_runs, read

from artist.io.writing import write_whole

PAGE = HERE / "README.md"
KEPT = Path("build/cassini/rows.csv")


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("runs", "page"))
    parser.add_argument("--check", action="store_true", help="page: compare instead of writing")
    parser.add_argument("--every", type=int, help="runs: repeat every Nth run and compare")
    parser.add_argument("--workers", type=int, default=1, help="runs: processes")
    arguments = parser.parse_args()
    os.chdir(HERE.parent.parent)  # policies name files from the repository's root
    if arguments.command == "runs" and arguments.every:
        sys.exit(_report(differing_runs(arguments.every)))
    elif arguments.command == "runs":
        from joint import write_joint
        from links import write_links

        write_links()
        write_joint()
        do_all(KEPT, arguments.workers)
    elif arguments.check:
        sys.exit(_report(_differing_files()))
    else:
        _write(HERE)


def _write(folder: Path) -> None:
    from pictures import draw_all
    from wording import page_text

    rows = read(RESULTS)
    draw_all(rows, folder)
    write_whole(folder / PAGE.name, page_text(rows))


def _differing_files() -> list[str]:
    with tempfile.TemporaryDirectory() as scratch:
        made = Path(scratch)
        _write(made)
        pairs = [(path, HERE / path.name) for path in sorted(made.iterdir())]
        return [
            str(kept)
            for path, kept in pairs
            if not kept.is_file() or kept.read_bytes() != path.read_bytes()
        ]


def _report(names: list[str]) -> int:
    for name in names:
        sys.stderr.write(f"{name} differs; `make study-cassini` makes it anew\n")
    return 1 if names else 0


if __name__ == "__main__":
    main()
