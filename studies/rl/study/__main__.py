"""Ask whether learned policies beat good rules under contention, and write the page about it.

`runs` does all runs and writes `results.csv`. `page` writes `README.md` from it and from
`paper.csv`; `--check` compares instead. `runs --every N` repeats every Nth run and compares it with
its row. Checks end with exit code 1 where something differs. `paper --tables FOLDER --trace FILE`
repeats the paper's setting with its own tables, which do not ship, and writes `paper.csv`.
`trainings --folder FOLDER` runs the networks `FOLDER/NETWORK-SEED/policy.npz` and writes
`trainings.csv`.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.writing import write_whole
from studies.common.command import parsed, parser, path, runs_or_page
from studies.rl.study.observations import ROWS, RUNS


def main() -> None:
    """Do what the command line asks for."""
    words = parser(__doc__, "paper", "trainings")
    words.add_argument("--tables", type=path, help="paper: folder of the three CSV files")
    words.add_argument("--trace", type=path, help="paper: file of jobs")
    words.add_argument("--folder", type=path, help="trainings: folder of trainings")
    arguments = parsed(words)
    if arguments.command == "paper":
        from studies.rl.study.paper import write_paper

        if not (arguments.tables and arguments.trace):
            words.error("paper: it needs --tables FOLDER and --trace FILE")
        write_paper(arguments.tables, arguments.trace)
    elif arguments.command == "trainings":
        from studies.rl.study.trainings import write_trainings

        if not arguments.folder:
            words.error("trainings: it needs --folder FOLDER")
        write_trainings(arguments.folder)
    else:
        runs_or_page(arguments, "rl", RUNS, _write)


def _write(folder: Path) -> None:
    from studies.rl.study.wording import page_text

    write_whole(folder / "README.md", page_text(ROWS.read()))


if __name__ == "__main__":
    main()
