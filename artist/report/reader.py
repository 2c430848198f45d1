"""Reads and checks all that a report shows: run directories, and comparisons in several worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.config import SIZES, Scenario
from artist.errors import ConfigError, TraceError, shortened
from artist.experiments.run_folder import DECIDES, EXPERIMENT
from artist.io.documents import Document, validate
from artist.io.reading import read_json, read_text
from artist.results.run_directory import MANIFEST
from artist.results.table_files import read_table
from artist.results.terms.columns import TABLE_TERMS, TABLES

Numbers = npt.NDArray[np.float64]

_ALWAYS = "jobs", "placements", "timeline"
"""The tables that every run has; a report is about their rows."""


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The columns of one file that a report uses."""

    text: Mapping[str, list[str]]
    numbers: Mapping[str, Numbers]
    count: int
    lists: Mapping[str, list[list[str]]] = field(default_factory=dict)

    def __getitem__(self, column: str) -> Numbers:
        return self.numbers[column]

    @property
    def sharers(self) -> Numbers:
        """For placements: the jobs that share the GPUs equally, or 1 / the job's share of a GPU."""
        if "gpu_share" in self.numbers:
            return 1.0 / self.numbers["gpu_share"]
        beside = self.lists.get("beside")
        return np.ones(self.count) if beside is None else np.array([1.0 + len(x) for x in beside])


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run directory."""

    name: str
    """The path of the directory; it begins with the path that the user gave."""
    scenario: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    jobs: FileColumns
    placements: FileColumns
    timeline: FileColumns
    autotuner: FileColumns | None = None
    waits: FileColumns | None = None
    """None: the run was made by a version of artist that did not record waits."""
    links: FileColumns | None = None
    """None: jobs do not compete on links, or the run did not keep what links carried."""
    circles: FileColumns | None = None
    """None: no jobs took turns on links (CASSINI)."""
    outages: FileColumns | None = None
    """One row per outage; None if nothing fails and no job writes checkpoints."""
    failure_sizes: FileColumns | None = None
    """One row per size of a job; None as `outages`."""
    tenant_use: FileColumns | None = None
    """None: no job has a tenant."""
    priorities: FileColumns | None = None
    """None: no job has a priority."""
    copies: FileColumns | None = None
    """None, as `data_use` and `data_regions`: a run without data."""
    data_use: FileColumns | None = None
    data_regions: FileColumns | None = None
    data_plan: FileColumns | None = None
    """None, as the next three: the data file is part of no plan of `artist place-data`."""
    data_balance: FileColumns | None = None
    data_days: FileColumns | None = None
    data_moves: FileColumns | None = None
    wait_causes: FileColumns | None = None
    """None: the policy gave no reason for any wait."""

    @property
    def finished(self) -> FileColumns:
        """`jobs` without those that were cancelled, which have no completion time."""
        if "cancelled" not in self.jobs.numbers:
            return self.jobs
        at = np.flatnonzero(self.jobs["cancelled"] == 0)
        text = {name: [each[row] for row in at] for name, each in self.jobs.text.items()}
        numbers = {name: each[at] for name, each in self.jobs.numbers.items()}
        return FileColumns(text, numbers, len(at))

    @property
    def contended(self) -> bool:
        """Whether jobs compete on links."""
        return _contended(self.scenario)

    def metric(self, key: str) -> float:
        """A number of `summary.json`.

        Raises:
            TraceError: the summary lacks it, or it is not a number.
        """
        value = self.summary.get(key)
        # 1e100 is larger than any time, count or share, and sums of such numbers stay finite.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e100:
            got = shortened(value)
            raise TraceError(f"{self.name}/summary.json: {key} should be a number, got {got}")
        return float(value)


def read_runs(
    paths: Sequence[Path], on_left_out: Callable[[Path, int], None] | None = None
) -> list[RecordedRun]:
    """The runs of all paths. A path is a run directory or a folder that contains some.

    Only those runs of a sweep are read that belong to its present grid. `on_left_out` gets the
    folder of each sweep that has other runs, and their number. A run directory given by its own
    path is always read.

    Raises:
        ConfigError: a path is not a run directory and contains none.
        TraceError: a file in a run directory is missing or damaged.
    """
    runs: dict[Path, RecordedRun] = {}
    for path in paths:
        there = find_runs(path)
        outside = {} if there == [path] else _outside_grids(there)
        for sweep, left_out in outside.items():
            there = [run for run in there if run not in left_out]
            if on_left_out:
                on_left_out(sweep, len(left_out))
        inside = [read_run(run) for run in there if run not in runs]
        # A folder has no order, so runs are sorted by policy and options, then by directory name.
        inside.sort(key=_policy_and_options)
        runs |= {Path(run.name): run for run in inside}
    return list(runs.values())


def _policy_and_options(run: RecordedRun) -> tuple[str, list[tuple[str, bool, float, str]]]:
    """The sorting key of the runs of a folder: 600 before 14,400, and numbers before words."""
    options = run.scenario.get("policy_options") or {}
    return str(run.scenario["policy"]), [
        (name, False, value, "") if isinstance(value, int | float) else (name, True, 0, str(value))
        for name, value in sorted(options.items())
    ]


def find_runs(path: Path) -> list[Path]:
    """The run directories at or below a path, in the order of their names.

    Raises:
        ConfigError: the path does not exist, is a file, or contains no run directory.
    """
    if not path.is_dir():
        problem = "is a file" if path.exists() else "does not exist"
        raise ConfigError(f"{path}: {problem}; expected a run directory (artist sim --out DIR)")
    if _is_run(path):
        return [path]
    runs = sorted(
        folder
        for folder in (manifest.parent for manifest in path.rglob(MANIFEST))
        if _is_run(folder) and not _hidden(folder.relative_to(path).parts)
    )
    if not runs:
        raise ConfigError(
            f"{path}: not a run directory and holds none (no {MANIFEST} with jobs.parquet); "
            "make one with artist sim --out DIR"
        )
    return runs


def _outside_grids(folders: Sequence[Path]) -> Mapping[Path, list[Path]]:
    """Sweep folder -> the run directories that its present grid does not have.

    A sweep whose grid has become smaller keeps the finished runs of the former grid, without a row
    in its results. A report leaves them out, too.
    """
    if not any(folder.parent.name == "runs" for folder in folders):
        return {}
    of_sweeps: dict[Path, list[Path]] = {}
    for folder in folders:
        sweep = folder.parent.parent
        if folder.parent.name == "runs" and (sweep / EXPERIMENT).is_file():
            of_sweeps.setdefault(sweep, []).append(folder)
    outside = {
        sweep: _outside_grid(sweep / EXPERIMENT, inside) for sweep, inside in of_sweeps.items()
    }
    return {sweep: left_out for sweep, left_out in outside.items() if left_out}


def _outside_grid(file: Path, folders: Sequence[Path]) -> list[Path]:
    """The folders of runs that are not in the experiment's grid; none if the grid is unknown."""

    from artist.experiments.experiment import Experiment, runs

    try:
        experiment = Experiment.model_validate_json(read_text(file))
        ids = {run.id for run in runs(experiment)}
    except (ConfigError, ValueError, RecursionError):
        return []  # damaged, or of another version of artist: nothing is known of its grid
    left_out = [folder for folder in folders if folder.name not in ids]
    # Another version of artist names runs in another way.
    return left_out if len(left_out) < len(folders) else []


def read_run(path: Path) -> RecordedRun:
    """Read one run directory.

    Raises:
        TraceError: a file is missing or damaged, or there is nothing to show.
    """
    manifest = read_json(path / MANIFEST)
    scenario = manifest.get("scenario")
    if not isinstance(scenario, dict) or "policy" not in scenario:
        raise TraceError(f"{path / MANIFEST}: has no scenario with a policy")
    # Earlier versions wrote sizes beside a tree, which had no effect.
    if scenario.get("tree") is not None:
        scenario = {key: value for key, value in scenario.items() if key not in SIZES}
    _check_scenario(scenario, path / MANIFEST)
    contended = _contended(scenario)
    always = [_rows_to_plot(path, name, contended=contended) for name in _ALWAYS]
    jobs, placements, timeline = always
    sometimes = {
        name: _rows(path, name, contended=contended)
        for name, term in TABLE_TERMS.items()
        if term.is_read_by("report")
        and name not in _ALWAYS
        and (contended or term.when != "contention")
    }
    summary = read_json(path / "summary.json")
    run = RecordedRun(
        str(path), scenario, manifest, summary, jobs, placements, timeline, **sometimes
    )
    if run.metric("gpus") < 1:
        raise TraceError(f"{path}/summary.json: gpus should be 1 or more, got {run.metric('gpus')}")
    return run


def _check_scenario(scenario: Mapping[str, Any], path: Path) -> None:
    """Check the settings that this version knows. Settings of other versions are not checked."""
    known = {key: value for key, value in scenario.items() if key in Scenario.model_fields}
    try:
        validate(known, Scenario, f"{path}: scenario")
    except ConfigError as cause:
        raise TraceError(str(cause)) from cause
    for name in ("seed", "permutation"):
        # pydantic reads the text "1" as 1, but replicates are identified by the number itself.
        if type(scenario.get(name, 0)) is not int:
            raise TraceError(f"{path}: {name} is {scenario[name]!r}, expected a whole number")


def _contended(scenario: Mapping[str, Any]) -> bool:
    return str(scenario.get("contention", "none")) != "none"


def _is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file() and any(path.glob("*.parquet"))


def _hidden(parts: Iterable[str]) -> bool:
    """Whether a folder's name begins with a dot, as the names of half-written runs do."""
    return any(part.startswith(".") for part in parts)


def _rows(folder: Path, name: str, *, contended: bool) -> FileColumns | None:
    """The columns of a table that a report shows; None if the run has no such rows."""
    table = read_table(folder, name, "report", contended=contended)
    if table is None:
        return None
    text: dict[str, list[str]] = {}
    lists: dict[str, list[list[str]]] = {}
    numbers: dict[str, Numbers] = {}
    for term in TABLES[name]:
        if term.name not in table.column_names:
            continue
        if term.type == "text":
            text[term.name] = table[term.name].to_pylist()
        elif term.type == "texts":
            lists[term.name] = table[term.name].to_pylist()
        else:
            numbers[term.name] = np.asarray(table[term.name].to_numpy(), dtype=np.float64)
    return FileColumns(text, numbers, table.num_rows, lists)


def _rows_to_plot(folder: Path, name: str, *, contended: bool) -> FileColumns:
    rows = _rows(folder, name, contended=contended)
    if rows is None or not rows.count:
        raise TraceError(f"{folder / name}.parquet: has no rows, so there is nothing to plot")
    return rows


class InWorld(Document):
    """A difference in one world; None where a value is 0, or an interval has no end."""

    world: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str


class Difference(Document):
    """A variant against the baseline in a metric, in all worlds."""

    metric: str
    variant: str
    worlds: tuple[InWorld, ...]


class Decides(Document):
    """A comparison in several worlds."""

    setting: str
    baseline: str
    design: str
    not_tried: tuple[str, ...]
    differences: tuple[Difference, ...]


def read_worlds(folders: Sequence[Path]) -> tuple[Decides, ...]:
    """The results of the folders' comparisons in several worlds, from folders that have one.

    Raises:
        ConfigError, TraceError: a `decides.json` is damaged.
    """
    files = [folder / DECIDES for folder in folders if (folder / DECIDES).is_file()]
    return tuple(validate(read_json(file), Decides, str(file)) for file in files)
