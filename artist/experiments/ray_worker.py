"""Runs of a sweep on other machines of a Ray cluster.

A worker's machine needs the same artist and nothing else. The files that a scenario names (traces,
fabrics, tables) are copied to it. It sends its tables back, and this machine writes them, so no
shared folder is needed. The cluster itself is in `ray_cluster.py`.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import artist
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.experiments.ray_cluster import run_on_ray
from artist.experiments.sweep import RunOutcome, RunTask, lost, outcome_of
from artist.io.reading import is_file
from artist.io.shipped import resource
from artist.results.named_files import POLICY_FILE, names_a_file
from artist.results.result import Result
from artist.results.run_directory import write_run
from artist.run import simulate
from artist.trace.native.mapping import mapping_path

# The libraries that compute and write the numbers of a run directory.
_LIBRARIES = ("numpy", "pandas", "pyarrow", "pydantic")


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """One run for a worker on another machine. The scenario names the copies of its files there."""

    id: str
    scenario: Scenario
    fingerprint: str


def on_ray(tasks: Sequence[RunTask], workers: int | None) -> Generator[RunOutcome]:
    """Run tasks on a Ray cluster and write their directories here, one by one."""
    with TemporaryDirectory(prefix="artist-ray-") as name:
        files = InputFiles(Path(name))
        sent = [RemoteTask(task.id, files.copied(task.scenario), fingerprint()) for task in tasks]
        answers = run_on_ray(run_elsewhere, sent, workers, folder=Path(name), on_death=lost)
        for index, answer in answers:
            task = tasks[index]
            if isinstance(answer, RunOutcome):
                yield replace(answer, error=files.with_own_names(answer.error))
            else:
                # The worker's scenario names copies. The manifest names the user's own files.
                own = {**answer.summary, "policy": task.scenario.policy}
                result = replace(answer, scenario=task.scenario, summary=own)
                write = functools.partial(
                    write_run, result, task.folder, task.command, overwrite=True
                )
                yield outcome_of(task.id, write)


def run_elsewhere(task: RemoteTask) -> Result | RunOutcome:
    """One run, on a worker's machine, in a copy of the folder that `InputFiles` filled."""
    results: list[Result] = []

    def run() -> None:
        if task.fingerprint != fingerprint():
            raise ConfigError(
                f"the worker on {platform.node()} has another version of artist: install "
                f"artist-sim {artist.__version__} and the same {', '.join(_LIBRARIES)} there"
            )
        with open_store() as store:
            results.append(simulate(task.scenario, store=store))

    outcome = outcome_of(task.id, run)
    return results[0] if results else outcome


@functools.cache
def fingerprint() -> str:
    """SHA-256 of artist's code and shipped files, and of the libraries' versions."""
    package = Path(artist.__file__).parent
    digest = hashlib.sha256()
    for root, pattern in (
        (package, "*.py"),
        *((resource(folder), "*") for folder in ("templates", "astra_configs", "traces")),
    ):
        for path in sorted(root.rglob(pattern)):
            if path.is_file():
                digest.update(f"{path.relative_to(root)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    for library in _LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\n".encode())
    return digest.hexdigest()


class InputFiles:
    """A folder with one copy of every file that scenarios name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies: dict[str, str] = {}
        """The user's name of a file -> the path of its copy below the folder."""
        # A name such as `dally2025` means a file of `./astra_configs` before a shipped one.
        if Path("astra_configs").is_dir():
            shutil.copytree("astra_configs", folder / "astra_configs")

    def copied(self, scenario: Scenario) -> Scenario:
        """Copy the files of a scenario; the scenario that names the copies."""
        changes = {
            "cluster": self._file(scenario.cluster),
            "data": self._file(scenario.data),
            "trace": self._trace(scenario),
            "columns": self._file(scenario.columns),
            "fabric": self._file(scenario.fabric),
            "calibration": self._file(scenario.calibration),
            "backend": self._backend(scenario.backend),
            "fallback": self._backend(scenario.fallback),
            "contention": self._contention(scenario.contention),
            "contention_options": self._options(scenario.contention_options),
            "interference": self._file(scenario.interference),
            "speeds": self._file(scenario.speeds),
            "goodput": self._file(scenario.goodput),
            "tenants": self._file(scenario.tenants),
            "failures": self._file(scenario.failures),
            "policy": POLICY_FILE.sub(
                lambda match: f"{self._file(match[1].strip())}:", scenario.policy
            ),
            "policy_options": self._options(scenario.policy_options),
        }
        return scenario.model_copy(update=changes)

    def with_own_names(self, message: str) -> str:
        """A worker's message with the user's names of the files."""
        for name, copy in self._copies.items():
            message = message.replace(copy, name)
        return message

    def _options(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Copy the files that options name, also those of a policy inside a wrapper."""
        return {
            key: self._options(value)
            if isinstance(value, Mapping)
            else self._file(value)
            if names_a_file(key)
            else value
            for key, value in options.items()
        }

    def _backend(self, name: str | None) -> str | None:
        """Copy a recorded table. A program or an image must already be on the worker's machine."""
        kind, colon, argument = (name or "").partition(":")
        return f"{kind}{colon}{self._file(argument)}" if kind == "recorded" else name

    def _contention(self, name: str) -> str:
        """Copy a table of slowdowns."""
        kind, colon, argument = name.partition(":")
        return f"{kind}{colon}{self._file(argument)}" if kind == "table" else name

    def _trace(self, scenario: Scenario) -> str:
        """Copy a trace and, into the same folder, the mapping file that lies next to it."""
        copy: str = self._file(scenario.trace)
        mapping = mapping_path(scenario.trace)
        if copy != scenario.trace and is_file(mapping):
            shutil.copyfile(mapping, mapping_path(self._folder / copy))
        return copy

    def _file(self, name: Any) -> Any:
        """Copy a file, once; the copy's path. A value that names no file is returned as it is."""
        if not isinstance(name, str) or not name or not Path(name).is_file():
            return name
        if name not in self._copies:
            # A folder per copy, so that a trace keeps its file's name.
            copy = Path("inputs", str(len(self._copies)), Path(name).name)
            (self._folder / copy).parent.mkdir(parents=True)
            try:
                shutil.copyfile(name, self._folder / copy)
            except PermissionError:  # each run that reads the file fails with its own message
                return name
            self._copies[name] = str(copy)
        return self._copies[name]
