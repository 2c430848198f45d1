"""The rows of `results.csv`: one per run. They alone stand between the runs and the page."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping, Sequence
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from plan import Planned, planned

from artist.estimates.query import Estimate, LatencyQuery
from artist.io.writing import write_whole
from artist.run import drive, prepare
from artist.units import TICKS_PER_S

HERE = Path(__file__).resolve().parent.parent
RESULTS = HERE / "results.csv"

PLACE = ("machines", "load", "policy", "seed")
COLUMNS = (*PLACE, "jct_mean_s")
Row: TypeAlias = Mapping[str, str]


class Kept:
    """Estimates of this process. They are facts about models and links, the same in all runs."""

    def __init__(self) -> None:
        self._kept: dict[tuple[LatencyQuery, str, bool], Estimate] = {}

    def get(self, query: LatencyQuery, source: str, *, profile: bool = False) -> Estimate | None:
        """A kept estimate, or None."""
        return self._kept.get((query, source, profile))

    def put(self, query: LatencyQuery, estimate: Estimate, *, profile: bool = False) -> None:
        """Keep an estimate."""
        self._kept[query, estimate.source, profile] = estimate


ESTIMATES = Kept()


def row_of(run: Planned) -> dict[str, str]:
    """Do a run."""
    prepared = prepare(run.scenario(), store=ESTIMATES)
    drive(prepared)
    jobs = prepared.simulator.rows.jobs
    jct_mean_s = fmean((row.finish - row.arrival) / TICKS_PER_S for row in jobs)
    # Ten digits: sums of floats differ in their last ones between processors.
    return {**dict(zip(PLACE, run.place, strict=True)), "jct_mean_s": f"{jct_mean_s:.10g}"}


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


def differing_runs(every: int) -> list[str]:
    """Repeat every Nth run. The answer names those with another row."""
    kept = {tuple(row[column] for column in PLACE): row for row in read(RESULTS)}
    return [" ".join(run.place) for run in planned()[::every] if kept.get(run.place) != row_of(run)]


def read(path: Path, columns: Sequence[str] = COLUMNS) -> list[Row]:
    """The rows of a results file; the program ends if it is missing or has other columns."""
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as stream:
            rows = csv.DictReader(stream)
            if tuple(rows.fieldnames or ()) == tuple(columns):
                return list(rows)
    sys.exit(f"{path}: no rows with today's columns; `make study-rl` makes them anew")


def write(path: Path, rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> None:
    """Write a results file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue())


def _done(kept: Path) -> dict[tuple[str, ...], dict[str, str]]:
    if not kept.is_file():
        return {}
    with kept.open(encoding="utf-8", newline="") as stream:
        return {tuple(row[column] for column in PLACE): row for row in csv.DictReader(stream)}
