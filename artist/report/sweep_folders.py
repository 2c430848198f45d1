"""Which runs of a sweep's folder belong to its present grid.

A sweep whose grid has become smaller keeps the finished runs of the former grid, and has no row for
them in its results. A report leaves them out too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from artist.errors import ConfigError
from artist.io.reading import read_text


def outside_grids(folders: Sequence[Path]) -> Mapping[Path, list[Path]]:
    """Sweep folder -> those of the run directories that its present grid does not have."""
    if not any(folder.parent.name == "runs" for folder in folders):
        return {}
    from artist.experiments.sweep import EXPERIMENT  # most reports are of single runs

    of_sweeps: dict[Path, list[Path]] = {}
    for folder in folders:
        sweep = folder.parent.parent
        if folder.parent.name == "runs" and (sweep / EXPERIMENT).is_file():
            of_sweeps.setdefault(sweep, []).append(folder)
    outside = {sweep: _outside(sweep / EXPERIMENT, inside) for sweep, inside in of_sweeps.items()}
    return {sweep: left_out for sweep, left_out in outside.items() if left_out}


def _outside(file: Path, folders: Sequence[Path]) -> list[Path]:
    from artist.experiments.experiment import Experiment, runs

    try:
        experiment = Experiment.model_validate_json(read_text(file))
        ids = {run.id for run in runs(experiment)}
    except (ConfigError, ValueError, RecursionError):
        return []  # damaged, or of another version of artist: nothing is known of its grid
    left_out = [folder for folder in folders if folder.name not in ids]
    # Another version of artist names runs in another way.
    return left_out if len(left_out) < len(folders) else []
