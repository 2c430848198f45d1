"""A finished run: its summary, its tables, and the inputs that it came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artist.config import Scenario
from artist.registry import UnknownNameError
from artist.results.metrics import Table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A finished run. Columns and units are those of the files in a run directory."""

    scenario: Scenario
    summary: Mapping[str, Any]
    """The run's statistics, as in `summary.json`; `artist explain KEY` gives formulas."""
    tables: Mapping[str, Table]
    """`jobs`, `placements`, `timeline`, the tables that the policy adds, and `waits`, by name.

    `waits` is computed when it is first asked for.
    """
    inputs: Mapping[str, str]
    """SHA-256 of each input."""
    store_hits: int
    """Estimates that came from the disk cache instead of the backend."""
    trace_filled: Sequence[str]
    """What the trace lacks and artist filled in: by which rule, and in how many jobs."""
    trace_dropped: Mapping[str, int]
    """How many rows of the trace were left out, by reason."""
    trace_mapped: Sequence[str] = ()
    """What a mapping of the trace's columns and models did, and where it is from."""

    def __repr__(self) -> str:
        """One line: what ran, and what came out."""
        from artist.results.notebook import short_text

        return short_text(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: a small table of the summary, below the run's setting."""
        from artist.results.notebook import html_table

        return html_table(self)

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job, in the order of arrival."""
        return self.table("jobs")

    @cached_property
    def placements(self) -> pd.DataFrame:
        """One row per interval: a job on the same GPUs at one speed. In the order of their ends."""
        return self.table("placements")

    @cached_property
    def timeline(self) -> pd.DataFrame:
        """The cluster's state, one row per change."""
        return self.table("timeline")

    @cached_property
    def waits(self) -> pd.DataFrame:
        """Why jobs waited: one row per stretch of time without GPUs, by its begin."""
        return self.table("waits")

    def table(self, name: str) -> pd.DataFrame:
        """A fresh copy of a table of the run. Dally adds the table `autotuner`.

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

    def save(self, out: str | Path, *, overwrite: bool = False) -> None:
        """Write a run directory, as `artist sim --out` does.

        Raises:
            ConfigError: the path holds something else, or an earlier run and not `overwrite`, or
                it cannot be written.
        """
        from artist.results.run_directory import check_target, write_run

        check_target(Path(out), overwrite=overwrite)
        write_run(self, Path(out), ["artist.Result.save"], overwrite=overwrite)
