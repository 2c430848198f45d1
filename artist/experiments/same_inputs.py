"""Whether the runs of a sweep read the same inputs.

A sweep can be resumed after days, and it can run for days. A trace, fabric, calibration or other
file that has changed since would make one table of two experiments. Every run's manifest holds the
digests of what it read. They are compared with the files as they are when the sweep begins.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from artist import __version__
from artist.config import Scenario
from artist.errors import ArtistError, ConfigError
from artist.experiments.experiment import Run
from artist.io.reading import is_file, read_text
from artist.results.named_files import MAPPING, file_digests, mapping_file
from artist.results.run_directory import MANIFEST
from artist.run import link_digests
from artist.trace.named import trace_digest


class Inputs:
    """Digests of the inputs of scenarios; every input is read once, when it is first asked for."""

    def __init__(self) -> None:
        self._of: dict[str, Mapping[str, str] | ArtistError] = {}
        self._links: dict[tuple[str, ...], Mapping[str, str]] = {}
        self._trace_digest = functools.cache(trace_digest)

    def of(self, scenario: Scenario) -> Mapping[str, str] | ArtistError:
        """The digests, as in a run's manifest, or why they cannot be had."""
        changes = json.dumps(scenario.model_dump().get("fabric_options", {}))
        fabric = f"{scenario.own_fabric} {scenario.cluster}"
        links = (fabric, changes, scenario.calibration, scenario.backend)
        # A trace file is the same for every seed.
        seed = 0 if is_file(Path(scenario.trace)) else scenario.seed
        others = (
            scenario.fallback,
            scenario.policy,
            scenario.policy_options,
            scenario.columns,
            scenario.contention,
            scenario.failures,
            scenario.data,
            scenario.tenants,
        )
        key = json.dumps([scenario.trace, seed, links, others], default=str)
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
    """Refuse finished runs that read other inputs than there were when `inputs` was asked.

    Raises:
        ConfigError: names the first such run, what it read, and what to do.
    """
    others = [(run, words) for run in runs if (words := _difference(run, folder, inputs))]
    if others:
        run, words = others[0]
        more = f", and so with {len(others) - 1} more" if len(others) > 1 else ""
        raise ConfigError(
            f"--out {out}: run {run.id} {words}{more}; put the former inputs back, run everything "
            "again with --overwrite, or choose another folder"
        )


def _difference(run: Run, folder: Path, inputs: Inputs) -> str:
    """How the inputs of a finished run differ from those of now, in words; empty if they do not."""
    then, version = _read_manifest(folder / run.id / MANIFEST)
    now = inputs.of(run.scenario)
    if version != __version__:
        return f"was made by artist {version}, and this is {__version__}"
    if isinstance(now, ArtistError):
        return f"cannot be compared with its inputs as they are now ({now})"
    different = [key for key in {**then, **now} if then.get(key) != now.get(key)]
    names = [f"{key} {name}".rstrip() for key in different for name in [_name(run.scenario, key)]]
    return f"read another {' and another '.join(names)} than there is now" if names else ""


def _read_manifest(path: Path) -> tuple[Mapping[str, Any], str]:
    """The digests of what a run read, and the version of artist that made it.

    Raises:
        ConfigError: it has none.
    """
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
