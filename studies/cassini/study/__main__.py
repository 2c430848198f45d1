"""Ask what CASSINI gains on which policy, and write the page about it.

`runs` does all runs (half an hour of CPU time) and writes `results.csv`, `links.csv` and
`joint.csv`. `page` writes `README.md` and its pictures from them; `--check` compares them instead.
`runs --every N` repeats every Nth run and compares it with its row. Checks end with exit code 1
where something differs.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.writing import write_whole
from studies.cassini.study.observations import ROWS, RUNS
from studies.common.command import parsed, parser, report, write_page

STUDY = "cassini"


def main() -> None:
    """Do what the command line asks for."""
    arguments = parsed(parser(__doc__))
    if arguments.command == "page":
        write_page(STUDY, _write, arguments.check)
    elif arguments.every:
        report(STUDY, RUNS.differing(arguments.every))
    else:
        from studies.cassini.study.joint import write_joint
        from studies.cassini.study.links import write_links

        write_links()
        write_joint()
        RUNS.do_all(arguments.workers)


def _write(folder: Path) -> None:
    from studies.cassini.study.pictures import draw_all
    from studies.cassini.study.wording import page_text

    rows = ROWS.read()
    draw_all(rows, folder)
    write_whole(folder / "README.md", page_text(rows))


if __name__ == "__main__":
    main()
