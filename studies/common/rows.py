"""What a study keeps of its runs: CSV files, a row per run.

These files alone stand between the runs and the page. If you doubt a number on a page, you find its
runs there, and `runs --every N` repeats a sample of them.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeAlias

from artist.io.writing import write_whole

Row: TypeAlias = Mapping[str, str]
ROOT = Path(__file__).resolve().parents[2]
"""Of the repository. Files of a study name others from here."""


@dataclass(frozen=True)
class RowsFile:
    """A CSV file of a study, with the columns that it has today."""

    path: Path
    columns: Sequence[str]
    study: str

    def read(self) -> list[Row]:
        """All rows; the program ends if the file is missing or has other columns."""
        if self.path.is_file():
            with self.path.open(encoding="utf-8", newline="") as stream:
                rows = csv.DictReader(stream)
                if tuple(rows.fieldnames or ()) == tuple(self.columns):
                    return list(rows)
        path = self.path
        sys.exit(f"{path}: no rows with today's columns; `make study-{self.study}` rebuilds them")

    def write(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Write all rows."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_whole(self.path, text.getvalue())


class Planned(Protocol):
    """A run of a study's plan."""

    @property
    def place(self) -> tuple[str, ...]:
        """The columns that name the run."""


@dataclass(frozen=True)
class Runs:
    """The runs of a study: their plan, and how one becomes a row."""

    file: RowsFile
    place: Sequence[str]
    """The columns that name a run, first in the file."""
    planned: Callable[[], Sequence[Planned]]
    row_of: Callable[..., Row]
    """Does a run; a function of a module, since processes share the runs."""

    def do_all(self, workers: int) -> None:
        """Do all runs and write the file.

        Done runs are kept in `build/`, in any order: an interrupted study goes on where it stopped.
        """
        kept = ROOT / "build" / self.file.study / "rows.csv"
        done = self._done(kept)
        todo = [run for run in self.planned() if run.place not in done]
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = not kept.is_file()
        with kept.open("a", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, self.file.columns, lineterminator="\n")
            if new:
                writer.writeheader()
            with get_context("spawn").Pool(workers) as pool:
                for row in pool.imap_unordered(self.row_of, todo):
                    writer.writerow(row)
                    stream.flush()
        done = self._done(kept)
        self.file.write(done[run.place] for run in self.planned())

    def differing(self, every: int) -> list[str]:
        """Repeat every Nth run. The answer names those with another row."""
        kept = {self._place(row): row for row in self.file.read()}
        sample = self.planned()[::every]
        return [" ".join(run.place) for run in sample if kept.get(run.place) != self.row_of(run)]

    def _done(self, kept: Path) -> dict[tuple[str, ...], Row]:
        if not kept.is_file():
            return {}
        with kept.open(encoding="utf-8", newline="") as stream:
            return {self._place(row): row for row in csv.DictReader(stream)}

    def _place(self, row: Row) -> tuple[str, ...]:
        return tuple(row[column] for column in self.place)
