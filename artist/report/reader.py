"""Reads and checks run directories. Everything that a report shows comes from here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from artist.config import SIZES, Scenario
from artist.errors import ConfigError, TraceError, shortened
from artist.io.documents import validate
from artist.io.reading import is_file, read_text
from artist.report.sweep_folders import outside_grids
from artist.results.run_directory import MANIFEST

Numbers = npt.NDArray[np.float64]

_TEXT = {
    "jobs": ("job_id", "model"),
    "placements": ("job_id", "level", "placement", "signature", "ended"),
    "timeline": (),
    "autotuner": ("level",),
    "waits": ("job_id", "cause", "reason"),
    "links": ("link",),
    "circles": ("link", "job_id"),
    "outages": ("kind", "event"),
    "failure_sizes": (),
    "tenant_use": ("tenant",),
    "priorities": (),
    "copies": (),
    "data_use": ("region",),
    "data_regions": ("region",),
    "data_plan": ("number",),
    "data_balance": ("region", "kind"),
    "data_days": (),
    "data_moves": ("table", "from", "to", "gain"),
}
_NUMBERS = {
    "jobs": (
        "gpus", "iterations", "arrival_s", "finish_s", "jct_s", "queue_delay_s", "run_s",
        "ideal_s", "comm_s", "compute_s", "stalled_s", "finish_time_fairness", "preemptions",
        "migrations",
    ),
    "placements": ("gpus", "start_s", "end_s", "iteration_s"),
    "timeline": (
        "time_s", "gpus_held", "gpus_computing", "gpus_communicating", "gpus_fragmented",
        "jobs_running", "jobs_waiting",
    ),
    "autotuner": ("time_s", "gpus", "timer_s"),
    "waits": ("start_s", "wait_s", "free_gpus_max", "left_free_s"),
    "links": ("start_s", "end_s", "jobs", "utilisation", "demand"),
    "circles": (
        "time_s", "turn_s", "capacity_bytes_per_s", "score_at_random", "iteration_s", "on_circle_s",
        "up_s", "bytes_per_s", "shift_s",
    ),
    "outages": ("gpus", "jobs", "lost_gpu_s"),
    "failure_sizes": (
        "gpus", "jobs", "run_s", "failures", "failures_expected", "training_time_ratio",
        "lost_gpu_s",
    ),
    "tenant_use": ("start_s", "end_s", "gpus_held_mean", "entitled_gpus"),
    "priorities": ("priority", "jobs", "queue_delay_mean_s"),
    "copies": ("bytes", "start_s"),
    "data_use": ("gpu_h",),
    "data_regions": ("region_gpus",),
    "data_plan": ("before", "after"),
    "data_balance": (
        "supply_gpu_h", "urgent_over_supply_before", "urgent_over_supply_after",
        "demand_over_supply_before", "demand_over_supply_after",
    ),
    "data_days": ("day", "moved_bytes", "objective", "ratio_max"),
    "data_moves": ("day", "size_bytes"),
}  # fmt: skip
# More columns of numbers if jobs compete on links.
_CONTENDED = {
    "jobs": ("contention_slowdown", "contention_lost_s"),
    "placements": ("alone_iteration_s", "stalled_s"),
}
# Columns of numbers that a file may lack, and columns of lists of texts.
_PERHAPS = {"jobs": ("alone_s",), "placements": ("iterations",)}
_LISTS = {"waits": ("waited_for",), "links": ("job_ids",)}
# Least values. Communication and losses may be less than 0 by rounding; timers may be anything.
_POSITIVE = frozenset({
    "gpus", "iterations", "jct_s", "ideal_s", "alone_s", "iteration_s", "alone_iteration_s",
    "finish_time_fairness", "turn_s", "capacity_bytes_per_s", "on_circle_s",
})  # fmt: skip
_PERHAPS_NONE = "placements", "iterations"
"""An interval may end no iteration; every job has some."""
_ANY = frozenset({
    "comm_s", "timer_s", "contention_slowdown", "contention_lost_s", "score_at_random",
})  # fmt: skip
_OF_CONTENDED = frozenset({"links", "circles"})
"""Read only where jobs compete on links."""
_OF_DATA = (
    "data_use", "data_regions", "data_plan", "data_balance", "data_days", "data_moves",
)  # fmt: skip
_OPTIONAL = frozenset({
    "autotuner", "waits", "links", "circles", "outages", "failure_sizes", "tenant_use",
    "priorities", "copies", *_OF_DATA,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rows:
    """The columns of one file that a report uses."""

    text: Mapping[str, list[str]]
    numbers: Mapping[str, Numbers]
    count: int
    lists: Mapping[str, list[list[str]]] = field(default_factory=dict)

    def __getitem__(self, column: str) -> Numbers:
        return self.numbers[column]


@dataclass(frozen=True, slots=True)
class Run:
    """One run directory."""

    name: str
    """The path of the directory; it begins with the path that the user gave."""
    scenario: Mapping[str, Any]
    manifest: Mapping[str, Any]
    summary: Mapping[str, Any]
    jobs: Rows
    placements: Rows
    timeline: Rows
    autotuner: Rows | None
    waits: Rows | None = None
    """None: the run was made by a version of artist that did not record waits."""
    links: Rows | None = None
    """None: jobs do not compete on links, or the run did not keep what links carried."""
    circles: Rows | None = None
    """None: no jobs took turns on links (CASSINI)."""
    outages: Rows | None = None
    """One row per outage; None if nothing fails and no job writes checkpoints. So with the next."""
    failure_sizes: Rows | None = None
    """One row per size of a job."""
    tenant_use: Rows | None = None
    """None: no job has a tenant."""
    priorities: Rows | None = None
    """None: no job has a priority."""
    copies: Rows | None = None
    """None: no run with data. So with the next two."""
    data_use: Rows | None = None
    data_regions: Rows | None = None
    data_plan: Rows | None = None
    """None: the data file is part of no plan of `artist place-data`. So with the next three."""
    data_balance: Rows | None = None
    data_days: Rows | None = None
    data_moves: Rows | None = None

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
) -> list[Run]:
    """The runs of all paths. A path is a run directory or a folder that contains some.

    Of a sweep only the runs of its present grid are taken. `on_left_out` is told each sweep's
    folder that has others, and how many. A run directory that is a path itself is always taken.

    Raises:
        ConfigError: a path is no run directory and contains none.
        TraceError: a file in a run directory is missing or damaged.
    """
    runs: dict[Path, Run] = {}
    for path in paths:
        there = find_runs(path)
        outside = {} if there == [path] else outside_grids(there)
        for sweep, left_out in outside.items():
            there = [run for run in there if run not in left_out]
            if on_left_out:
                on_left_out(sweep, len(left_out))
        inside = [read_run(run) for run in there if run not in runs]
        # A folder has no order, so runs are sorted by policy; equal policies stay in the order of
        # their directory names.
        inside.sort(key=lambda run: str(run.scenario["policy"]))
        runs |= {Path(run.name): run for run in inside}
    return list(runs.values())


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


def read_run(path: Path) -> Run:
    """Read one run directory.

    Raises:
        TraceError: a file is missing or damaged, or there is nothing to show.
    """
    manifest = _read_json(path / MANIFEST)
    scenario = manifest.get("scenario")
    if not isinstance(scenario, dict) or "policy" not in scenario:
        raise TraceError(f"{path / MANIFEST}: has no scenario with a policy")
    # Earlier versions wrote sizes beside a tree, which had no effect.
    if scenario.get("tree") is not None:
        scenario = {key: value for key, value in scenario.items() if key not in SIZES}
    _check_scenario(scenario, path / MANIFEST)
    contended = _contended(scenario)
    names = [name for name in _TEXT if contended or name not in _OF_CONTENDED]
    tables = {name: _read_rows(path, name, contended=contended) for name in names}
    jobs, placements, timeline = (tables[name] for name in ("jobs", "placements", "timeline"))
    assert jobs is not None and placements is not None and timeline is not None
    for name, rows in (("jobs", jobs), ("placements", placements), ("timeline", timeline)):
        if not rows.count:
            raise TraceError(f"{path / name}.parquet: has no rows, so there is nothing to plot")
    summary = _read_json(path / "summary.json")
    run = Run(
        str(path), scenario, manifest, summary, jobs, placements, timeline,
        tables["autotuner"], tables["waits"], tables.get("links"), tables.get("circles"),
        tables["outages"], tables["failure_sizes"], tables["tenant_use"], tables["priorities"],
        tables["copies"], *(tables[name] for name in _OF_DATA),
    )  # fmt: skip
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
        # pydantic reads the text "1" as 1, but a replicate is told by the number itself.
        if type(scenario.get(name, 0)) is not int:
            raise TraceError(f"{path}: {name} is {scenario[name]!r}, expected a whole number")


def _contended(scenario: Mapping[str, Any]) -> bool:
    return str(scenario.get("contention", "none")) != "none"


def _is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file() and any(path.glob("*.parquet"))


def _hidden(parts: Iterable[str]) -> bool:
    """Whether a folder's name begins with a dot, as the names of half-written runs do."""
    return any(part.startswith(".") for part in parts)


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(read_text(path, TraceError))
    except (ValueError, RecursionError) as cause:
        raise TraceError(f"{path}: is not valid JSON ({cause})") from cause
    if not isinstance(data, dict):
        raise TraceError(f"{path}: expected a JSON object, got {type(data).__name__}")
    return data


def _read_rows(folder: Path, name: str, *, contended: bool = False) -> Rows | None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    if not path.exists() and name in _OPTIONAL:
        return None
    lists = _LISTS.get(name, ())
    needed = (*_NUMBERS[name], *(_CONTENDED.get(name, ()) if contended else ()))
    wanted = (*_TEXT[name], *needed, *lists)
    if path.exists() and not is_file(path):  # on a pipe Arrow would wait forever
        raise TraceError(f"{path}: cannot be read (not a file)")
    try:
        file = pq.ParquetFile(path)
        missing = [column for column in wanted if column not in file.schema_arrow.names]
        # A policy that kept no such rows writes a file without columns.
        if missing and name in _OPTIONAL and not file.metadata.num_rows:
            return None
        if missing:
            raise TraceError(f"{path}: lacks the column {missing[0]!r}")
        numbers = [*needed]
        numbers += [c for c in _PERHAPS.get(name, ()) if c in file.schema_arrow.names]
        table = file.read(columns=[*_TEXT[name], *numbers, *lists])
    except (OSError, ValueError, pa.ArrowException) as cause:
        reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        raise TraceError(
            f"{path}: cannot be read as Parquet ({reason}); simulate the run again"
        ) from cause
    text = {column: _texts(table[column], path, column) for column in _TEXT[name]}
    return Rows(
        text,
        {
            column: _numbers(table[column], path, column, least_0=(name, column) == _PERHAPS_NONE)
            for column in numbers
        },
        table.num_rows,
        {column: _text_lists(table[column], path, column) for column in lists},
    )


def _texts(column: Any, path: Path, name: str) -> list[str]:
    try:
        return [str(value) for value in column.to_pylist()]
    except ValueError as cause:
        raise TraceError(f"{path}: the column {name!r} should hold text") from cause


def _text_lists(column: Any, path: Path, name: str) -> list[list[str]]:
    try:
        return [[str(value) for value in values or ()] for values in column.to_pylist()]
    except (TypeError, ValueError) as cause:
        raise TraceError(f"{path}: the column {name!r} should hold lists") from cause


def _numbers(column: Any, path: Path, name: str, *, least_0: bool = False) -> Numbers:
    try:
        values = np.asarray(column.to_numpy(), dtype=np.float64)
    except (TypeError, ValueError) as cause:
        raise TraceError(f"{path}: the column {name!r} should hold numbers") from cause
    if not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise TraceError(f"{path}: the column {name!r} has no number in row {row}")
    positive = name in _POSITIVE and not least_0
    bad = values <= 0 if positive else values < 0
    if name not in _ANY and bad.any():
        row = int(np.argmax(bad))
        expected = "more than 0" if positive else "0 or more"
        raise TraceError(
            f"{path}: the column {name!r} holds {values[row]:g} in row {row}, expected {expected}"
        )
    return values
