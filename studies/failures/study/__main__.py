"""Compare failures of simulated clusters with those that Meta published, and write the page.

`runs` simulates the cases of `cases.yaml` and writes `results.csv`. `page` writes `README.md` from
it; `--check` compares instead, and ends with exit code 1 where something differs.
"""

from __future__ import annotations

import argparse
import sys

from simulated import HERE, RESULTS, cases, read, simulated, text_of
from wording import page_text

from artist.io.writing import write_whole

PAGE = HERE / "README.md"


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("runs", "page"))
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    if arguments.command == "runs":
        path, text = RESULTS, text_of([simulated(case) for case in cases()])
    else:
        path, text = PAGE, page_text(cases(), read())
    if not arguments.check:
        write_whole(path, text)
    elif not path.is_file() or path.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{path} differs; `make study-failures` makes it anew\n")
        sys.exit(1)


if __name__ == "__main__":
    main()
