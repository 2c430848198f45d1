"""Ask which policy, order of ranks and layout suit language-model jobs, and write the page.

`runs` does all runs (half an hour of CPU time) and writes `results.csv`. `page` writes
`README.md` from it; `--check` compares it instead. `runs --every N` repeats every Nth run and
compares it with its row. Checks end with exit code 1 where something differs.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.writing import write_whole
from studies.common.command import parsed, parser, runs_or_page
from studies.llm.study.observations import ROWS, RUNS


def main() -> None:
    """Do what the command line asks for."""
    runs_or_page(parsed(parser(__doc__)), "llm", RUNS, _write)


def _write(folder: Path) -> None:
    from studies.llm.study.wording import page_text

    write_whole(folder / "README.md", page_text(ROWS.read()))


if __name__ == "__main__":
    main()
