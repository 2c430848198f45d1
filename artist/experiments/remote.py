"""Runs on other machines: what goes there, what comes back, and that it is the same artist.

The files that a scenario names travel with it, so a worker's machine needs nothing but the same
artist; the tables come back and are written here, so it needs no shared folder either.
"""

from __future__ import annotations

import functools
import hashlib
import platform
import shutil
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import artist
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.experiments.executors import run_on_ray
from artist.experiments.task import Outcome, Task, lost, outcome_of
from artist.io.shipped import resource
from artist.results.result import Result
from artist.results.run_directory import write_run
from artist.run import simulate

# What the numbers in a run directory are computed and written with.
_LIBRARIES = ("numpy", "pandas", "pyarrow", "pydantic")


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """What a worker elsewhere needs for one run; files under the names they have there."""

    id: str
    scenario: Scenario
    fingerprint: str


def on_ray(tasks: Sequence[Task], workers: int | None) -> Generator[Outcome]:
    """Run tasks on a Ray cluster and write their directories here, one by one."""
    with TemporaryDirectory(prefix="artist-ray-") as name:
        luggage = Luggage(Path(name))
        sent = [RemoteTask(task.id, luggage.packed(task.scenario), fingerprint()) for task in tasks]
        found = run_on_ray(run_elsewhere, sent, workers, folder=Path(name), died=lost)
        for index, answer in found:
            task = tasks[index]
            if isinstance(answer, Outcome):
                yield replace(answer, error=luggage.as_named_here(answer.error))
            else:
                # What simulated had its files elsewhere; what the user asked for is written.
                result = replace(answer, scenario=task.scenario)
                write = functools.partial(write_run, result, task.folder, task.command)
                yield outcome_of(task.id, write)


def run_elsewhere(task: RemoteTask) -> Result | Outcome:
    """One run, on a worker's machine, in the folder that `Luggage` packed."""
    found: list[Result] = []

    def run() -> None:
        if task.fingerprint != fingerprint():
            raise ConfigError(
                f"the worker on {platform.node()} has another artist than this machine: install "
                f"artist-sim {artist.__version__} and the same {', '.join(_LIBRARIES)} there"
            )
        with open_store() as store:
            found.append(simulate(task.scenario, store=store))

    outcome = outcome_of(task.id, run)
    return found[0] if found else outcome


@functools.cache
def fingerprint() -> str:
    """SHA-256 of artist's code and shipped files, and of the libraries' versions."""
    package = Path(artist.__file__).parent
    digest = hashlib.sha256()
    for root, pattern in (
        (package, "*.py"),
        *((resource(kind), "*") for kind in ("templates", "astra_configs", "traces")),
    ):
        for path in sorted(root.rglob(pattern)):
            if path.is_file():
                digest.update(f"{path.relative_to(root)}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    for library in _LIBRARIES:
        digest.update(f"{library} {metadata.version(library)}\n".encode())
    return digest.hexdigest()


class Luggage:
    """A folder with a copy of every file that scenarios name, each once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names: dict[str, str] = {}
        # What a name without a path may mean: `./astra_configs` goes before what is shipped.
        if Path("astra_configs").is_dir():
            shutil.copytree("astra_configs", folder / "astra_configs")

    def packed(self, scenario: Scenario) -> Scenario:
        """The scenario with its files under the names they have in the folder."""
        options: dict[str, Any] = {
            key: self._file(value) if key.endswith("_file") else value
            for key, value in scenario.policy_options.items()
        }
        changes = {
            "trace": self._file(scenario.trace),
            "fabric": self._file(scenario.fabric),
            "calibration": self._file(scenario.calibration),
            "backend": self._backend(scenario.backend),
            "fallback": self._backend(scenario.fallback),
            "policy_options": options,
        }
        return scenario.model_copy(update=changes)

    def as_named_here(self, text: str) -> str:
        """A message with the files' own names."""
        for name, there in self._names.items():
            text = text.replace(there, name)
        return text

    def _backend(self, name: str | None) -> str | None:
        """A recorded table travels; a program or an image has to be there."""
        kind, colon, argument = (name or "").partition(":")
        return f"{kind}{colon}{self._file(argument)}" if kind == "recorded" else name

    def _file(self, name: Any) -> Any:
        if not isinstance(name, str) or not name or not Path(name).is_file():
            return name
        if name not in self._names:
            there = Path("inputs", str(len(self._names)), Path(name).name)
            (self._folder / there).parent.mkdir(parents=True)
            try:
                shutil.copyfile(name, self._folder / there)
            except PermissionError:  # whoever reads it says so, run by run
                return name
            self._names[name] = str(there)
        return self._names[name]
