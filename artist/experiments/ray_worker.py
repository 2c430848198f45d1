"""Runs of a sweep on other machines of a Ray cluster.

A worker's machine needs the same artist and nothing else. The files that a scenario names are
copied to it (`input_files.py`). It sends its tables back, and this machine writes them, so no
shared folder is needed. The cluster itself is in `ray_cluster.py`.
"""

from __future__ import annotations

import functools
import hashlib
import platform
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory

import artist
from artist.config import Scenario
from artist.errors import ConfigError
from artist.estimates.cache import open_store
from artist.experiments.input_files import InputFiles
from artist.experiments.ray_cluster import run_on_ray
from artist.experiments.task import Outcome, Task, lost, outcome_of
from artist.io.shipped import resource
from artist.results.result import Result
from artist.results.run_directory import write_run
from artist.run import simulate

# The libraries that compute and write the numbers of a run directory.
_LIBRARIES = ("numpy", "pandas", "pyarrow", "pydantic")


@dataclass(frozen=True, slots=True)
class RemoteTask:
    """One run for a worker on another machine. The scenario names the copies of its files there."""

    id: str
    scenario: Scenario
    fingerprint: str


def on_ray(tasks: Sequence[Task], workers: int | None) -> Generator[Outcome]:
    """Run tasks on a Ray cluster and write their directories here, one by one."""
    with TemporaryDirectory(prefix="artist-ray-") as name:
        files = InputFiles(Path(name))
        sent = [RemoteTask(task.id, files.copied(task.scenario), fingerprint()) for task in tasks]
        answers = run_on_ray(run_elsewhere, sent, workers, folder=Path(name), on_death=lost)
        for index, answer in answers:
            task = tasks[index]
            if isinstance(answer, Outcome):
                yield replace(answer, error=files.with_own_names(answer.error))
            else:
                # The worker's scenario names copies. The manifest names the user's own files.
                own = {**answer.summary, "policy": task.scenario.policy}
                result = replace(answer, scenario=task.scenario, summary=own)
                write = functools.partial(
                    write_run, result, task.folder, task.command, overwrite=True
                )
                yield outcome_of(task.id, write)


def run_elsewhere(task: RemoteTask) -> Result | Outcome:
    """One run, on a worker's machine, in a copy of the folder that `InputFiles` filled."""
    results: list[Result] = []

    def run() -> None:
        if task.fingerprint != fingerprint():
            raise ConfigError(
                f"the worker on {platform.node()} has another artist than this machine: install "
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
