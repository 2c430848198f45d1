"""Do all runs, and keep what is done, so that an interrupted study goes on where it stopped."""

from __future__ import annotations

import csv
from multiprocessing import get_context
from pathlib import Path

from observations import COLUMNS, PLACE, RESULTS, row_of, write
from plan import planned


def do_all(kept: Path, workers: int) -> None:
    """Do the runs that `kept` lacks, then write `results.csv`. `kept` has rows in any order."""
    done = _done(kept)
    todo = [run for run in planned() if run.place not in done]
    kept.parent.mkdir(parents=True, exist_ok=True)
    new = not kept.is_file()
    with kept.open("a", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        with get_context("spawn").Pool(workers) as pool:
            for row in pool.imap_unordered(row_of, todo):
                writer.writerow(row)
                stream.flush()
    done = _done(kept)
    write(RESULTS, [done[run.place] for run in planned()])


def _done(kept: Path) -> dict[tuple[str, ...], dict[str, str]]:
    if not kept.is_file():
        return {}
    with kept.open(encoding="utf-8", newline="") as stream:
        return {tuple(row[column] for column in PLACE): row for row in csv.DictReader(stream)}
