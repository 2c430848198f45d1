"""What a resumed sweep may keep: finished runs that read the same inputs.

A run's id holds its values in the grid and a digest of its scenario. If the grid gets a new
setting, a run of the same scenario gets another id, and its folder is renamed. So the sweep looks
as if it had been made with the new grid from the start.

A sweep can be resumed after days. If a trace, fabric, calibration or other file has changed since,
one table would mix two experiments. So the digests in every run's manifest are compared with the
files as they are when the sweep resumes.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist import __version__
from artist.astra.files.chakra_folder import digest_of_model
from artist.config import Scenario
from artist.errors import ArtistError, ConfigError, TraceError
from artist.experiments.experiment import Run
from artist.io.reading import is_file, read_text
from artist.results.named_files import MAPPING, file_digests, mapping_file, named_files
from artist.results.run_directory import MANIFEST
from artist.run import link_digests
from artist.trace.named import trace_digest


def adopt(grid: Sequence[Run], folder: Path) -> int:
    """Rename finished runs of the grid's scenarios to the grid's ids.

    Returns how many finished runs are not in the grid.
    """
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
    """The scenario that a run's manifest names; None if the manifest is damaged."""
    try:
        scenario = json.loads(read_text(manifest))["scenario"]
    except (ConfigError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return scenario if isinstance(scenario, dict) else None


class Inputs:
    """Digests of the inputs of scenarios. Each is computed once, when it is first needed."""

    def __init__(self) -> None:
        self._of: dict[str, Mapping[str, str] | ArtistError] = {}
        self._links: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._trace_digest = functools.cache(trace_digest)

    def of(self, scenario: Scenario) -> Mapping[str, str] | ArtistError:
        """The digests, as in a run's manifest, or the error that prevents them."""
        changes = json.dumps(scenario.model_dump().get("fabric_options", {}))
        fabric = f"{scenario.own_fabric} {scenario.cluster}"
        links = (fabric, changes, scenario.calibration, scenario.backend)
        # A trace file is the same for every seed.
        seed = 0 if is_file(Path(scenario.trace)) else scenario.seed
        # The mapping file beside a trace may appear later, so it is not part of the key.
        named = [pair for pair in named_files(scenario) if pair[0] != MAPPING]
        key = json.dumps([scenario.trace, scenario.columns, seed, links, named])
        if key not in self._of:
            try:
                if links not in self._links:
                    self._links[links] = link_digests(scenario)
                trace = self._trace_digest(scenario.trace, seed)
                files = file_digests(scenario)
                self._of[key] = {"trace": trace, **self._links[links], **files}
            except ArtistError as cause:
                self._of[key] = cause
        return self._of[key]


def check_inputs(runs: Sequence[Run], folder: Path, inputs: Inputs, out: Path) -> None:
    """Refuse finished runs that read other inputs than those of `inputs`.

    Raises:
        ConfigError: names the first such run, what it read, and what to do.
    """
    others = [(run, words) for run in runs if (words := _difference(run, folder, inputs))]
    if others:
        run, words = others[0]
        more = f", and so with {len(others) - 1} more" if len(others) > 1 else ""
        raise ConfigError(
            f"--out {out}: run {run.id} {words}{more}; restore the earlier inputs, run everything "
            "again with --overwrite, or choose another folder"
        )


def _difference(run: Run, folder: Path, inputs: Inputs) -> str:
    """How the inputs of a finished run differ from the present ones; empty if not at all."""
    then, version = _read_manifest(folder / run.id / MANIFEST)
    now = inputs.of(run.scenario)
    if version != __version__:
        return f"was made by artist {version}, and this is {__version__}"
    if isinstance(now, ArtistError):
        return f"cannot be compared with its inputs as they are now ({now})"
    try:
        now = {**now, **_of_folders(then)}
    except TraceError as cause:
        return f"cannot be compared with its inputs as they are now ({cause})"
    different = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    names = [f"{key} {name}".rstrip() for key in different for name in [_name(run.scenario, key)]]
    return f"read another {' and another '.join(names)} than there is now" if names else ""


def _of_folders(then: Mapping[str, Any]) -> Mapping[str, str]:
    """The present digests of the folders of execution traces that a run read.

    Raises:
        TraceError: a folder or a trace in it is missing.
    """
    folders = [key for key in then if ":" in key]
    if not folders:
        return {}
    return {model: digest_of_model(model) for model in folders}


def _read_manifest(path: Path) -> tuple[Mapping[str, Any], str]:
    """The digests of what a run read, and the version of artist that made it."""
    try:
        manifest = json.loads(read_text(path))
        return dict(manifest["inputs"]), str(manifest["versions"]["artist"])
    except (ConfigError, KeyError, TypeError, ValueError, RecursionError) as cause:
        raise ConfigError(
            f"{path}: damaged, so its inputs are unknown; remove {path.parent}, and --resume makes "
            "the run again"
        ) from cause


def _name(scenario: Scenario, key: str) -> str:
    """The name that the scenario gives an input."""
    value = mapping_file(scenario) if key == MAPPING else getattr(scenario, key, "")
    return value if isinstance(value, str) else ""
