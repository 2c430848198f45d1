"""One finished run: its summary, the tables behind it, and where everything came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.config import Scenario
from artist.errors import UnknownNameError
from artist.results.metrics import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Result:
    """One finished run. Columns and units are those of the run directory's files."""

    scenario: Scenario
    summary: Mapping[str, Any]
    """The run's statistics, as in `summary.json`; `artist explain KEY` gives formulas."""
    tables: Mapping[str, Table]
    """`jobs`, `placements`, `timeline`, and those that the policy adds: columns by name."""
    inputs: Mapping[str, str]
    """SHA-256 of each input."""
    store_hits: int
    """Estimates that came from the disk cache instead of the backend."""
    trace_filled: Sequence[str]
    """What the trace does not tell and was filled in: by which rule, in how many jobs."""
    trace_dropped: Mapping[str, int]
    """Rows of the trace that were left out, by reason."""

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the order of arrival."""
        return self.table("jobs")

    @cached_property
    def placements(self) -> pd.DataFrame:
        """One row per job, GPUs and constant speed, in the order in which they ended."""
        return self.table("placements")

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """The cluster's state, one row per change."""
        return self.table("timeline")

    def table(self, name: str) -> pd.DataFrame:
        """A fresh copy of any table of the run; Dally adds `autotuner`.

        Raises:
            UnknownNameError: the run has no table of that name.
        """
        from artist.results.arrow_tables import arrow_table

        if name not in self.tables:
            raise UnknownNameError(
                "table", name, self.tables, f"this run has {', '.join(self.tables)}"
            )
        frame: pd.DataFrame = arrow_table(self.tables[name]).to_pandas()
        return frame

    def save(self, out: str | Path) -> None:
        """Write a run directory as `artist sim --out` does; an earlier run there is replaced.

        Raises:
            ConfigError: the path holds something else, or cannot be written.
        """
        from artist.results.run_directory import write_run

        write_run(self, Path(out), ["artist.Result.save"])
