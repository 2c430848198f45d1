"""Compare failures of simulated clusters with those that Meta published, and write the page.

`runs` simulates the cases of `cases.yaml` and writes `results.csv`. `page` writes `README.md` from
it; `--check` compares it instead. `runs --every N` repeats every Nth case and compares it with its
row. Checks end with exit code 1 where something differs.
"""

from __future__ import annotations

from pathlib import Path

from artist.io.writing import write_whole
from studies.common.command import parsed, parser, runs_or_page
from studies.failures.study.simulated import RUNS, cases, read
from studies.failures.study.wording import page_text


def main() -> None:
    """Do what the command line asks for."""
    runs_or_page(parsed(parser(__doc__)), "failures", RUNS, _write)


def _write(folder: Path) -> None:
    write_whole(folder / "README.md", page_text(cases(), read()))


if __name__ == "__main__":
    main()
