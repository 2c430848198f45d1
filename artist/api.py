"""The library: what `import artist` offers, on top of what the command line uses.

Names are loaded when they are first used, so that `import artist` stays cheap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artist import config, run
from artist.cluster.fabric import load_fabric
from artist.config import Scenario
from artist.errors import (
    ArtistError,
    BackendError,
    ConfigError,
    InvariantError,
    PolicyError,
    TraceError,
    UnknownNameError,
)
from artist.estimates.cache import open_store
from artist.estimates.query import Estimate
from artist.estimates.query_from_text import on_placement, parse_system
from artist.estimates.service import answer
from artist.experiments.compare import Comparison, Difference, compare
from artist.results.arrow_tables import arrow_table
from artist.results.run_directory import write_run
from artist.workload.models import workload

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ArtistError",
    "BackendError",
    "Comparison",
    "ConfigError",
    "Difference",
    "Estimate",
    "InvariantError",
    "PolicyError",
    "Result",
    "Scenario",
    "TraceError",
    "UnknownNameError",
    "compare",
    "latency",
    "load_scenario",
    "simulate",
]


@dataclass(frozen=True)
class Result:
    """One finished run. Columns and units are those of the run directory's files."""

    run: run.Result

    @property
    def scenario(self) -> Scenario:
        """What was simulated."""
        return self.run.scenario

    @property
    def summary(self) -> Mapping[str, Any]:
        """The run's statistics, as in `summary.json`; `artist explain KEY` gives formulas."""
        return self.run.summary

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
        if name not in self.run.tables:
            known = ", ".join(self.run.tables)
            raise UnknownNameError("table", name, self.run.tables, f"this run has {known}")
        frame: pd.DataFrame = arrow_table(self.run.tables[name]).to_pandas()
        return frame

    def save(self, out: str | Path) -> None:
        """Write a run directory as `artist sim --out` does; an earlier run there is replaced.

        Raises:
            ConfigError: the path holds something else, or cannot be written.
        """
        write_run(self.run, Path(out), ["artist.Result.save"])


def load_scenario(path: str | Path, **changes: Any) -> Scenario:
    """A scenario file, some of its settings changed by name.

    Raises:
        ConfigError: unreadable file, unknown setting or bad value; names file and line.
    """
    return config.load_scenario(Path(path), changes, ())


def simulate(scenario: Scenario, *, check: bool = False, cache: bool = True) -> Result:
    """Run a scenario, as `artist sim` does.

    `check` verifies the simulator's invariants after every event. `cache` keeps estimates on
    disk between runs; the rows are the same with and without it.

    Raises:
        ArtistError: whatever is wrong with the scenario, by the kind of mistake.
    """
    with open_store(enabled=cache and scenario.backend != "none") as store:
        return Result(run.simulate(scenario, check=check, store=store))


def latency(
    model: str,
    placement: str,
    *,
    fabric: str = "dally2025",
    backend: str = "analytical",
    system: Mapping[str, Any] = MappingProxyType({}),
) -> Estimate:
    """One training iteration of a model on a placement such as `4+4,8/2`, as `artist latency`.

    `fabric` is a name or a file; `system` replaces ASTRA-sim settings, e.g.
    `{"scheduling_policy": "FIFO"}`. The answer is in nanoseconds.

    Raises:
        ConfigError: an unknown name, or no placement of that fabric.
        BackendError: the backend cannot answer.
    """
    changes = parse_system([f"{key}={value}" for key, value in system.items()])
    question = on_placement(workload(model), placement, load_fabric(fabric), changes)
    return answer(run.open_backend(backend), question.query)
