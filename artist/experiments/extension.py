"""A sweep whose grid has changed: which finished runs does the new grid have?

A run's id holds its values in the grid and a digest of its scenario. Where a grid got a new
setting, a run of the same scenario has another id. Its folder gets that name then, so that the
sweep is the same as one of the new grid from the start.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist.errors import ConfigError
from artist.experiments.experiment import Run
from artist.io.reading import read_text
from artist.results.run_directory import MANIFEST


def adopt(grid: Sequence[Run], folder: Path) -> int:
    """Give finished runs of the grid's scenarios the grid's ids; how many runs it does not have."""
    ids = {run.id for run in grid}
    done = {manifest.parent.name for manifest in folder.glob(f"*/{MANIFEST}")}
    others = sorted(name for name in done - ids if not name.startswith("."))
    wanted: dict[str, list[Run]] = {}
    for run in grid:
        if run.id not in done:
            wanted.setdefault(_digest(run.id), []).append(run)
    outside = 0
    for name in others:
        candidates = wanted.get(_digest(name), [])
        same = _of_same_scenario(candidates, folder / name)
        if same is None:
            outside += 1
        else:
            candidates.remove(same)
            (folder / name).rename(folder / same.id)
    return outside


def _digest(run_id: str) -> str:
    """The digest at the end of an id. It is short, so equal ones still have to be compared."""
    return run_id.rpartition("_")[2]


def _of_same_scenario(candidates: Sequence[Run], folder: Path) -> Run | None:
    if not candidates:
        return None
    scenario = _scenario(folder / MANIFEST)
    for run in candidates:
        if json.loads(run.scenario.model_dump_json()) == scenario:
            return run
    return None


def _scenario(manifest: Path) -> Mapping[str, Any] | None:
    """The scenario that a run's manifest names; None if it is damaged: then it is nobody's."""
    try:
        scenario = json.loads(read_text(manifest))["scenario"]
    except (ConfigError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return scenario if isinstance(scenario, dict) else None
