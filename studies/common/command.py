"""The command line that studies share: `python -m studies.NAME.study runs|page`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from studies.common.page import differing
from studies.common.rows import ROOT, Runs


def parser(words: str | None, *commands: str) -> argparse.ArgumentParser:
    """Of `runs`, `page` and a study's other commands, with the options of the first two."""
    made = argparse.ArgumentParser(
        description=words, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("command", choices=("runs", "page", *commands))
    made.add_argument("--check", action="store_true", help="page: compare instead of writing")
    made.add_argument("--every", type=int, help="runs: repeat every Nth run and compare")
    made.add_argument("--workers", type=int, default=1, help="runs: processes")
    return made


def path(text: str) -> Path:
    """A path on the command line, from where the program was started."""
    return Path(text).resolve()


def parsed(words: argparse.ArgumentParser) -> argparse.Namespace:
    """The arguments. From here on the program stands in the repository's root."""
    arguments = words.parse_args()
    os.chdir(ROOT)
    return arguments


def runs_or_page(
    arguments: argparse.Namespace, study: str, runs: Runs, write: Callable[[Path], None]
) -> None:
    """Do all runs or repeat some of them, or write the page or compare it."""
    if arguments.command == "page":
        write_page(study, write, arguments.check)
    elif arguments.every:
        report(study, runs.differing(arguments.every))
    else:
        runs.do_all(arguments.workers)


def write_page(study: str, write: Callable[[Path], None], check: bool) -> None:
    """Write a study's page and pictures into its folder, or compare them."""
    folder = ROOT / "studies" / study
    if check:
        report(study, differing(write, folder))
    else:
        write(folder)


def report(study: str, names: Iterable[str]) -> None:
    """End with exit code 1 where something differs."""
    told = [f"{name} differs; `make study-{study}` rebuilds it" for name in names]
    if told:
        sys.exit("\n".join(told))
