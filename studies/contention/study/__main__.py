"""Ask which policies stay ahead once jobs compete, and write the page about it.

`artist sweep` does the runs (`make study-contention`). `take FOLDER ...` keeps what the page needs
of their results in `results.csv`. `page` writes `README.md` and its pictures from it; `--check`
compares them instead. `runs --every N` repeats every Nth run and compares it with its row. Checks
end with exit code 1 where something differs.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.writing import write_whole
from studies.common.command import parsed, parser, path, report, write_page
from studies.contention.study.observations import FILES, ROWS, differing_runs, taken
from studies.contention.study.pictures import draw_all
from studies.contention.study.wording import page_text

STUDY = "contention"


def main() -> None:
    """Do what the command line asks for."""
    words = parser(__doc__, "take")
    words.add_argument("folders", nargs="*", type=path, help="take: the folders of the sweeps")
    arguments = parsed(words)
    if arguments.command == "page":
        write_page(STUDY, _write, arguments.check)
    elif arguments.command == "runs":
        report(STUDY, differing_runs(arguments.every or 60))
    elif len(arguments.folders) != len(FILES):
        words.error(f"take: expected the folders of the sweeps of {', '.join(FILES)}")
    else:
        ROWS.write(taken(arguments.folders))


def _write(folder: Path) -> None:
    rows = ROWS.read()
    draw_all(rows, folder)
    write_whole(folder / "README.md", page_text(rows))


if __name__ == "__main__":
    main()
