"""Keeps the runs of comparisons in a folder, so that a stopped comparison can continue.

A run's name follows from its scenario. So one folder serves comparisons with any variants,
replicates and worlds: each makes only the runs that the folder lacks.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from artist.config import Scenario
from artist.errors import ConfigError
from artist.experiments.comparison.runs import Summary
from artist.experiments.experiment import Experiment, Run
from artist.experiments.resume import Inputs, check_inputs
from artist.experiments.run_folder import (
    RESULTS,
    RESULTS_PARQUET,
    check_unchanged,
    claimed,
    remove_leftovers,
    run_summary,
)
from artist.experiments.sweep import RunTask, locally
from artist.results.run_directory import MANIFEST
from artist.results.table_files import write_table
from artist.results.terms.glossary import column_of

_MARK = Experiment(name="comparison", version=1, summary="runs of artist compare")


class KeptRuns:
    """A runner (`runs.Runner`) whose runs stay in a folder."""

    def __init__(
        self, out: Path, command: Sequence[str], workers: int, go_on: Callable[[], bool]
    ) -> None:
        self._out, self._folder = out, out / "runs"
        self._command, self._workers, self._go_on = tuple(command), workers, go_on
        self._inputs = Inputs()
        self._used: dict[str, Run] = {}
        self.reused = 0
        """Runs that were there already."""

    def __call__(self, scenarios: Sequence[Scenario]) -> Iterator[tuple[int, Summary]]:
        """Yield position and summary of each run; those that are there already come first.

        Raises:
            ConfigError: a run failed, or one that is there read other inputs than there are now.
            TraceError: a run that is there was changed.
        """
        runs = [Run(_id(scenario), (), scenario) for scenario in scenarios]
        places = {run.id: index for index, run in enumerate(runs)}
        self._used |= {run.id: run for run in runs}
        there = [run for run in runs if (self._folder / run.id / MANIFEST).is_file()]
        check_inputs(there, self._folder, self._inputs, self._out)
        for run in there:
            check_unchanged(self._folder / run.id)
            self.reused += 1
            yield places[run.id], run_summary(self._folder / run.id)
        missing = [run for run in runs if run not in there]
        tasks = [
            RunTask(run.id, run.scenario, self._folder / run.id, self._command, os.getpid())
            for run in missing
        ]
        with closing(locally(tasks, self._workers, self._go_on)) as outcomes:
            for outcome in outcomes:
                if outcome.error:
                    raise ConfigError(f"run {outcome.id} failed: {outcome.error}")
                yield places[outcome.id], run_summary(self._folder / outcome.id)

    def write_results(self) -> None:
        """Write a row for each run that the comparison used: its settings, then its summary.

        Only settings in which runs differ have a column. Without them, runs in several worlds
        could not be told apart.
        """
        done = [run for run in self._used if (self._folder / run / MANIFEST).is_file()]
        scenarios = [self._used[run].scenario for run in done]
        varied = [
            key
            for key in Scenario.model_fields
            if len({str(getattr(one, key)) for one in scenarios}) > 1
        ]
        rows = []
        for run, scenario in zip(done, scenarios, strict=True):
            # A group of settings, such as `fabric_options`, is one text.
            point = {column_of(key): str(getattr(scenario, key)) for key in varied}
            summary = run_summary(self._folder / run)
            del summary["wall_s"]
            # The summary has short names of some settings, which may be equal: `t` of `a/t.csv`.
            point = {k: v for k, v in point.items() if isinstance(summary.get(k, ""), str)}
            rows.append({"run": run} | point | summary | point)
        write_table(rows, self._out / RESULTS)
        write_table(rows, self._out / RESULTS_PARQUET)


@contextmanager
def kept_runs(
    out: Path,
    command: Sequence[str],
    workers: int,
    go_on: Callable[[], bool],
    *,
    resume: bool,
    overwrite: bool,
) -> Iterator[KeptRuns]:
    """Claim the folder for the runs of a comparison.

    Raises:
        ConfigError: as `claimed`.
    """
    with claimed(_MARK, out, resume, overwrite):
        remove_leftovers(out)
        yield KeptRuns(out, command, workers, go_on)
        remove_leftovers(out)


def _id(scenario: Scenario) -> str:
    """Policy and replicate, readable, and a digest of the scenario."""
    digest = hashlib.sha256(scenario.model_dump_json().encode()).hexdigest()[:16]
    policy = re.sub(r"[^A-Za-z0-9.-]+", "-", scenario.policy).strip("-")[-40:]
    return f"{policy}_{scenario.seed}_{scenario.permutation}_{digest}"
